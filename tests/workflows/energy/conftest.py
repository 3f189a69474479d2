"""A short run, shared by all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from workflows.energy.tiny import recipe

from jepatlas.workflows.runs import start_run


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    start_run(recipe(steps=100), folder)
    return folder
