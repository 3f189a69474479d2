"""README and docs run as they are written: Python blocks, then the lines that begin with `$ jepatlas`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from benchmarks.benchmark_page import benchmarks_page
from forked import forked_script

from jepatlas.core.files import read_json

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[str]:
    lines = [line for block in blocks(page, "console") for line in block.replace(" \\\n", " ").splitlines()]
    return [line.removeprefix("$ jepatlas ") for line in lines if line.startswith("$ jepatlas ")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python") or commands(page)], ids=lambda page: page.name
)
def test_a_page_runs_as_it_is_written(page: Path, tmp_path: Path) -> None:
    """First the Python, which may make files that commands speak of; all in one process, which loads torch once."""
    calls = [f"assert main({shlex.split(command)!r}) == 0, {command!r}" for command in commands(page)]
    script = "\n".join([*blocks(page, "python"), "from jepatlas.cli import main", *calls])
    process = forked_script(script, cwd=tmp_path)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, f"{out}\n{err}"


def test_readme_opens_with_the_two_commands() -> None:
    opening = (ROOT / "README.md").read_text()[:1500]
    assert "make tour" in opening
    assert "make test" in opening


def test_every_documentation_page_is_found() -> None:
    assert {"README.md", "training.md", "certificate.md"} <= {page.name for page in PAGES}


def test_the_benchmarks_page_is_what_was_measured() -> None:
    page = ROOT / "docs" / "benchmarks.md"
    assert page.read_text() == benchmarks_page(read_json(page.with_suffix(".json")))
