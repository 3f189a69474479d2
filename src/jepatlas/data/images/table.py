"""What every multi-view table offers, wherever its images lie: rows that say which state is seen from which view.

Two rows are a pair where they show one state from two views. Columns are texts; `label` is what a probe predicts, and
`group` what a split keeps whole (an object, a scene, a block of time).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np

from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.data.images.pixels import Fit, Mode

__all__ = ["ViewTable"]


class ViewTable(ABC):
    """The columns of a table, row by row; images are read when they are asked for. Subclasses are dataclasses."""

    columns: Mapping[str, np.ndarray]  # each (rows,), text; state and view are always there

    @abstractmethod
    def image(
        self, row: int, *, mode: Mode = "rgb", size: tuple[int, int] | None = None, fit: Fit = "stretch"
    ) -> np.ndarray:
        """One image as bytes, (height, width, 3), or (height, width) in grey; `size` is (width, height)."""

    @abstractmethod
    def source(self, row: int) -> str:
        """Where the image of a row lies, and a mark that changes when what lies there does."""

    def __len__(self) -> int:
        return len(self.columns["state"])

    def only(self, rows: np.ndarray) -> Self:
        """The table of these rows."""
        return replace(cast(Any, self), columns={name: values[rows] for name, values in self.columns.items()})

    def column(self, name: str) -> np.ndarray:
        if name not in self.columns:
            raise InputError(f"The table has no column '{name}'. {did_you_mean(name, self.columns)}")
        return self.columns[name]

    @property
    def views(self) -> list[str]:
        return sorted(set(self.columns["view"].tolist()))

    def rows_of_view(self, view: str) -> np.ndarray:
        """The rows that show something from this view."""
        if view not in self.views:
            raise InputError(f"No row has the view '{view}'. {did_you_mean(view, self.views)}")
        return np.flatnonzero(self.columns["view"] == view)

    def pairs(self, first: str, second: str) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the states that both views show, in the order of the first view's rows.

        States that only one of them shows are left out; `unpaired` counts them.
        """
        if len(self.views) == 1:
            raise InputError(
                f"All rows have the view '{self.views[0]}', but a pair needs two views of a state. Give a table with a "
                "second view, or make views of the same images by two augmentation pipelines."
            )
        rows, others = self.rows_of_view(first), self.rows_of_view(second)
        states = self.columns["state"]
        seen = dict(zip(states[others].tolist(), others.tolist(), strict=True))
        shared = [row for row in rows.tolist() if states[row] in seen]
        if not shared:
            raise InputError(f"The views '{first}' and '{second}' have no state in common.")
        return np.array(shared), np.array([seen[states[row]] for row in shared])

    def unpaired(self, first: str, second: str) -> tuple[int, int]:
        """How many states the first of two views shows alone, and how many the second."""
        a, b = (set(self.columns["state"][self.rows_of_view(view)].tolist()) for view in (first, second))
        return len(a - b), len(b - a)

    def labels(self, rows: np.ndarray | None = None, column: str = "label") -> np.ndarray:
        """What a probe is to predict in these rows (all of them); refused where one of them has none."""
        if column not in self.columns:
            raise InputError(
                f"A probe needs labels, but the table has no column '{column}'. {did_you_mean(column, self.columns)}"
            )
        rows = np.arange(len(self)) if rows is None else rows
        if (missing := rows[self.columns[column][rows] == ""]).size:
            raise InputError(
                f"A probe needs labels, but the column '{column}' is empty in {missing.size} of {len(rows)} rows; the "
                f"first is row {missing[0]}, state '{self.columns['state'][missing[0]]}'. Label them or leave them out."
            )
        return self.columns[column][rows]

    def images(
        self, rows: np.ndarray, *, mode: Mode = "rgb", size: tuple[int, int] | None = None, fit: Fit = "stretch"
    ) -> np.ndarray:
        """Images of some rows, uint8: (b, height, width) in grey, (b, height, width, 3) in colour.

        `size` is (width, height); without it all images must have one size already.
        """
        found = [self.image(row, mode=mode, size=size, fit=fit) for row in rows]
        if len(sizes := {image.shape for image in found}) > 1:
            raise InputError(f"The images have {len(sizes)} different sizes. Give a size that all are brought to.")
        return np.stack(found)
