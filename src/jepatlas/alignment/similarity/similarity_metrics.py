"""All similarity metrics by name, with their direction and the coordinates they are computed in.

    own      each side as it is; widths may differ
    common   both in the coordinates of `a`: b is mapped back by the inverse of the map a → b
    target   both in the coordinates of `b`: the mapped a, and b
    units    the same, divided by the standard deviations of the map's standardiser (if it has one)

Many metrics are large for unrelated latents if samples are small and latents wide. Compare a value with its null
(`nulls.py`) and its controls (`controls.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

import numpy as np

from jepatlas.alignment.paired import Progress, centred, check_columns, check_pairs
from jepatlas.alignment.similarity.canonical_correlation import pwcca, svcca
from jepatlas.alignment.similarity.distance_structure import dsc
from jepatlas.alignment.similarity.kernel_alignment import cka, cka_debiased
from jepatlas.alignment.similarity.nearest_neighbours import mutual_knn, neighbour_overlap, nos
from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.core.linear import r2 as pooled_r2
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Direction

__all__ = ["METRICS", "NEIGHBOURS", "Metric", "measure", "mse_per_dim", "mse_sum", "procrustes_error", "r2"]

Coordinates = Literal["own", "common", "target", "units"]

NEIGHBOURS = (1, 5, 10, 20, 50)


def mse_sum(a: np.ndarray, b: np.ndarray) -> float:
    """E‖b − a‖²: mean squared error of a row, summed over dimensions."""
    a, b = check_columns(a, b)
    return float(np.square(b - a).sum(1).mean())


def mse_per_dim(a: np.ndarray, b: np.ndarray) -> float:
    """Mean squared error per dimension."""
    return mse_sum(a, b) / np.shape(b)[1]


def r2(a: np.ndarray, b: np.ndarray) -> float:
    """Share of b's variance that a predicts, pooled over dimensions; NaN if b is constant."""
    a, b = check_columns(a, b)
    return pooled_r2(b, a)


def procrustes_error(a: np.ndarray, b: np.ndarray) -> float:
    """Share of the variance left by the best rotation, scale and shift, from 0 to 1; NaN for constant latents.

    min over rotations Q and scales c of ‖B − cAQᵀ‖² / ‖B‖² = 1 − ‖AᵀB‖_*² / (‖A‖²‖B‖²) for centred rows. The rotation
    is fitted on the same rows, so the error is small for few rows of any latents.


    >>> a = np.random.default_rng(0).standard_normal((100, 3))
    >>> abs(round(procrustes_error(a, 1 - 2 * a[:, ::-1]), 12))
    0.0
    """
    a, b = (_narrow(centred(x)) for x in check_pairs(a, b))
    sizes = np.square(a).sum() * np.square(b).sum()
    if not sizes > 0:
        return float("nan")
    return float(max(0.0, 1 - np.linalg.norm(a.T @ b, "nuc") ** 2 / sizes))


def _narrow(x: np.ndarray) -> np.ndarray:
    """x, or coordinates of its rows in their span if it has more columns than rows; XXᵀ is unchanged."""
    return x if x.shape[1] <= len(x) else np.linalg.qr(x.T).R.T


@dataclass(frozen=True)
class Metric:
    """A similarity metric: `metric(a, b)` for latents in its coordinates."""

    name: str
    direction: Direction
    meaning: str
    function: Callable[..., float]
    coordinates: Coordinates = "own"
    k: int | None = None
    """Size of neighbourhoods, if it uses them; more rows are needed."""
    low: float = 0.0
    high: float = 1.0
    """Smallest and largest possible value; intervals are clipped to them."""

    def __call__(self, a: np.ndarray, b: np.ndarray) -> float:
        return self.function(a, b) if self.k is None else self.function(a, b, self.k)


_TARGET = (
    Metric("r2", "higher", "share of the target's variance that the map predicts", r2, "target", low=-inf),
    Metric("mse_sum", "lower", "squared error of a mapped row, summed over dimensions", mse_sum, "units", high=inf),
    Metric("mse_per_dim", "lower", "squared error of one mapped number", mse_per_dim, "units", high=inf),
)
_LINEAR = (
    Metric(
        "procrustes_error",
        "lower",
        "share of variance that the best rotation leaves, in sample",
        procrustes_error,
    ),
    Metric("svcca", "higher", "mean canonical correlation of the directions with 99% of the variance", svcca),
    Metric("pwcca", "higher", "mean canonical correlation, weighted by explained variance of the first model", pwcca),
)
_GEOMETRY = (
    Metric("cka", "higher", "linear CKA, biased: large for few rows with many dimensions", cka),
    Metric("cka_debiased", "higher", "linear CKA, debiased: 0 for unrelated latents", cka_debiased, low=-1.0),
    Metric("dsc", "higher", "rank correlation of distances between all pairs of rows", dsc, low=-1.0),
    *(Metric(f"nos_{k}", "lower", f"share of the {k} nearest neighbours that differ", nos, k=k) for k in NEIGHBOURS),
    Metric("mutual_knn", "higher", "share of the 10 nearest neighbours by angle that agree", mutual_knn, k=10),
)


def _common(metric: Metric) -> Metric:
    meaning = f"{metric.meaning}; in the first model's coordinates"
    return replace(metric, name=f"{metric.name}_common", meaning=meaning, coordinates="common")


def _target(metric: Metric) -> Metric:
    meaning = f"{metric.meaning}; mapped latents against the second model's"
    return replace(metric, name=f"{metric.name}_target", meaning=meaning, coordinates="units")


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        *_TARGET,
        *_LINEAR,
        *_GEOMETRY,
        *map(_common, _GEOMETRY),
        *(_target(metric) for metric in _GEOMETRY if metric.function in (dsc, nos)),
    )
}
"""Distances and neighbours through the inverse of an ill-conditioned map (`common`) depend on its truncation; through
the map itself (`target`) they do not."""


def measure(
    a: np.ndarray,
    b: np.ndarray,
    transition: LinearMap | None = None,
    *,
    names: Iterable[str] | None = None,
    limit: float | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, float]:
    """Metrics of paired rows by name; NaN if undefined.

    Without a `transition`, a map a → b, only metrics in each side's own coordinates are available. By default all
    available metrics are measured. `limit` truncates the map's inverse (see `LinearMap.invert`). `progress` is called
    with the metric's name and the numbers of finished and of all parts.
    """
    a, b = check_pairs(a, b, fewest=4)
    pairs: dict[str, tuple[np.ndarray, np.ndarray]] = {"own": (a, b)}
    if transition is not None:
        mapped, scale = transition.apply(a), transition.y_scale
        pairs |= {"target": (mapped, b), "units": (mapped / scale, b / scale)}
        pairs["common"] = (a, transition.invert(limit).apply(b))
    chosen, found = _chosen(names, pairs), dict[str, float]()
    for metric in chosen:
        if metric.name not in found:
            report = progress and (lambda done, total, name=metric.name: progress(name, done, total))
            alike = [other for other in chosen if other.coordinates == metric.coordinates]
            found |= _measured(metric, alike, *pairs[metric.coordinates], report)
    return {metric.name: found[metric.name] for metric in chosen}


def _chosen(names: Iterable[str] | None, pairs: Mapping[str, object]) -> list[Metric]:
    if names is None:
        return [metric for metric in METRICS.values() if metric.coordinates in pairs]
    names = list(names)
    for name in names:
        if name not in METRICS:
            raise InputError(f"There is no similarity metric '{name}'. {did_you_mean(name, METRICS)}")
        if METRICS[name].coordinates not in pairs:
            raise InputError(f"'{name}' needs common coordinates: give 'transition', the map from 'a' to 'b'.")
    return [METRICS[name] for name in names]


def _measured(
    metric: Metric, alike: list[Metric], a: np.ndarray, b: np.ndarray, progress: Progress | None
) -> dict[str, float]:
    """The value by name. NOS@k is measured for all requested k at once, because the search dominates."""
    if metric.k is not None and metric.k >= len(a):
        return {metric.name: float("nan")}
    if metric.function is nos:
        ks = {other.name: other.k for other in alike if other.function is nos and other.k and other.k < len(a)}
        shares = neighbour_overlap(a, b, list(ks.values()), progress=progress)
        return {name: float(1 - shares[k].mean()) for name, k in ks.items()}
    if metric.function is dsc:
        return {metric.name: dsc(a, b, progress=progress)}
    if metric.function is mutual_knn and metric.k is not None:
        return {metric.name: mutual_knn(a, b, metric.k, progress=progress)}
    value = metric(a, b)
    if progress is not None:
        progress(1, 1)
    return {metric.name: value}
