"""Folders of runs are given as Path or as str."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from training.small import recipe
from workflows.energy.tiny import recipe as energy_recipe
from workflows.plan.small import recipe as world_model_recipe

from jepatlas.recipes import any_recipe
from jepatlas.workflows.energy import load_fitted
from jepatlas.workflows.export import encoder_of
from jepatlas.workflows.plan import load_world_model
from jepatlas.workflows.runs import load_objective, start_run


@pytest.mark.parametrize(
    ("made", "load"),
    [
        (recipe(steps=2), load_objective),
        (recipe(steps=2), encoder_of),
        (energy_recipe(steps=2), load_fitted),
        (world_model_recipe(), load_world_model),
    ],
)
def test_runs_are_started_and_loaded_by_names_of_folders(made: Any, load: Callable[[Any], Any], tmp_path: Path):
    folder = str(tmp_path / "run")
    assert start_run(made, folder).status == "finished"
    assert any_recipe(folder) == any_recipe(Path(folder))
    assert type(load(folder)) is type(load(Path(folder)))
