"""Self-contained HTML reports and printed figures, drawn from saved records. This package does not import torch."""

from jepatlas.reporting.chapters import Chapter, read_chapters
from jepatlas.reporting.drawers import draw
from jepatlas.reporting.page import write_report

__all__ = ["Chapter", "draw", "read_chapters", "write_report"]
