"""Every statistic, defined once: streaming moments, the Epps–Pulley test of normality, bootstrap intervals, ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from jepatlas.core.characteristic import characteristic_function
from jepatlas.core.distributed import mean_over_processes, world_size
from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate

__all__ = ["Moments", "batch_covariance", "bootstrap", "epps_pulley", "epps_pulley_null", "mean_ranks", "spearman"]


@dataclass(frozen=True)
class Moments:
    """Count, mean and scatter Σ(x − mean)(x − mean)ᵀ of rows; moments of parts merge to those of the whole.

    >>> x = torch.randn(100, 3, dtype=torch.float64)
    >>> both = Moments.of(x[:30]).merge(Moments.of(x[30:]))
    >>> torch.allclose(both.covariance, x.T.cov())
    True
    """

    count: int
    mean: Tensor  # (d,) float64
    scatter: Tensor  # (d, d) float64

    @classmethod
    def of(cls, rows: Tensor) -> Moments:
        rows = rows.detach().double()
        mean = rows.sum(0) / max(len(rows), 1)  # no rows are a valid part: they change nothing
        centred = rows - mean
        return cls(len(rows), mean, centred.T @ centred)

    def merge(self, other: Moments) -> Moments:
        count = self.count + other.count
        if count == 0:
            return self
        shift = other.mean - self.mean
        scatter = self.scatter + other.scatter + torch.outer(shift, shift) * (self.count * other.count / count)
        return Moments(count, self.mean + shift * (other.count / count), scatter)

    def over_processes(self) -> Moments:
        """The moments of all processes' rows, the same bits on each of them."""
        parts: list[Any] = [None] * world_size()
        if len(parts) == 1:
            return self
        dist.all_gather_object(parts, (self.count, self.mean.cpu(), self.scatter.cpu()))
        merged = Moments(*parts[0])
        for part in parts[1:]:
            merged = merged.merge(Moments(*part))
        return merged

    @property
    def covariance(self) -> Tensor:
        return self.scatter / (self.count - 1)


def batch_covariance(h_bd: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and unbiased covariance of the rows of all processes, differentiable; two passes, for float32's sake."""
    mean = mean_over_processes(h_bd.mean(0))
    centred = h_bd - mean
    count = len(h_bd) * world_size()
    return mean, mean_over_processes(centred.T @ centred / len(h_bd)) * (count / (count - 1))


def epps_pulley(samples_bs: Tensor, knots: int = 17, limit: float = 3.0) -> Tensor:
    """Distance of each column from N(0, 1):  n ∫ |φ̂(t) − e^{−t²/2}|² e^{−t²/2} dt  over [−limit, limit].

    φ̂ is the empirical characteristic function of the rows of *all* processes. It is averaged over them
    before squaring: the mean of squares would be a different, batch-size-dependent statistic.
    Half precision is raised to float32: it is too coarse for a sum of squares of small gaps.
    """
    samples_bs = samples_bs.to(torch.promote_types(samples_bs.dtype, torch.float32))
    weight, target = _quadrature(knots, limit, samples_bs.dtype, samples_bs.device)
    cosine, sine = characteristic_function(samples_bs, knots, limit)
    gap = (mean_over_processes(cosine) - target).square() + mean_over_processes(sine).square()
    return len(samples_bs) * world_size() * (weight @ gap)


@cache
def epps_pulley_null(knots: int = 17, limit: float = 3.0) -> float:
    """Expected value of `epps_pulley` for standard normal samples, ∫ (1 − e^{−t²}) e^{−t²/2} dt, whatever n is.

    >>> round(epps_pulley_null(), 3)
    1.052
    """
    weight, target = _quadrature(knots, limit, torch.float64, torch.device("cpu"))
    return float(weight @ (1 - target.square()))


@cache  # asked for at every step, always the same
@torch.inference_mode(False)  # so that what was first asked for without gradients serves later ones, too
def _quadrature(knots: int, limit: float, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Trapezoid rule on [0, limit], doubled by symmetry; its weights include e^{−t²/2}."""
    t = torch.linspace(0, limit, knots, dtype=dtype, device=device)
    target = torch.exp(-t.square() / 2)
    weight = torch.full_like(t, 2 * limit / (knots - 1))
    weight[0] = weight[-1] = limit / (knots - 1)
    return weight * target, target[:, None]


Statistic = Callable[[np.ndarray], Mapping[str, float]]


def bootstrap(
    statistic: Statistic,
    n: int,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
    level: float = 0.95,
    centred: bool = False,
) -> dict[str, Estimate]:
    """Percentile intervals of named statistics, from row weights that sum to n.

    `statistic(weights)` is called with ones for the value itself, then with multinomial counts. Rows of one
    group share a count, so that the interval does not take correlated rows for independent ones.

    `centred` moves the draws so that their mean is the value. That is for statistics that are never negative or are
    extremes (a norm, the largest eigenvalue): noise makes them larger, the draws have that noise twice, and their
    percentiles may lie above the value itself. The interval then is of the value, which has the noise of one sample:
    hold it against a null that has the same.

    >>> x = np.arange(1000.0)
    >>> bootstrap(lambda w: {"mean": np.average(x, weights=w)}, 1000, np.random.default_rng(0))["mean"].value
    499.5
    """
    labels = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    count = len(np.unique(labels))
    if len(labels) != n:
        raise InputError(f"There are {n} rows to draw from, but {len(labels)} group labels.")
    if count < 2:
        raise InputError(f"A confidence interval needs at least 2 groups of samples, but there is only {count}.")
    if replicates < 1:
        raise InputError(f"A confidence interval needs at least 1 replicate, but {replicates} were asked for.")
    value = statistic(np.ones(n))
    draws: dict[str, list[float]] = {name: [] for name in value}
    for _ in range(replicates):
        weights = np.bincount(rng.integers(count, size=count), minlength=count)[labels]
        for name, drawn in statistic(weights * (n / weights.sum())).items():
            draws[name].append(drawn)
    tail = (1 - level) / 2
    shifts = {name: value[name] - np.mean(values) if centred else 0.0 for name, values in draws.items()}
    limits = {name: np.quantile(values, [tail, 1 - tail]) + shifts[name] for name, values in draws.items()}
    return {name: Estimate(float(value[name]), float(low), float(high), n) for name, (low, high) in limits.items()}


def mean_ranks(x: np.ndarray) -> np.ndarray:
    """Ranks from 1 on, those of equal numbers averaged; a NaN leaves none. (`scipy.stats` takes a second to load.)

    >>> mean_ranks(np.array([3.0, 1.0, 3.0]))
    array([2.5, 1. , 2.5])
    """
    if np.isnan(x).any():
        return np.full(len(x), np.nan)
    _, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def spearman(x: np.ndarray, y: np.ndarray) -> Estimate:
    """Rank correlation with Fisher's interval in the form of Bonett and Wright; ties share their mean rank.

    >>> spearman(np.arange(30.0), np.arange(30.0) ** 3).value
    1.0
    """
    n = len(x)
    if n < 2 or len(y) != n:
        raise InputError(f"A rank correlation needs at least 2 pairs of numbers, but there are {n} and {len(y)}.")
    ranks = np.stack([mean_ranks(x), mean_ranks(y)])
    value = float(np.corrcoef(ranks)[0, 1].round(12)) if np.ptp(ranks, axis=1).all() else float("nan")
    if n <= 3:
        return Estimate(value, -1.0, 1.0, n)
    centre = np.arctanh(np.clip(value, -1 + 1e-9, 1 - 1e-9))
    reach = 1.96 * np.sqrt((1 + value**2 / 2) / (n - 3))
    return Estimate(value, float(np.tanh(centre - reach)), float(np.tanh(centre + reach)), n)
