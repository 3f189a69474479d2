"""Is each latent coordinate Gaussian, taken alone? Random slices mix all of them, and one bad among many goes unseen.

    d_j² = ∫ |φ_j(t) − e^{−t²/2}|² e^{−t²/2} dt        φ_j: characteristic function of coordinate j, standardised

It is the distance of `sliced.py` along one axis (the statistic of Epps and Pulley). The verdict is on the worst of m
coordinates, so its null is that of the largest of m. From n independent rows of a Gaussian, standardised by their own
mean and variance, n d² is Σ_k λ_k χ²_k − E‖gap‖², with λ the eigenvalues of the covariance that is left of the gaps:

    K(s, t) = e^{−(s²+t²)/2} (cosh st − 1 − (st)²/2)   of cosines        e^{−(s²+t²)/2} (sinh st − st)   of sines

Coordinates count as independent: the largest of dependent ones is smaller. Rows of one group are worth as many
independent ones as in the sliced check, for each coordinate on its own.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from jepatlas.core.records import Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.preconditions.departures import departure
from jepatlas.identifiability.preconditions.pairs import WhitePairs, beside, judge, quantiles
from jepatlas.identifiability.preconditions.sliced import GroupDistance, SlicedFeatures

__all__ = ["coordinate_gaussianity", "largest_null"]

DISTANCE = 0.05  # that matters
DRAWS = 1000  # of the largest of m: cheap, and its 99% quantile lies far out
NAMED = 5  # of the other coordinates, at most


def coordinate_gaussianity(pairs: WhitePairs) -> Verdict:
    """The distance of the worst coordinate, as it was given, from a Gaussian; it is named, with what is wrong."""
    units = _standard(pairs.given)
    values, worth = _distances(units, pairs.labels)
    null = quantiles(largest_null(units.shape[1], pairs.rng("coordinates null"), DRAWS))
    nulls = [(null[0] / np.sqrt(rows), null[1] / np.sqrt(rows)) for rows in worth]
    matters = np.array([beside(one, DISTANCE) for one in nulls])
    chance = np.array([one[1] for one in nulls])
    # Furthest beyond its own limit; where none is, one that too few independent rows leave open goes before the others.
    excess = np.maximum(values / np.maximum(chance, matters), chance > matters)
    worst = int(excess.argmax())
    distance = GroupDistance(_gaps(units[:, worst]), pairs.labels)
    others = [int(pairs.columns[j]) for j in np.argsort(-excess, kind="stable") if j != worst and excess[j] > 1]
    return judge(
        "coordinate_gaussianity",
        pairs.estimate("coordinate_gaussianity", distance),
        nulls[worst],
        matters[worst],
        (
            "Each latent coordinate, taken alone, looks Gaussian.",
            f"Latent coordinate {pairs.columns[worst]} is not Gaussian: {departure(units[:, worst])}.{_listed(others)} "
            "Linear identifiability is proven for Gaussian worlds only. Look at what it encodes: leave "
            "it out if it is no "
            "state that varies by and by (a label, a switch, a clock), undo its warp if it has one, or "
            "explore further.",
        ),
    )


def largest_null(count: int, rng: np.random.Generator, draws: int) -> np.ndarray:
    """Of √(n d²), with the sign of d², of the worst of `count` independent Gaussian coordinates: so many draws."""
    t, scale = _FEATURES.frequencies[0], _FEATURES.scale
    product, damping = np.outer(t, t), np.outer(scale * np.exp(-(t**2) / 2), scale * np.exp(-(t**2) / 2))
    parts = (np.cosh(product) - 1 - product**2 / 2, np.sinh(product) - product)
    values = np.concatenate([scipy.linalg.eigvalsh(damping * part) for part in parts])
    values = values[values > 1e-4 * values.max()]
    gap = float(scale**2 @ (1 - np.exp(-(t**2))))
    largest = np.array([(rng.standard_normal((count, len(values))) ** 2 @ values).max() for _ in range(draws)]) - gap
    return np.copysign(np.sqrt(np.abs(largest)), largest)


# one slice of one dimension is the coordinate itself, or its mirror image, which is as far from a Gaussian
_FEATURES = SlicedFeatures(1, numpy_generator(0, "coordinates"), slices=1)


def _gaps(column: np.ndarray) -> np.ndarray:
    return _FEATURES(column[:, None]) - _FEATURES.gaussian


def _standard(h: np.ndarray) -> np.ndarray:
    """Of mean 0 and variance 1, each by its own rows; 0 where these are all the same."""
    centred = h - h[0]  # so that a constant column is exactly zero, not rounding
    centred -= centred.mean(0)
    spread = centred.std(0)
    return centred / np.where(spread > 0, spread, 1.0)


def _distances(units: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What `GroupDistance` says of each column: d_j under equal weights, and the independent rows that it is worth.

    All columns at once, and e^{ikθ} from one e^{iθ} by products: hundreds of coordinates take a fraction of a second.
    """
    order = np.argsort(labels, kind="stable")
    starts, counts = np.flatnonzero(np.diff(labels[order], prepend=-1)), np.bincount(labels)[:, None]
    rows, (whole, each, apart, together) = len(units), np.zeros((4, units.shape[1]))
    step = np.exp(1j * abs(_FEATURES.frequencies[0, 0]) * units[order])
    power = np.ones_like(step)
    for t, scale in zip(_FEATURES.frequencies[0], _FEATURES.scale, strict=True):
        power *= step
        gap = scale * (power - np.exp(-(t**2) / 2))
        sums = gap if len(starts) == rows else np.add.reduceat(gap, starts, axis=0)
        mean = gap.mean(0)
        whole, each = whole + np.abs(rows * mean) ** 2, each + _squares(sums)
        apart, together = apart + _squares(gap - mean), together + _squares(sums - counts * mean)
    square = (whole - each) / max(rows**2 - np.square(counts).sum(), 1)
    worth = rows * apart / np.maximum(together * len(starts) / max(len(starts) - 1, 1), 1e-300)
    return np.copysign(np.sqrt(np.abs(square)), square), np.clip(worth, 1, rows).astype(int)


def _squares(values: np.ndarray) -> np.ndarray:
    """Σ|v|² of each column of complex numbers."""
    real, imaginary = np.real(values), np.imag(values)
    return np.einsum("ij,ij->j", real, real) + np.einsum("ij,ij->j", imaginary, imaginary)


def _listed(others: list[int]) -> str:
    if not others:
        return ""
    more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    return f" So {'is' if len(others) == 1 else 'are'} {', '.join(map(str, others[:NAMED]))}{more}."
