"""README and docs run as they are written: Python blocks are executed, `$ jepatlas …` lines are called."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.page import benchmarks_page

from jepatlas.base.files import read_json

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_with("python"), ids=lambda page: page.name)
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text("\n".join(blocks(page, "python")))
    subprocess.run([sys.executable, script], cwd=tmp_path, check=True, timeout=300)


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_with("console"), ids=lambda page: page.name)
def test_console_blocks_run(page: Path, tmp_path: Path) -> None:
    """In a folder where the page's Python has been: it may have made the files that are spoken of."""
    if blocks(page, "python"):
        subprocess.run([sys.executable, "-c", "\n".join(blocks(page, "python"))], cwd=tmp_path, check=True, timeout=300)
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    commands = [line.removeprefix("$ jepatlas ") for line in lines if line.startswith("$ jepatlas ")]
    assert commands
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "jepatlas", *shlex.split(command)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def test_readme_opens_with_the_two_commands() -> None:
    opening = (ROOT / "README.md").read_text()[:1500]
    assert "make tour" in opening
    assert "make test" in opening


def test_every_documentation_page_is_found() -> None:
    assert {"README.md", "training.md", "certificate.md"} <= {page.name for page in PAGES}


def test_the_benchmarks_page_is_what_was_measured() -> None:
    page = ROOT / "docs" / "benchmarks.md"
    assert page.read_text() == benchmarks_page(read_json(page.with_suffix(".json")))
