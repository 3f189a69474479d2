"""Metrics over batches, with the methods of torchmetrics: `update`, `compute`, `reset`, and `sync` over processes.

    metric = LinearR2()
    for x, z in loader:
        metric.update(model(x), z)
    print(metric.sync().compute())

The state of a metric has a fixed size and merges: the result does not depend on how rows are divided into batches or
processes. (`MutualKNN` is exact up to its number of rows, and an estimate from a random sample above it.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from jepatlas.alignment.similarity import cka_of, mutual_knn
from jepatlas.core.arrays import check_finite
from jepatlas.core.distributed import gather_values, rank
from jepatlas.core.errors import InputError, check_count
from jepatlas.core.linear_moments import PairMoments, least_squares_of
from jepatlas.core.moments import Moments
from jepatlas.core.normality import characteristic_function, epps_pulley_of
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.identifiability.dimension.rank import rank_of
from jepatlas.objectives import SIGRegConfig, draw_slices

__all__ = ["CKA", "EffectiveRank", "LinearR2", "MutualKNN", "SIGRegStatistic", "StreamedMetric", "as_matrix"]


class Mergeable(Protocol):
    def merge(self, other: Self) -> Self: ...


State = TypeVar("State", bound=Mergeable)


class StreamedMetric(ABC, Generic[State]):
    """A number computed from a state that merges."""

    def __init__(self) -> None:
        self.state: State | None = None

    @abstractmethod
    def _value(self, state: State) -> float:
        """The metric of all rows so far."""

    def compute(self) -> float:
        """The metric of the rows that this process has seen; call `sync()` first for those of all processes."""
        if self.state is None:
            raise InputError(f"{type(self).__name__} has seen no rows. Call update before compute.")
        return self._value(self.state)

    def reset(self) -> None:
        """Forget all rows."""
        self.state = None

    def merge(self, other: Self) -> Self:
        """A new metric of the rows of both."""
        return self._of([self.state, other.state])

    def sync(self) -> Self:
        """A new metric of the rows of all processes, equal on each of them; every process must call it."""
        return self._of(gather_values(self.state))

    def _of(self, states: list[State | None]) -> Self:
        merged = copy(self)
        merged.state = None
        for state in states:
            if state is not None:
                merged._add(state)
        return merged

    def _add(self, part: State) -> None:
        self.state = part if self.state is None else self.state.merge(part)


class CKA(StreamedMetric[PairMoments]):
    """Biased linear CKA between two sets of latents, from 0 to 1.

    With fewer than about ten rows per dimension the bias is large; use `cka_debiased` on the rows there.

    >>> a = torch.randn(100, 3, generator=torch.Generator().manual_seed(0))
    >>> metric = CKA()
    >>> for part in a.split(30):
    ...     metric.update(part, 7 * part)
    >>> round(metric.compute(), 6)
    1.0
    """

    def update(self, a: Any, b: Any) -> None:
        self._add(PairMoments.of(*_pairs(a=a, b=b)))

    def _value(self, state: PairMoments) -> float:
        return cka_of(state)


@dataclass(frozen=True)
class _Halves:
    """Moments of the rows to fit on, and of those to score on."""

    fit: PairMoments
    score: PairMoments

    def merge(self, other: _Halves) -> _Halves:
        return _Halves(self.fit.merge(other.fit), self.score.merge(other.score))


class LinearR2(StreamedMetric[_Halves]):
    """Held-out R² of `z` from `h` by least squares: every other row is used to fit, the others to score."""

    def update(self, h: Any, z: Any) -> None:
        h_bd, z_bn = _pairs(h=h, z=z)
        first = 0
        if self.state is not None:  # continue alternating, also for batches of one row
            first = int(self.state.fit.count > self.state.score.count)
        fit, score = slice(first, None, 2), slice(1 - first, None, 2)
        self._add(_Halves(PairMoments.of(h_bd[fit], z_bn[fit]), PairMoments.of(h_bd[score], z_bn[score])))

    def _value(self, state: _Halves) -> float:
        if state.fit.count <= state.fit.d_in:
            raise InputError(
                f"LinearR2 of {state.fit.d_in} latents needs more than {2 * state.fit.d_in} rows, but has seen "
                f"{state.fit.count + state.score.count:.0f}."
            )
        return state.score.r2(least_squares_of(state.fit))


class EffectiveRank(StreamedMetric[Moments]):
    """The number of latent directions that vary, as in a certificate (`effective_rank`)."""

    def update(self, h: Any) -> None:
        self._add(Moments.of(torch.from_numpy(_rows("h", h))))

    def _value(self, state: Moments) -> float:
        return float(rank_of(state.covariance.numpy())) if state.count > 1 else float("nan")


@dataclass(frozen=True)
class _Waves:
    """Sums of cos(t_k u) and sin(t_k u) over rows, for all slices."""

    cosine: Tensor  # (k, s) float64
    sine: Tensor  # (k, s) float64
    count: int

    def merge(self, other: _Waves) -> _Waves:
        return _Waves(self.cosine + other.cosine, self.sine + other.sine, self.count + other.count)


class SIGRegStatistic(StreamedMetric[_Waves]):
    """The SIGReg statistic of all rows; 1.05 is expected of N(0, I) for any number of rows (`epps_pulley_null`).

    For other latents it grows with the number of rows, so compare values of equally many. The slices depend on the seed
    only.
    """

    def __init__(self, config: SIGRegConfig | None = None, seed: int = 0) -> None:
        super().__init__()
        self.config = config or SIGRegConfig()
        self.seed = seed

    def update(self, h: Any) -> None:
        rows = torch.from_numpy(_rows("h", h))
        c = self.config
        slices = draw_slices(rows.shape[1], c.slices, torch_generator(self.seed, "slices"), c.design)
        cosine, sine = characteristic_function(rows @ slices.to(rows), c.knots, c.limit)
        count = len(rows)
        self._add(_Waves(cosine.double() * count, sine.double() * count, count))

    def _value(self, state: _Waves) -> float:
        count = state.count
        return float(epps_pulley_of(state.cosine / count, state.sine / count, count, self.config.limit).mean())


@dataclass(frozen=True)
class _Sample:
    """A uniform sample of rows: those with the smallest of random priorities, so that samples merge."""

    priority: np.ndarray  # (b,)
    a: np.ndarray  # (b, d)
    b: np.ndarray  # (b, e)
    most: int

    def merge(self, other: _Sample) -> _Sample:
        return _Sample(
            np.concatenate([self.priority, other.priority]),
            np.concatenate([self.a, other.a]),
            np.concatenate([self.b, other.b]),
            self.most,
        ).trimmed()

    def trimmed(self) -> _Sample:
        if len(self.priority) <= self.most:
            return self
        kept = np.sort(np.argpartition(self.priority, self.most)[: self.most])
        return _Sample(self.priority[kept], self.a[kept], self.b[kept], self.most)


class MutualKNN(StreamedMetric[_Sample]):
    """Mean share of common k nearest neighbours by angle, on a random sample of at most `rows` rows.

    Unrelated latents share k / (rows − 1) by chance, so compare values of equally many rows.
    """

    def __init__(self, k: int = 10, rows: int = 4096, seed: int = 0) -> None:
        super().__init__()
        check_count("k", k)
        check_count("rows", rows, k + 1)
        self.k, self.most, self.seed = k, rows, seed
        self.batches = 0

    def update(self, a: Any, b: Any) -> None:
        a_bd, b_be = _pairs(a=a, b=b)
        # priorities of different processes must be independent
        priority = numpy_generator(self.seed, f"priority/{rank()}", self.batches).random(len(a_bd))
        self.batches += 1
        self._add(_Sample(priority, a_bd, b_be, self.most).trimmed())

    def _value(self, state: _Sample) -> float:
        return mutual_knn(state.a, state.b, self.k)


def _pairs(**given: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two matrices with equally many rows."""
    (first, a), (second, b) = ((name, _rows(name, value)) for name, value in given.items())
    if len(a) != len(b):
        raise InputError(f"'{first}' and '{second}' must have the same number of rows, but have {len(a)} and {len(b)}.")
    return a, b


def _rows(name: str, given: Any) -> np.ndarray:
    """A finite matrix with one row per sample, from a tensor of any device and dtype, or an array."""
    rows = as_matrix(name, given)
    if rows.dtype != torch.float64:
        rows = rows.float()
    array = rows.cpu().numpy()
    check_finite(name, array)
    return array


def as_matrix(name: str, given: Any) -> Tensor:
    """A tensor with one row per sample, without copying and on its device."""
    try:
        rows = torch.as_tensor(given).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"'{name}' must be a tensor or an array, not a {type(given).__name__}.") from error
    if rows.ndim != 2:
        raise InputError(f"'{name}' must be a matrix with one row per sample, but has shape {tuple(rows.shape)}.")
    return rows
