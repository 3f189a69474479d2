"""Tables of images that show states from several views.

Each row is one image. Two rows form a pair if they show the same state from two views. Columns are strings: `label` is
what a probe predicts, and `group` (an object, a scene, a block of time) is kept whole by splits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np

from jepatlas.core.errors import InputError, did_you_mean

__all__ = ["Fit", "Mode", "ViewTable"]

Mode = Literal["grey", "rgb"]
Fit = Literal["stretch", "cover"]
"""How an image is resized: "stretch" distorts it, "cover" crops it centrally to the target's aspect ratio first."""


class ViewTable(ABC):
    """Columns of a multi-view table; images are read on access. Subclasses are dataclasses."""

    columns: Mapping[str, np.ndarray]  # each (rows,), strings; state and view are always present

    @abstractmethod
    def image(
        self, row: int, *, mode: Mode = "rgb", size: tuple[int, int] | None = None, fit: Fit = "stretch"
    ) -> np.ndarray:
        """One image as uint8, (height, width, 3) or (height, width) in grey; `size` is (width, height)."""

    @abstractmethod
    def source(self, row: int) -> str:
        """The location of the image of a row and a fingerprint that changes with its content."""

    def __len__(self) -> int:
        return len(self.columns["state"])

    def only(self, rows: np.ndarray) -> Self:
        """The table restricted to these rows."""
        return replace(cast(Any, self), columns={name: values[rows] for name, values in self.columns.items()})

    def column(self, name: str) -> np.ndarray:
        if name not in self.columns:
            raise InputError(f"The table has no column '{name}'. {did_you_mean(name, self.columns)}")
        return self.columns[name]

    @property
    def views(self) -> list[str]:
        return sorted(set(self.columns["view"].tolist()))

    def rows_of_view(self, view: str) -> np.ndarray:
        if view not in self.views:
            raise InputError(f"No row has the view '{view}'. {did_you_mean(view, self.views)}")
        return np.flatnonzero(self.columns["view"] == view)

    def pairs(self, first: str, second: str) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the states that both views show, in the order of the first view.

        States with only one of the views are omitted; `unpaired` counts them.
        """
        if len(self.views) == 1:
            raise InputError(
                f"All rows have the view '{self.views[0]}', but pairs need two views of a state. Use a table with a "
                "second view, or create views with two augmentation pipelines."
            )
        states = self.columns["state"]
        second_rows = self.rows_of_view(second)
        row_of_state = dict(zip(states[second_rows].tolist(), second_rows.tolist(), strict=True))
        shared = [row for row in self.rows_of_view(first).tolist() if states[row] in row_of_state]
        if not shared:
            raise InputError(f"The views '{first}' and '{second}' have no state in common.")
        return np.array(shared), np.array([row_of_state[states[row]] for row in shared])

    def unpaired(self, first: str, second: str) -> tuple[int, int]:
        """Number of states that only the first view shows, and that only the second shows."""
        first_states = set(self.columns["state"][self.rows_of_view(first)].tolist())
        second_states = set(self.columns["state"][self.rows_of_view(second)].tolist())
        return len(first_states - second_states), len(second_states - first_states)

    def labels(self, rows: np.ndarray | None = None, column: str = "label") -> np.ndarray:
        """Labels of the rows (default: all); raises InputError if one is missing."""
        if column not in self.columns:
            raise InputError(f"A probe needs the column '{column}'. {did_you_mean(column, self.columns)}")
        rows = np.arange(len(self)) if rows is None else rows
        missing = rows[self.columns[column][rows] == ""]
        if len(missing):
            raise InputError(
                f"A probe needs labels, but the column '{column}' is empty in {len(missing)} of {len(rows)} rows; the "
                f"first is row {missing[0]}, state '{self.columns['state'][missing[0]]}'. Label or remove these rows."
            )
        return self.columns[column][rows]

    def images(
        self, rows: np.ndarray, *, mode: Mode = "rgb", size: tuple[int, int] | None = None, fit: Fit = "stretch"
    ) -> np.ndarray:
        """Images of the rows as uint8: (b, height, width, 3), or (b, height, width) in grey.

        `size` is (width, height). It is required if the images differ in size.
        """
        found = [self.image(row, mode=mode, size=size, fit=fit) for row in rows]
        shapes = {image.shape for image in found}
        if len(shapes) > 1:
            raise InputError(f"The images have {len(shapes)} different sizes. Set size to resize them.")
        return np.stack(found)
