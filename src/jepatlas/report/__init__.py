"""One self-contained HTML page, drawn from saved records only: no torch, no network, no training code."""

from jepatlas.report.chapters import Chapter, Table
from jepatlas.report.figures import draw
from jepatlas.report.page import write_report
from jepatlas.report.records import read_chapters

__all__ = ["Chapter", "Table", "draw", "read_chapters", "write_report"]
