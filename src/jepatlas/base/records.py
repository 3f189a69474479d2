"""The records that flow between rooms. All are frozen; none does any work of its own but `LinearMap`.

Shapes, everywhere in jepatlas: `b` rows of a batch, `n` dimensions of the true state z,
`p` of an observation x, `d` of a latent h, `a` of an action u; `t` times, `k` candidates. So `h_bd` is a batch of
latents. Rows are samples. Images are (..., 3, height, width) where networks see them.

This module does not import torch, so that the report can be drawn without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from jepatlas.base.arrays import write_arrays
from jepatlas.base.errors import InputError
from jepatlas.base.files import write_bytes, write_json

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "Direction",
    "Estimate",
    "Experience",
    "LinearMap",
    "Loss",
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
        return cls(name, **asdict(estimate), null=null, threshold=threshold, direction=direction,
                   passed=passed, advice=advice)  # fmt: skip

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
    """What is kept of a piece of work, and all that the report is drawn from: `records/NAME.json` and arrays beside it.

    Figures are small declarative specs (see `jepatlas.report.figures`); tables have a title, columns and rows.
    """

    title: str
    summary: str
    provenance: Mapping[str, Any]
    verdicts: tuple[Verdict, ...] = ()
    figures: tuple[Mapping[str, Any], ...] = ()
    tables: tuple[Mapping[str, Any], ...] = ()
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    """What further readers want to know, for example the claim that an experiment tests."""

    def to_json(self) -> dict[str, Any]:
        """All but the arrays."""
        return asdict(replace(self, arrays={})) | {"arrays": None}

    def save(self, folder: Path, name: str) -> None:
        """Write `folder/records/NAME.json`, after the arrays it refers to."""
        place = folder / "records"
        if self.arrays:
            write_arrays(place / f"{name}.npz", self.arrays)
        write_json(place / f"{name}.json", self.to_json() | {"arrays": f"{name}.npz" if self.arrays else None})


@dataclass(frozen=True)
class LinearMap:
    """A fitted affine map on rows: y = y_mean + y_scale · W ((x − x_mean) / x_scale).

    The scales are those of the standardisers that W was fitted between, and ones where there were none.

    >>> import numpy as np
    >>> turn = LinearMap(np.array([[0., -1.], [1., 0.]]), np.zeros(2), np.zeros(2))
    >>> turn.compose(turn).apply(np.array([[1., 2.]]))
    array([[-1., -2.]])
    """

    weight: np.ndarray  # (d_out, d_in)
    x_mean: np.ndarray  # (d_in,)
    y_mean: np.ndarray  # (d_out,)
    x_scale: np.ndarray = field(default_factory=lambda: np.ones(1))  # (d_in,)
    y_scale: np.ndarray = field(default_factory=lambda: np.ones(1))  # (d_out,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "x_scale", np.broadcast_to(self.x_scale, np.shape(self.x_mean)))
        object.__setattr__(self, "y_scale", np.broadcast_to(self.y_scale, np.shape(self.y_mean)))

    @property
    def raw_weight(self) -> np.ndarray:
        """The matrix between the coordinates themselves, with both scales in it."""
        return self.y_scale[:, None] * self.weight / self.x_scale

    def apply(self, x: np.ndarray) -> np.ndarray:
        return (x - self.x_mean) @ self.raw_weight.T + self.y_mean

    def invert(self, limit: float | None = None) -> LinearMap:
        """The inverse, or the pseudo-inverse where W is not square or not of full rank.

        Where W's condition number is above `limit`, singular values below σ_max / limit are left out: what the map
        hardly carries is not blown up on the way back.
        """
        least = max(self.weight.shape) * np.finfo(np.float64).eps if limit is None else 1 / limit
        back = np.linalg.pinv(self.weight, rcond=least)
        return LinearMap(back, self.y_mean, self.x_mean, self.y_scale, self.x_scale)

    def compose(self, after: LinearMap) -> LinearMap:
        """This map, then `after`."""
        between = self.y_scale / after.x_scale
        y_mean = after.apply(self.y_mean[None])[0]
        return LinearMap((after.weight * between) @ self.weight, self.x_mean, y_mean, self.x_scale, after.y_scale)

    def save(self, path: Path | str) -> None:
        tensors = {part.name: np.ascontiguousarray(getattr(self, part.name)) for part in fields(self)}
        write_bytes(Path(path), safetensors.numpy.save(tensors, metadata={"format": "jepatlas.LinearMap"}))

    @classmethod
    def load(cls, path: Path | str) -> LinearMap:
        try:
            arrays = safetensors.numpy.load_file(path)
        except (OSError, SafetensorError, ValueError) as error:
            raise InputError(f"{path} is not a saved LinearMap: {error}") from error
        names, optional = {part.name for part in fields(cls)}, {"x_scale", "y_scale"}
        if not names - optional <= set(arrays) <= names:
            raise InputError(
                f"{path} is not a saved LinearMap: it holds the arrays {', '.join(sorted(arrays)) or 'none'}, but a "
                "map has weight, x_mean and y_mean, and x_scale and y_scale where it was standardised."
            )
        try:
            loaded = cls(**arrays)
        except ValueError as error:  # scales of another width
            raise InputError(f"{path} is not a saved LinearMap: {error}") from error
        shapes = [getattr(loaded, key).shape for key in ("weight", "x_mean", "y_mean")]
        if shapes[0] != shapes[2] + shapes[1] or len(shapes[0]) != 2:
            raise InputError(f"{path} is not a saved LinearMap: weight, x_mean and y_mean have shapes {shapes}.")
        return loaded
