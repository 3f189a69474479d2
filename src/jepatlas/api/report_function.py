"""`report`: one page with the results of runs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from jepatlas.api.inputs import as_path
from jepatlas.core.errors import InputError
from jepatlas.core.lazy import lazy_import
from jepatlas.reporting import write_report
from jepatlas.results import Result

if TYPE_CHECKING:
    from jepatlas.reporting import figure_files
else:
    figure_files = lazy_import("jepatlas.reporting.figure_files")  # matplotlib takes a second to import

__all__ = ["report"]

PAGE = "report.html"


def report(
    *runs: Result | Path | str,
    out: Path | str | None = None,
    title: str | None = None,
    figures: str | None = None,
    seed: int = 0,
) -> Path:
    """Write one self-contained HTML page with the results of runs, as `jepatlas report` does, and return its path.

    Each of `runs` is a run folder, a sweep folder, or a result such as a certificate. Several are compared: verdicts
    side by side, training curves in one figure. `out` is the page; by default it is report.html in the only folder, or
    in the current folder. With `figures`, each figure is also written to the folder figures beside the page: as "svg"
    or "pdf", which are vector graphics, or as "png" with 300 dots per inch. `seed` chooses the samples that are drawn
    if there are too many.
    """
    if not runs:
        raise InputError("'runs' is empty: name at least one run folder or result.")
    with tempfile.TemporaryDirectory() as place:
        folders = [_folder(given, Path(place, str(number))) for number, given in enumerate(runs)]
        if out is None:
            own = [given for given in runs if isinstance(given, Result)]
            out = Path(PAGE) if len(runs) > 1 or own else folders[0] / PAGE
        if figures is not None:
            figure_files.save_figures(folders, Path(out).parent / "figures", figures)
        return write_report(folders, out, title=title or ", ".join(folder.name for folder in folders), seed=seed)


def _folder(given: Result | Path | str, place: Path) -> Path:
    """The folder of a run, or a new one in `place` with the record of a result."""
    if isinstance(given, Result):
        return given.report_folder(place)
    folder = as_path("runs", given)
    if folder is None:
        raise InputError(f"'runs' must be run folders or results, but one is a {type(given).__name__}.")
    if not folder.is_dir():
        raise InputError(f"'runs': {folder} is a file. Give run folders or results.")
    return folder
