"""One self-contained HTML page, drawn from saved records only: no torch, no network, no training code."""

from jepatlas.reporting.chapters import Chapter, Table
from jepatlas.reporting.figures import draw
from jepatlas.reporting.page import write_report
from jepatlas.reporting.records import read_chapters

__all__ = ["Chapter", "Table", "draw", "read_chapters", "write_report"]
