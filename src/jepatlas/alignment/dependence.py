"""Dependence between rows that were given without groups: near copies of each other, and time series.

Rows that are near copies on one side, and similar on the other, form clusters. A linear map of more dimensions than
clusters memorises their centres, so that unrelated models align if copies are on both sides of a split. Near copies
show as a gap among the distances of all pairs: for rows from a density in D dimensions the number of pairs within a
distance t grows as t^D, and so at least by a third from t to 1.35 t.

Rows are a time series if neighbouring rows are correlated on both sides. With r the autocorrelations of the slowest
directions, by slow feature analysis of the leading principal components, the number of rows per independent pair is

    τ = 1 + 2 Σ_k r_a(k) r_b(k)

If either side is independent from row to row, shuffled pairs are a valid null, whatever the other side is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.linalg
import scipy.sparse

from jepatlas.alignment.nulls import ENOUGH
from jepatlas.core.linear import subsample

__all__ = ["Dependence", "find_dependence"]

MIN_ROWS = 40
WIDTH = 64  # random directions that distances are computed in
QUERIES = 1000
"""Rows whose distances to all others show whether there are near copies."""
MOST_ROWS = 50_000  # in stretches of neighbouring rows
MOST_CLUSTERED = 30_000
GAP = 1.35
BRIDGES = 0.1  # pairs with distances in the gap, relative to those below it
COPIES = 0.2  # near copies per row
FEWEST_PAIRS = 80
DISTINCT = 0.75  # squared distance, in units of the typical one, at which a gap must have ended
FEWEST_CLUSTERS = 5
LARGEST_CLUSTER = 0.25  # share of the rows
SIMILAR = 0.1  # share of the other side's variance between clusters, beyond chance

ROUNDING = 1e-6  # of squared distances of standardised rows in float32

COMPONENTS = 32
ROWS_PER_COMPONENT = 50
SHUFFLES = 39
DEPENDENT = 0.1  # product of both sides' correlations of neighbouring rows from which intervals are too narrow
NEGLIGIBLE = 0.05  # autocorrelation at which the sum ends
BLOCK_LENGTH = 5  # in correlation times τ
MIN_BLOCKS = 2 * (ENOUGH + 1)  # so that half of them suffice for shifts


@dataclass(frozen=True)
class Dependence:
    """How rows depend on each other; `groups` or `block` for a split that keeps dependent rows together."""

    kind: Literal["none", "near copies", "time series"] = "none"
    groups: np.ndarray | None = None  # (n,) clusters of near copies; None if there are too many rows to cluster
    block: int | None = None  # rows of a time block
    correlation: float = 0.0
    """Of neighbouring rows of a time series, in the slowest direction of the side where it is smaller."""
    times: float = math.inf
    """Length of a time series in correlation times τ."""

    @property
    def what(self) -> str:
        """What was found, as the start of a sentence; empty for independent rows."""
        if self.kind == "near copies":
            clusters = "" if self.groups is None else f" in {self.groups.max() + 1} clusters"
            return f"Rows are near copies of each other{clusters}"
        if self.kind == "time series":
            return f"Neighbouring rows are correlated ({self.correlation:.2f}), as in a time series"
        return ""


def find_dependence(a: np.ndarray, b: np.ndarray, seed: int = 0) -> Dependence:
    """Near copies or a time series among the paired rows a (n, d_a), b (n, d_b).

    >>> rng = np.random.default_rng(0)
    >>> a, b = (np.repeat(rng.standard_normal((30, 8)), 4, 0) + 0.01 * rng.standard_normal((120, 8)) for _ in range(2))
    >>> find_dependence(a, b).kind
    'near copies'
    >>> find_dependence(a[::4], b[::4]).kind
    'none'
    """
    if len(a) < MIN_ROWS:
        return Dependence()
    rng = np.random.default_rng(seed)
    kept = _stretches(len(a))
    sides = [_standardised(side, kept) for side in (a, b)]
    if sides[0].size == 0 or sides[1].size == 0:
        return Dependence()
    copies = _near_copies(sides, rng)
    if copies is not None:
        return Dependence("near copies", copies if len(kept) == len(a) and len(copies) else None)
    return _time_series(sides, len(a), rng)


def _stretches(n: int, count: int = 16) -> np.ndarray:
    """All rows, or evenly spaced stretches of neighbouring ones."""
    if n <= MOST_ROWS:
        return np.arange(n)
    length = MOST_ROWS // count
    starts = np.linspace(0, n - length, count).astype(int)
    return (starts[:, None] + np.arange(length)).ravel()


def _standardised(side: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """The columns that vary, with mean 0 and variance 1, in float32."""
    rows = side[kept] if len(kept) < len(side) else side
    first = rows[0].astype(np.float64)
    mean = first + (rows - first).mean(0)
    spread = (rows - mean).std(0)
    varies = spread > 1e-9 * np.abs(mean)
    return ((rows[:, varies] - mean[varies]) / spread[varies]).astype(np.float32)


# --- near copies ---


def _near_copies(sides: list[np.ndarray], rng: np.random.Generator) -> np.ndarray | None:
    """Labels of clusters of near copies; empty if there are too many rows to cluster, None without near copies."""
    queries = subsample(rng.permutation(len(sides[0])), QUERIES)
    projected = [_projected(side, rng) for side in sides]
    for one, other in ((projected[0], sides[1]), (projected[1], sides[0])):
        radius = _gap(one, queries)
        if radius is None:
            continue
        some = np.arange(len(one)) if len(one) <= MOST_CLUSTERED else np.arange(MOST_CLUSTERED)
        labels = _clusters(one[some], radius)
        sizes = np.bincount(labels)
        if len(sizes) < FEWEST_CLUSTERS or sizes.max() > LARGEST_CLUSTER * len(some):
            continue
        if _between(other[some], labels) > max(SIMILAR, 3 / math.sqrt(len(sizes))):
            return labels if len(some) == len(one) else np.empty(0, int)
    return None


def _projected(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows in random directions, in which distances are about the same."""
    if rows.shape[1] <= WIDTH:
        return rows
    directions = np.linalg.qr(rng.standard_normal((rows.shape[1], WIDTH)))[0]
    return rows @ directions.astype(np.float32)


def _gap(rows: np.ndarray, queries: np.ndarray) -> float | None:
    """The squared distance at the lower end of a gap below which there are many pairs; None if there is none."""
    found = np.concatenate([_squares(rows, part, rows).ravel() for part in np.array_split(queries, 20) if len(part)])
    end = DISTINCT * float(np.median(found[:: max(1, len(found) // 100_000)]))
    found = np.sort(found[found < end])[len(queries) :]  # without the distances of rows to themselves
    below = np.arange(1, len(found) + 1)
    limit = GAP**2 * np.maximum(found, ROUNDING)
    between = np.searchsorted(found, limit) - below
    gaps = np.flatnonzero(
        (below >= max(COPIES * len(queries), FEWEST_PAIRS)) & (between <= BRIDGES * below) & (limit <= end)
    )
    return float(found[gaps[-1]]) if len(gaps) else None


def _squares(rows: np.ndarray, queries: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Squared distances of some rows to others, relative to the number of columns."""
    first = rows[queries]
    norms = np.einsum("ij,ij->i", others, others)
    products = first @ others.T
    squares = np.einsum("ij,ij->i", first, first)[:, None] + norms - 2 * products
    return np.maximum(squares, 0) / rows.shape[1]


def _clusters(rows: np.ndarray, radius: float) -> np.ndarray:
    """Connected components of rows within the (squared) radius."""
    firsts: list[np.ndarray] = []
    seconds: list[np.ndarray] = []
    for part in np.array_split(np.arange(len(rows)), max(1, len(rows) // 500)):
        near = np.nonzero(_squares(rows, part, rows) <= 1.01 * radius + ROUNDING)
        firsts.append(part[near[0]])
        seconds.append(near[1])
    edges = (np.concatenate(firsts), np.concatenate(seconds))
    graph = scipy.sparse.coo_array((np.ones(len(edges[0]), bool), edges), shape=(len(rows), len(rows)))
    return scipy.sparse.csgraph.connected_components(graph, directed=False)[1]


def _between(rows: np.ndarray, labels: np.ndarray) -> float:
    """Share of the variance between clusters, adjusted for their number."""
    sizes = np.bincount(labels)
    if len(sizes) == len(rows):
        return 0.0
    members = scipy.sparse.csr_array((np.ones(len(rows), np.float32), (labels, np.arange(len(rows)))))
    means = members @ rows / sizes[:, None]
    within = float(np.square(rows - means[labels], dtype=np.float64).sum())
    total = float(np.square(rows - rows.mean(0), dtype=np.float64).sum())
    return 1 - within / (len(rows) - len(sizes)) / (total / (len(rows) - 1))


# --- time series ---


def _time_series(sides: list[np.ndarray], n: int, rng: np.random.Generator) -> Dependence:
    slow = [_slowest(side, rng) for side in sides]
    correlations = [float(np.corrcoef(one[:-1], one[1:])[0, 1]) if one is not None else 0.0 for one in slow]
    if slow[0] is None or slow[1] is None or correlations[0] * correlations[1] < DEPENDENT:
        return Dependence()
    product = _autocorrelation(slow[0]) * _autocorrelation(slow[1])
    end = int(np.argmax(product < NEGLIGIBLE)) or len(product)
    time = 1 + 2 * float(product[1:end].sum())
    block = max(1, min(math.ceil(BLOCK_LENGTH * time), n // MIN_BLOCKS))
    return Dependence("time series", block=block, correlation=min(correlations), times=n / time)


def _slowest(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """The most autocorrelated combination of the leading principal components.

    None if its autocorrelation is not above the largest one of shuffled rows.
    """
    count = min(COMPONENTS, rows.shape[1], len(rows) // ROWS_PER_COMPONENT)
    if count < 1:
        return None
    width = rows.shape[1]
    values, vectors = scipy.linalg.eigh((rows.T @ rows).astype(np.float64), subset_by_index=[width - count, width - 1])
    kept = values > 1e-6 * values[-1]
    white = rows @ (vectors[:, kept] / np.sqrt(values[kept] / len(rows))).astype(np.float32)
    slowness, directions = np.linalg.eigh(_lagged(white))
    chance = max(float(np.linalg.eigvalsh(_lagged(rng.permutation(white)))[-1]) for _ in range(SHUFFLES))
    return white @ directions[:, -1] if slowness[-1] > chance else None


def _lagged(white: np.ndarray) -> np.ndarray:
    """The symmetric correlation matrix of neighbouring rows."""
    product = white[:-1].T @ white[1:] / (len(white) - 1)
    return (product + product.T) / 2


def _autocorrelation(x: np.ndarray) -> np.ndarray:
    """Autocorrelations at lags 0, 1, … up to half of the length."""
    size = 2 ** math.ceil(math.log2(2 * len(x)))
    spectrum = np.fft.rfft(x - x.mean(), size)
    products = np.fft.irfft(np.square(np.abs(spectrum)), size)[: len(x) // 2]
    return products / products[0]
