"""Every measure of similarity by name, with the direction of its score and the coordinates it is taken in.

    own      each side as it is; the widths may differ
    common   both in the coordinates of `a`: b is brought back by the inverse of the map a → b
    target   both in the coordinates of `b`: what the map makes of a, and b itself
    units    the same in the units of the map's standardiser, which are those of `b` where it has none

A number says little by itself: small samples and wide latents make many of them large for things that have nothing to
do with each other. It belongs beside its null (`nulls.py`) and its controls (`controls.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

import numpy as np

from jepatlas.alignment.paired import Progress, check_pairs
from jepatlas.alignment.similarity.cca import pwcca, svcca
from jepatlas.alignment.similarity.cka import cka, cka_debiased
from jepatlas.alignment.similarity.distances import dsc
from jepatlas.alignment.similarity.neighbours import mutual_knn, neighbour_overlap, nos
from jepatlas.alignment.similarity.residuals import mse_per_dim, mse_sum, procrustes_error, r2
from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Direction

__all__ = ["METRICS", "NEIGHBOURS", "Metric", "measure"]

Coordinates = Literal["own", "common", "target", "units"]

NEIGHBOURS = (1, 5, 10, 20, 50)


@dataclass(frozen=True)
class Metric:
    """A measure of similarity: `metric(a, b)` for latents in the coordinates that it is taken in."""

    name: str
    direction: Direction
    meaning: str
    function: Callable[..., float]
    coordinates: Coordinates = "own"
    k: int | None = None
    """The size of neighbourhoods, where it looks at them: there must be more rows."""
    low: float = 0.0
    high: float = 1.0
    """The least and the largest value there can be: no interval goes beyond."""

    def __call__(self, a: np.ndarray, b: np.ndarray) -> float:
        return self.function(a, b) if self.k is None else self.function(a, b, self.k)


_TARGET = (
    Metric("r2", "higher", "share of the target's variance that the map predicts", r2, "target", low=-inf),
    Metric("mse_sum", "lower", "squared error of a mapped row, summed over dimensions", mse_sum, "units", high=inf),
    Metric("mse_per_dim", "lower", "squared error of one mapped number", mse_per_dim, "units", high=inf),
)
_LINEAR = (
    Metric("procrustes_error", "lower", "share of variance that the best rotation leaves, in sample", procrustes_error),
    Metric("svcca", "higher", "mean canonical correlation of the directions with 99% of the variance", svcca),
    Metric("pwcca", "higher", "mean canonical correlation, weighted by what it accounts for in the first", pwcca),
)
_GEOMETRY = (
    Metric("cka", "higher", "linear CKA, biased: large for few rows of many dimensions", cka),
    Metric("cka_debiased", "higher", "linear CKA, debiased: 0 for unrelated latents", cka_debiased, low=-1.0),
    Metric("dsc", "higher", "rank correlation of distances between all pairs of rows", dsc, low=-1.0),
    *(Metric(f"nos_{k}", "lower", f"share of the {k} nearest that are not the same", nos, k=k) for k in NEIGHBOURS),
    Metric("mutual_knn", "higher", "share of the 10 nearest by angle that are the same", mutual_knn, k=10),
)


def _common(metric: Metric) -> Metric:
    meaning = f"{metric.meaning}; in the first model's coordinates"
    return replace(metric, name=f"{metric.name}_common", meaning=meaning, coordinates="common")


def _target(metric: Metric) -> Metric:
    meaning = f"{metric.meaning}; of what the map tells and the second model's"
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
"""Through the inverse of an ill-conditioned map (`common`) distances and neighbours depend on where it is truncated;
through the map itself (`target`) they do not."""


def measure(
    a: np.ndarray,
    b: np.ndarray,
    transition: LinearMap | None = None,
    *,
    names: Iterable[str] | None = None,
    limit: float | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, float]:
    """The named measures (by default all that can be taken) of paired rows; NaN where one is not defined.

    Without a `transition`, a map a → b, there are no common coordinates and only those taken in each side's own.
    `limit` is that of the map's inverse (see `LinearMap.invert`). `progress` is told what is being measured, and how
    many parts of how many are done.
    """
    a, b = check_pairs(a, b, fewest=4)
    pairs: dict[str, tuple[np.ndarray, np.ndarray]] = {"own": (a, b)}
    if transition is not None:
        told, scale = transition.apply(a), transition.y_scale
        pairs |= {"target": (told, b), "units": (told / scale, b / scale)}
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
            raise InputError(f"There is no measure of similarity '{name}'. {did_you_mean(name, METRICS)}")
        if METRICS[name].coordinates not in pairs:
            raise InputError(f"'{name}' is taken in coordinates that both sides share. Give the map from 'a' to 'b'.")
    return [METRICS[name] for name in names]


def _measured(
    metric: Metric, alike: list[Metric], a: np.ndarray, b: np.ndarray, progress: Progress | None
) -> dict[str, float]:
    """The value by name; NOS@k for every k that is asked for at once, because it is the search that takes long."""
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
