"""Figures of run folders as files for papers: vector graphics, or images with 300 dots per inch."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure as Sheet

from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.core.files import write_bytes
from jepatlas.reporting.chapters import read_chapters
from jepatlas.reporting.paper import draw_panels

__all__ = ["FORMATS", "save_figures"]

FORMATS = ("svg", "pdf", "png")
DPI = 300
UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
"""Metadata without which equal figures give equal bytes."""


def save_figures(folders: Sequence[Path | str], out: Path | str, kind: str) -> list[Path]:
    """Write every figure of the records of run folders to the folder `out`, as `kind`: svg, pdf or png."""
    if kind not in FORMATS:
        raise InputError(f"'figures' is {kind!r}, which is not a format. {did_you_mean(str(kind), FORMATS)}")
    written = []
    for folder in map(Path, folders):
        for chapter in read_chapters(folder):
            for number, figure in enumerate(chapter.figures, 1):
                start = f"{folder.name}-" if len(folders) > 1 else ""
                path = Path(out) / f"{start}{Path(chapter.source).stem}-{number}.{kind}"
                image = io.BytesIO()
                with rc_context({"svg.hashsalt": "jepatlas"}):
                    sheet = Sheet(layout="constrained")
                    draw_panels(sheet, [figure], chapter.arrays)
                    sheet.savefig(image, format=kind, dpi=DPI, metadata=UNDATED[kind])
                write_bytes(path, image.getvalue())
                written.append(path)
    return written
