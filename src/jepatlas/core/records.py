"""The records that flow between rooms. All are frozen, and none does any work of its own.

Shapes, everywhere in jepatlas: `b` rows of a batch, `n` dimensions of the true state z,
`p` of an observation x, `d` of a latent h, `a` of an action u; `t` times, `k` candidates. So `h_bd` is a batch of
latents. Rows are samples. Images are (..., 3, height, width) where networks see them.

This module does not import torch, so that the report can be drawn without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from jepatlas.core.arrays import write_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.figures import Figure, Table, as_figure, as_table
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
    "Steps",
    "Verdict",
    "Windows",
]

Direction = Literal["higher", "lower"]


@dataclass(frozen=True)
class Pairs:
    """Two views of one state, or of a state and its successor; z is the truth behind them."""

    x: Tensor  # (b, p)
    x_next: Tensor  # (b, p)
    z: Tensor  # (b, n)
    z_next: Tensor  # (b, n)


@dataclass(frozen=True)
class Steps:
    """Observed steps with what they cost, and goals drawn from the same data: what an energy is learned from."""

    x: Tensor  # (b, p)
    x_next: Tensor  # (b, p)
    cost: Tensor  # (b,)
    goal: Tensor  # (b, p)


@dataclass(frozen=True)
class Windows:
    """Stretches of episodes: what was seen at t + 1 times, and what was done between them."""

    frames: Tensor  # (b, t + 1, p) or (b, t + 1, 3, height, width)
    u: Tensor  # (b, t, a)
    z: Tensor | None = None  # (b, t + 1, n), where it is known

    @property
    def x(self) -> Tensor:
        """What is seen first: (b, p) or (b, 3, height, width)."""
        return self.frames[:, 0]


CropKind = Literal["one", "two", "multi"]
"""What an objective is given of an image: one crop, two of its full size, or two and several smaller ones."""


@dataclass(frozen=True)
class Crops:
    """Augmented crops of the same images, row by row: `x`, and as many others as an objective asks for."""

    x: Tensor  # (b, 3, height, width), bytes or 0 … 1
    others: tuple[Tensor, ...] = ()  # each (b, 3, height, width); local crops are smaller

    @property
    def all(self) -> tuple[Tensor, ...]:
        return (self.x, *self.others)


@dataclass(frozen=True)
class PairedCrops:
    """Crops of each agent's own images, and states that two agents share, row by row: as each of them sees them.

    Of a teacher that is not there, what it told of the states stands in the place of images.
    """

    own: tuple[Crops, ...]  # of each agent that learns
    shared: tuple[Tensor, Tensor]  # each (b', 3, height, width), or (b', k) of a teacher

    @property
    def x(self) -> Tensor:
        """What the first agent sees."""
        return self.own[0].x


@dataclass(frozen=True)
class Plan:
    """What to do, for each start, and what that is expected to cost."""

    actions: Tensor  # (b, t, a)
    cost: Tensor  # (b,)


@dataclass(frozen=True)
class Experience:
    """Steps x → x_next as they were observed, in order within each episode; z is the truth behind x, where known."""

    x: np.ndarray  # (t, p)
    x_next: np.ndarray  # (t, p)
    cost: np.ndarray  # (t,)
    episode: np.ndarray  # (t,) whole numbers
    z: np.ndarray | None = None  # (t, n)
    z_next: np.ndarray | None = None  # (t, n)


@dataclass(frozen=True)
class Loss:
    """What every objective returns: the number to descend, and the terms it is made of."""

    total: Tensor  # ()
    terms: Mapping[str, Tensor] = field(default_factory=dict)  # each (), detached


@dataclass(frozen=True)
class Estimate:
    """A number from n samples, with its 95% confidence interval."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Verdict:
    """A judged estimate: never a bare number.

    `passed` is decided by the worse end of the interval (and the value), so that noise cannot pass a test
    (an assumption that is audited fails only on evidence against it);
    it is None where there is no threshold and the number only informs.
    `null` is what the same statistic gives where there is nothing to find.
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
        """Compare an estimate with its threshold; `good` and `bad` are the advice for either case."""
        passed = None
        if threshold is not None:
            # numpy's min and max keep a NaN, whichever of the three it is, and NaN passes nothing
            numbers = [estimate.value, estimate.low, estimate.high]
            passed = bool(np.min(numbers) >= threshold if direction == "higher" else np.max(numbers) <= threshold)
        advice = bad if passed is False else good
        return cls(
            name, **asdict(estimate), null=null, threshold=threshold, direction=direction, passed=passed, advice=advice
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        numbers = {"value", "low", "high", "null", "threshold"}
        try:
            fields: dict[str, Any] = {k: float(v) if k in numbers and v is not None else v for k, v in data.items()}
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
    figures: tuple[Figure | Mapping[str, Any], ...] = ()
    tables: tuple[Table | Mapping[str, Any], ...] = ()
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    """What further readers want to know, for example the claim that an experiment tests."""

    def to_json(self) -> dict[str, Any]:
        """All but the arrays."""
        return {
            "title": self.title,
            "summary": self.summary,
            "provenance": dict(self.provenance),
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
            "figures": [as_figure(figure).to_json() for figure in self.figures],
            "tables": [as_table(table).to_json() for table in self.tables],
            "about": dict(self.about),
            "arrays": None,
        }

    def save(self, folder: Path, name: str) -> None:
        """Write `folder/records/NAME.json`, after the arrays it refers to."""
        place = folder / "records"
        if self.arrays:
            write_arrays(place / f"{name}.npz", self.arrays)
        write_json(place / f"{name}.json", self.to_json() | {"arrays": f"{name}.npz" if self.arrays else None})
