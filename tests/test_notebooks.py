"""The notebooks of the documentation run from top to bottom, and are committed with small outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
MAX_BYTES = 150_000


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()


def test_there_is_a_notebook_for_each_question() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["align", "certify", "energy", "plan"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_with_small_outputs(path: Path) -> None:
    assert path.stat().st_size < MAX_BYTES
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert sum(len(cell.outputs) for cell in cells) >= 3
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]
