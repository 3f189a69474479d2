"""Audit checks on distributions: stationarity, joint Gaussianity, and Gaussianity of each coordinate.

The coordinate check finds one bad coordinate among many, which random projections mix. For each coordinate j,

    d_j² = ∫ |φ_j(t) − e^{−t²/2}|² e^{−t²/2} dt        φ_j: characteristic function of the standardised coordinate

(the statistic of Epps and Pulley). The verdict is on the worst of m coordinates, and its null is the largest of m. For
n independent rows of a Gaussian, standardised by their own mean and variance, n d² is Σ_k λ_k χ²_k − E‖gap‖², with λ
the eigenvalues of the covariance of the gaps:

    K(s, t) = e^{−(s²+t²)/2} (cosh st − 1 − (st)²/2)   of cosines        e^{−(s²+t²)/2} (sinh st − st)   of sines

Coordinates are treated as independent, which is conservative. Correlated rows of a group count as fewer rows.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from jepatlas.core.records import Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.preconditions.sliced_distance import (
    GroupDistance,
    SlicedFeatures,
    distance_from_gaussian,
    gaussian_null,
)
from jepatlas.identifiability.preconditions.white_pairs import (
    WhitePairs,
    add_in_quadrature,
    judge,
    mean_and_quantile,
)

__all__ = ["coordinate_distances", "coordinate_gaussianity", "departure", "gaussianity", "largest_null", "stationarity"]

RELEVANT_DISTANCE = 0.05
LARGEST_DRAWS = 1000  # of the largest of m: cheap, and its 99% quantile lies far out
MAX_NAMED = 5  # other coordinates
FEW_VALUES = 20  # number of distinct values up to which a coordinate is called discrete
ATOM = 0.1  # share of rows with one value from which it is mentioned
SKEWED = 0.3
HEAVY_TAILS = 0.5  # excess kurtosis
LIGHT_TAILS = -0.3


def stationarity(pairs: WhitePairs) -> Verdict:
    """Distance between the distributions of h and h'. Exchanging the views of a group flips the sign of its gap."""
    features = SlicedFeatures(pairs.h.shape[1], pairs.rng("slices"))
    distance = GroupDistance(features(pairs.h) - features(pairs.h_next), pairs.labels)
    null = mean_and_quantile(distance(sign) for sign in pairs.signs("stationarity null"))
    return judge(
        "stationarity",
        pairs.estimate("stationarity", distance),
        null,
        add_in_quadrature(null, RELEVANT_DISTANCE),
        good="Both views have the same distribution.",
        bad="The two views have different distributions. Draw pairs from the middle of longer episodes, or discard "
        "the start of each episode.",
    )


def gaussianity(pairs: WhitePairs) -> Verdict:
    """Distance of the whitened latents from N(0, I), compared with Gaussian samples whitened in the same way."""
    distance = distance_from_gaussian(pairs.h, pairs.labels, pairs.seed)
    null = gaussian_null(distance.effective_rows, pairs.h.shape[1], pairs.seed, pairs.draws)
    return judge(
        "gaussianity",
        pairs.estimate("gaussianity", distance),
        null,
        add_in_quadrature(null, RELEVANT_DISTANCE),
        good="The latents look Gaussian in all directions that were tried.",
        bad="The latents are not Gaussian. Linear identifiability is proven only for Gaussian worlds: expect recovery "
        "up to a monotone warp at best, or explore more isotropically.",
    )


def coordinate_gaussianity(pairs: WhitePairs) -> Verdict:
    """Distance of the worst coordinate of h from a Gaussian; the advice names it and describes the departure."""
    units = _standardise(pairs.given)
    values, effective_rows = coordinate_distances(units, pairs.labels)
    null_of_one_row = mean_and_quantile(largest_null(units.shape[1], pairs.rng("coordinates null"), LARGEST_DRAWS))
    nulls = [(null_of_one_row[0] / np.sqrt(rows), null_of_one_row[1] / np.sqrt(rows)) for rows in effective_rows]
    relevant = np.array([add_in_quadrature(null, RELEVANT_DISTANCE) for null in nulls])
    chance = np.array([quantile for _, quantile in nulls])
    # Largest excess over the own limit; if none exceeds it, a coordinate with too few independent rows comes first.
    excess = np.maximum(values / np.maximum(chance, relevant), chance > relevant)
    worst = int(excess.argmax())
    distance = GroupDistance(_gaps(units[:, worst]), pairs.labels)
    others = [int(pairs.columns[j]) for j in np.argsort(-excess, kind="stable") if j != worst and excess[j] > 1]
    return judge(
        "coordinate_gaussianity",
        pairs.estimate("coordinate_gaussianity", distance),
        nulls[worst],
        relevant[worst],
        good="Each latent coordinate looks Gaussian.",
        bad=f"Latent coordinate {pairs.columns[worst]} is not Gaussian: {departure(units[:, worst])}.{_listed(others)} "
        "Linear identifiability is proven only for Gaussian worlds. Drop the coordinate if it is not a continuous "
        "state (a label, a switch, a clock), undo its warp if it has one, or collect more varied data.",
    )


def largest_null(count: int, rng: np.random.Generator, draws: int) -> np.ndarray:
    """Draws of √(n d²), with the sign of d², of the worst of `count` independent Gaussian coordinates."""
    t = _FEATURES.frequencies[0]
    scale = _FEATURES.scale
    product = np.outer(t, t)
    damped = scale * np.exp(-(t**2) / 2)
    damping = np.outer(damped, damped)
    cosines = np.cosh(product) - 1 - product**2 / 2
    sines = np.sinh(product) - product
    values = np.concatenate([scipy.linalg.eigvalsh(damping * part) for part in (cosines, sines)])
    values = values[values > 1e-4 * values.max()]
    gap = float(scale**2 @ (1 - np.exp(-(t**2))))
    largest = np.array([(rng.standard_normal((count, len(values))) ** 2 @ values).max() for _ in range(draws)]) - gap
    return np.copysign(np.sqrt(np.abs(largest)), largest)


# one slice in one dimension is the coordinate itself or its mirror image, which is equally far from a Gaussian
_FEATURES = SlicedFeatures(1, numpy_generator(0, "coordinates"), slices=1)


def _gaps(column: np.ndarray) -> np.ndarray:
    return _FEATURES(column[:, None]) - _FEATURES.gaussian


def _standardise(h: np.ndarray) -> np.ndarray:
    """Mean 0 and variance 1 for each column; 0 for a constant one."""
    centred = h - h[0]  # a constant column becomes exactly zero instead of rounding error
    centred -= centred.mean(0)
    spread = centred.std(0)
    return centred / np.where(spread > 0, spread, 1.0)


def coordinate_distances(units: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`GroupDistance` of each standardised column under equal weights, and its number of effective rows.

    All columns at once, with e^{ikθ} as powers of e^{iθ}: hundreds of coordinates take a fraction of a second.
    """
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    counts = np.bincount(labels)[:, None]
    groups = len(starts)
    rows, columns = units.shape
    whole = np.zeros(columns)
    within = np.zeros(columns)
    independent = np.zeros(columns)
    grouped = np.zeros(columns)
    step = np.exp(1j * abs(_FEATURES.frequencies[0, 0]) * units[order])
    power = np.ones_like(step)
    for t, scale in zip(_FEATURES.frequencies[0], _FEATURES.scale, strict=True):
        power *= step
        gap = scale * (power - np.exp(-(t**2) / 2))
        sums = gap if groups == rows else np.add.reduceat(gap, starts, axis=0)
        mean = gap.mean(0)
        whole += np.abs(rows * mean) ** 2
        within += _squared_norms(sums)
        independent += _squared_norms(gap - mean)
        grouped += _squared_norms(sums - counts * mean)
    square = (whole - within) / max(rows**2 - np.square(counts).sum(), 1)
    effective_rows = rows * independent / np.maximum(grouped * groups / max(groups - 1, 1), 1e-300)
    return np.copysign(np.sqrt(np.abs(square)), square), np.clip(effective_rows, 1, rows).astype(int)


def _squared_norms(values: np.ndarray) -> np.ndarray:
    """Σ|v|² of each complex column."""
    real = np.real(values)
    imaginary = np.imag(values)
    return np.einsum("ij,ij->j", real, real) + np.einsum("ij,ij->j", imaginary, imaginary)


def _listed(others: list[int]) -> str:
    if not others:
        return ""
    names = ", ".join(map(str, others[:MAX_NAMED]))
    more = f" and {len(others) - MAX_NAMED} more" if len(others) > MAX_NAMED else ""
    return f" Neither {'is' if len(others) == 1 else 'are'} {names}{more}."


def departure(sample: np.ndarray) -> str:
    """How a standardised sample departs from a Gaussian: few values, an atom, skewness, tails.

    >>> departure(np.repeat([-1.0, 1.0], 50))
    'it takes only 2 values'
    """
    _, counts = np.unique(sample, return_counts=True)
    if len(counts) <= FEW_VALUES:
        return f"it takes only {len(counts)} value{'' if len(counts) == 1 else 's'}"
    share = counts.max() / len(sample)
    if share >= ATOM:
        return f"it has the same value in {share:.0%} of the rows"
    skewness = float(np.mean(sample**3))
    excess = float(np.mean(sample**4)) - 3
    found = []
    if abs(skewness) > max(SKEWED, 3 * float(np.std(sample**3)) / np.sqrt(len(sample))):  # heavy tails can mimic it
        found.append(f"it is skewed to {'large' if skewness > 0 else 'small'} values (skewness {skewness:.2g})")
    if excess > HEAVY_TAILS:
        found.append(f"its tails are too heavy (excess kurtosis {excess:.2g})")
    elif excess < LIGHT_TAILS:
        found.append(f"its tails are too light (excess kurtosis {excess:.2g})")
    return " and ".join(found) or "skewness and kurtosis are normal, so look at its histogram"
