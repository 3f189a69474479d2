"""Frozen records that packages exchange: batches, losses, estimates, verdicts and saved results.

Shape suffixes used throughout jepatlas: `b` rows of a batch, `n` dimensions of the true state z, `p` of an observation
x, `d` of a latent h, `a` of an action u; `t` times, `k` candidates. So `h_bd` is a batch of latents. Rows are samples.
Images are (..., 3, height, width) as input of networks.

This module does not import torch, so that reports can be drawn without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from jepatlas.core.arrays import write_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.figures import Figure, Table
from jepatlas.core.files import write_json

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "CropKind",
    "Crops",
    "Direction",
    "Estimate",
    "Experience",
    "Loss",
    "PairedCrops",
    "Pairs",
    "Plan",
    "Record",
    "Status",
    "Steps",
    "Verdict",
    "Windows",
]

Direction = Literal["higher", "lower"]
Status = Literal["passed", "failed", "undecided", "informational"]


@dataclass(frozen=True)
class Pairs:
    """Two views of one state, or of a state and its successor; z is the true state."""

    x: Tensor  # (b, p)
    x_next: Tensor  # (b, p)
    z: Tensor  # (b, n)
    z_next: Tensor  # (b, n)


@dataclass(frozen=True)
class Steps:
    """Observed steps with their costs, and goals drawn from the same data, to learn energies from."""

    x: Tensor  # (b, p)
    x_next: Tensor  # (b, p)
    cost: Tensor  # (b,)
    goal: Tensor  # (b, p)


@dataclass(frozen=True)
class Windows:
    """Segments of episodes: t + 1 observations and the t actions between them."""

    frames: Tensor  # (b, t + 1, p) or (b, t + 1, 3, height, width)
    u: Tensor  # (b, t, a)
    z: Tensor | None = None  # (b, t + 1, n), if known

    @property
    def x(self) -> Tensor:
        """The first observation: (b, p) or (b, 3, height, width)."""
        return self.frames[:, 0]


CropKind = Literal["one", "two", "multi"]
"""Crops that an objective needs of an image: one, two of full size, or two and several smaller ones."""


@dataclass(frozen=True)
class Crops:
    """Augmented crops of the same images, row by row: `x`, and `others` as the objective needs."""

    x: Tensor  # (b, 3, height, width), bytes or 0 … 1
    others: tuple[Tensor, ...] = ()  # each (b, 3, height, width); local crops are smaller

    @property
    def all(self) -> tuple[Tensor, ...]:
        return (self.x, *self.others)


@dataclass(frozen=True)
class PairedCrops:
    """Crops of each agent's own images, and both agents' views of shared states, row by row.

    For a teacher that is given by its saved outputs only, these take the place of its images.
    """

    own: tuple[Crops, ...]  # one for each agent that learns
    shared: tuple[Tensor, Tensor]  # each (b', 3, height, width), or (b', k) outputs of a teacher

    @property
    def x(self) -> Tensor:
        """The first agent's crop."""
        return self.own[0].x


@dataclass(frozen=True)
class Plan:
    """Planned actions for each start, and their expected cost."""

    actions: Tensor  # (b, t, a)
    cost: Tensor  # (b,)


@dataclass(frozen=True)
class Experience:
    """Observed steps x → x_next, in order within each episode; z is the true state of x, if known."""

    x: np.ndarray  # (t, p)
    x_next: np.ndarray  # (t, p)
    cost: np.ndarray  # (t,)
    episode: np.ndarray  # (t,) integers
    z: np.ndarray | None = None  # (t, n)
    z_next: np.ndarray | None = None  # (t, n)


@dataclass(frozen=True)
class Loss:
    """The return value of objectives: the total to minimise, and its terms."""

    total: Tensor  # ()
    terms: Mapping[str, Tensor] = field(default_factory=dict)  # each (), detached


@dataclass(frozen=True)
class Estimate:
    """A statistic of n samples with its 95% confidence interval."""

    value: float
    low: float
    high: float
    n: int

    @classmethod
    def exact(cls, value: float, n: int) -> Self:
        """A number without an interval."""
        return cls(float(value), float(value), float(value), n)

    @classmethod
    def undefined(cls, n: int = 0) -> Self:
        """NaN, for a number that the samples do not give."""
        return cls.exact(np.nan, n)


@dataclass(frozen=True)
class Verdict:
    """An estimate compared with its threshold.

    `passed` is decided by the worse end of the interval, so that noise cannot pass a test; audits of assumptions fail
    only on evidence against the assumption. It is None if there is no threshold. `null` is the value of the same
    statistic if there is nothing to find, for example for shuffled pairs.
    """

    name: str
    value: float
    low: float
    high: float
    n: int
    null: float | None
    threshold: float | None
    direction: Direction
    passed: bool | None
    advice: str

    @classmethod
    def judge(
        cls,
        name: str,
        estimate: Estimate,
        *,
        direction: Direction,
        good: str,
        bad: str = "",
        threshold: float | None = None,
        null: float | None = None,
    ) -> Self:
        """Compare an estimate with its threshold; `good` and `bad` are the advice if it passes or fails."""
        passed = None
        if threshold is not None:
            numbers = [estimate.value, estimate.low, estimate.high]
            # unlike Python's, numpy's min and max return NaN if any number is NaN, which then fails the comparison
            reached = np.min(numbers) >= threshold if direction == "higher" else np.max(numbers) <= threshold
            passed = bool(reached)
        advice = bad if passed is False else good
        return cls(
            name, **asdict(estimate), null=null, threshold=threshold, direction=direction, passed=passed, advice=advice
        )

    @property
    def status(self) -> Status:
        """A check is undecided if it neither passed nor failed; a verdict without a threshold is only informative."""
        if self.passed is not None:
            return "passed" if self.passed else "failed"
        return "informational" if self.threshold is None else "undecided"

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.value, self.low, self.high, self.n)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote; numbers may be the strings "nan", "inf" and "-inf"."""
        try:
            fields: dict[str, Any] = dict(data)
            for name in ("value", "low", "high", "null", "threshold"):
                if fields.get(name) is not None:
                    fields[name] = float(fields[name])
            return cls(**fields)
        except (AttributeError, TypeError, ValueError) as error:
            raise InputError(f"This is not a saved verdict: {error}") from error


@dataclass(frozen=True)
class Record:
    """The result of a workflow: `records/NAME.json` and the arrays beside it, from which reports are drawn."""

    title: str
    summary: str
    provenance: Mapping[str, Any]
    verdicts: tuple[Verdict, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    """Further information for other readers, for example the claim that an experiment tests."""

    def to_json(self) -> dict[str, Any]:
        """Plain data of everything but the arrays."""
        return {
            "title": self.title,
            "summary": self.summary,
            "provenance": dict(self.provenance),
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
            "figures": [figure.to_json() for figure in self.figures],
            "tables": [table.to_json() for table in self.tables],
            "about": dict(self.about),
            "arrays": None,
        }

    def save(self, folder: Path, name: str) -> None:
        """Write `folder/records/NAME.json` and its arrays, the arrays first."""
        place = folder / "records"
        if self.arrays:
            write_arrays(place / f"{name}.npz", self.arrays)
        write_json(place / f"{name}.json", self.to_json() | {"arrays": f"{name}.npz" if self.arrays else None})
