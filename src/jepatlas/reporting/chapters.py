"""What a page is made of: a run is a list of chapters, and a chapter is one saved record.

A figure stays the declarative spec it was saved as (see `figures.py`) until the page is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jepatlas.core.records import Verdict

__all__ = ["Chapter", "Table"]


@dataclass(frozen=True)
class Table:
    """Rows of plain cells: text, numbers, booleans, or None for an empty cell."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Chapter:
    """One record of a run; `source` is the file it came from, relative to the run folder."""

    title: str
    source: str
    summary: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    figures: tuple[Mapping[str, Any], ...] = ()
    tables: tuple[Table, ...] = ()
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    recipe: str = ""
