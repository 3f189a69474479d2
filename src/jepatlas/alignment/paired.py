"""Paired latents: the records of one and of two models' latents, and checks of paired rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jepatlas.alignment.within import SharedColumn
from jepatlas.core.arrays import check_finite, check_rows
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split

__all__ = [
    "Latents",
    "PairedLatents",
    "Progress",
    "centred",
    "check_columns",
    "check_matrix",
    "check_pairs",
    "scaled",
]

Progress = Callable[[int, int], None]
"""Called with the number of finished parts and the number of all parts."""

PER_ROW = ("ids", "groups", "labels", "held", "within", "raw", "untrained")


@dataclass(frozen=True)
class Latents:
    """Latents of one model, with optional arrays that describe the same rows."""

    name: str
    h: np.ndarray  # (b, d)
    ids: np.ndarray | None = None  # (b,) identifier of the state of each row
    groups: np.ndarray | None = None  # (b,) rows of one group are never split between fitting and scoring
    labels: np.ndarray | None = None  # (b,)
    raw: np.ndarray | None = None  # (b, ...) input of the model
    layers: Mapping[str, np.ndarray] = field(default_factory=dict)  # each (b, d_l), first layer first
    held: np.ndarray | None = None  # (b,) True for states that the model was not trained on
    untrained: np.ndarray | None = None  # (b, d) latents of the same network before training
    within: np.ndarray | None = None  # (b,) or (b, k) a column that is partialled out of the latents

    def __post_init__(self) -> None:
        if self.h.ndim != 2 or not self.h.size:
            raise InputError(f"{self.name}: latents must be a matrix with one row per state, not {self.h.shape}.")
        check_finite(f"{self.name}: h", self.h)
        for kind, layer in self.layers.items():
            check_finite(f"{self.name}: {kind}", layer)
        for kind, array in self._per_row.items():
            if array.shape[:1] != self.h.shape[:1]:
                rows = len(array) if array.ndim else "no"
                raise InputError(f"{self.name}: there are {len(self.h)} latents, but {rows} rows of {kind}.")
        if self.untrained is not None:
            self._check_untrained(self.untrained)

    @property
    def _per_row(self) -> dict[str, np.ndarray]:
        """The optional arrays that are given, by name."""
        given = {kind: getattr(self, kind) for kind in PER_ROW}
        return {kind: array for kind, array in given.items() if array is not None} | dict(self.layers)

    def _check_untrained(self, untrained: np.ndarray) -> None:
        if untrained.shape != self.h.shape:
            raise InputError(
                f"{self.name}: 'untrained' must hold the latents of the same states by the same network before "
                f"training, so it must have the shape of h, {self.h.shape}, but it has {untrained.shape}. Encode the "
                "states with that network, or remove the array from the file."
            )
        check_finite(f"{self.name}: untrained", untrained)

    def rows(self, rows: np.ndarray) -> Latents:
        """The given rows, in this order."""
        layers = {name: layer[rows] for name, layer in self.layers.items()}
        parts = {kind: array[rows] for kind, array in self._per_row.items() if kind in PER_ROW}
        return replace(self, h=self.h[rows], layers=layers, **parts)


@dataclass(frozen=True)
class PairedLatents:
    """Latents of two models for the same states, row by row."""

    a: Latents
    b: Latents
    left_out: tuple[int, int] = (0, 0)
    """Number of states of a that b lacks, and of b that a lacks. They are not among the rows."""

    @classmethod
    def of(
        cls,
        a: np.ndarray,
        b: np.ndarray,
        *,
        names: tuple[str, str] = ("a", "b"),
        ids: np.ndarray | None = None,
        groups: np.ndarray | None = None,
        labels: np.ndarray | None = None,
        fewest: int = 2,
    ) -> PairedLatents:
        """Pair row i of `a` (n, d_a) with row i of `b` (n, d_b); at least `fewest` rows are required.

        >>> PairedLatents.of(np.eye(3), np.ones((3, 2)), groups=np.array([0, 0, 1])).groups
        array([0, 0, 1])
        """
        a, b = check_pairs(a, b, fewest=fewest)
        return cls(Latents(names[0], a, ids=ids, groups=groups, labels=labels), Latents(names[1], b, ids=ids))

    def __len__(self) -> int:
        return len(self.a.h)

    @property
    def ids(self) -> np.ndarray | None:
        return self.a.ids if self.a.ids is not None else self.b.ids

    @property
    def groups(self) -> np.ndarray | None:
        return self.a.groups if self.a.groups is not None else self.b.groups

    @property
    def labels(self) -> np.ndarray | None:
        return self.a.labels if self.a.labels is not None else self.b.labels

    @property
    def within(self) -> np.ndarray | None:
        """The column that is partialled out of both sides."""
        return self.a.within if self.a.within is not None else self.b.within

    def within_column(self, shared: SharedColumn) -> PairedLatents:
        """Both sides without the effect of the column."""
        a, b = (
            replace(
                one,
                h=shared.residual(one.h),
                untrained=None if one.untrained is None else shared.residual(one.untrained),
                layers={name: shared.residual(layer) for name, layer in one.layers.items()},
            )
            for one in (self.a, self.b)
        )
        return replace(self, a=a, b=b)

    @property
    def held(self) -> np.ndarray | None:
        """True for states that neither model was trained on; None if neither side marks them."""
        marks = [one.held for one in (self.a, self.b) if one.held is not None]
        return np.logical_and.reduce(marks) if marks else None

    @property
    def marked_split(self) -> Split | None:
        """Fit on the rows that are not marked as held out and score on the others; None without marks."""
        if self.held is None:
            return None
        return Split(np.flatnonzero(~self.held), np.flatnonzero(self.held))

    @property
    def has_raw(self) -> bool:
        """Whether both sides have raw inputs, from which controls can be computed."""
        return self.a.raw is not None and self.b.raw is not None

    @property
    def has_untrained(self) -> bool:
        """Whether both sides have the latents of the untrained network."""
        return self.a.untrained is not None and self.b.untrained is not None

    def rows(self, rows: np.ndarray) -> PairedLatents:
        """The given rows of both sides, in this order."""
        return replace(self, a=self.a.rows(rows), b=self.b.rows(rows))

    @property
    def left_out_note(self) -> list[str]:
        """One sentence on the states that are left out; empty if there are none."""
        if not any(self.left_out):
            return []
        a, b = self.left_out
        return [f"States that only one model has are left out: {a} of {self.a.name}, {b} of {self.b.name}."]

    @property
    def provenance(self) -> dict[str, Any]:
        """Fields for the provenance of a record: states left out, and whether the split comes from marks."""
        found: dict[str, Any] = {}
        if any(self.left_out):
            found["left out of a"], found["left out of b"] = self.left_out
        if self.held is not None:
            found["held out"] = "as the files mark"
        return found


def check_pairs(a: np.ndarray, b: np.ndarray, fewest: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Both sides as finite matrices with equally many rows, at least `fewest`; widths may differ."""
    a = check_matrix("a", a)
    b = check_matrix("b", b)
    check_rows({"a": a, "b": b})
    if len(a) < fewest:
        raise InputError(f"At least {fewest} pairs of rows are needed, but there are {len(a)}.")
    return a, b


def check_columns(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both sides as finite float64 matrices of one shape."""
    a, b = check_pairs(a, b, fewest=1)
    if a.shape != b.shape:
        raise InputError(
            f"These latents are compared coordinate by coordinate, but 'a' has {a.shape[1]} columns and 'b' has "
            f"{b.shape[1]}. First map 'a' to the coordinates of 'b'."
        )
    return a.astype(np.float64), b.astype(np.float64)


def check_matrix(name: str, array: np.ndarray) -> np.ndarray:
    """A finite matrix with at least one row and one column."""
    array = np.asarray(array)
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"'{name}' must be a matrix with one row per sample, but its shape is {array.shape}.")
    check_finite(name, array)
    return array


def scaled(x: np.ndarray) -> np.ndarray:
    """x in float64, divided by a power of two so that squares cannot overflow.

    The scaling is exact: rows that are equal, or equally far apart, remain so to the last bit.
    """
    x = x.astype(np.float64)
    return np.ldexp(x, -int(np.frexp(np.abs(x).max())[1]))


def centred(x: np.ndarray) -> np.ndarray:
    """Scaled x minus its mean. Constant columns become exactly zero because the first row is subtracted first."""
    x = scaled(x)
    x -= x[0].copy()
    return x - x.mean(0)
