"""Isotropisation: bring pairs toward isotropic, Gaussian exploration, by a knob (the dose) from 0 to 1.

    w(s) ∝ N(s; mean, c²I) / p(s)          W(s, s') = (w(s) w(s'))^{dose/2}

Why it can work: as steps get small, the alignment loss of pairs with density p and noise of one size everywhere is
∫ |Df|² p, so W turns it into ∫ |Df|² N(0, c²I), whose slowest functions are linear and all equally slow. Three things
follow. The noise must be additive: reweighting mends where an agent goes, not how it moves. The units must be those in
which steps are isotropic: Gaussian states with unequal rates ρ_i are such a state with unequal spreads there, and
isotropisation equalises the rates. And where nobody went nothing can be weighted up: `distance` shows what is left.

W is the same for (s, s') and (s', s), so pairs of a reversible process stay those of one; w(s) alone would not do that.
The density of the weighted s is then p √w E[√w(s') | s], which is N(0, c²I) up to one step's blur.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import whitener
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.checks import check_matrices, check_same_shape
from jepatlas.identifiability.isotropy.density_ratio import fit_gaussian_ratio
from jepatlas.identifiability.preconditions.sliced import GroupDistance, SlicedFeatures
from jepatlas.identifiability.spectral.chunk_checks import check_weights

__all__ = ["Isotropised", "Isotropy", "fit_isotropy", "isotropic_resample", "isotropic_weights"]

DISTANCE_ROWS = 4000
MOST = 20.0
"""Largest weight, over the mean: one far row must not stand for all that are missing around it. It also bounds the
price: with w ≤ 20·mean the effective number of pairs is at least a twentieth of them, for Σw² ≤ 20·mean·Σw."""


@dataclass(frozen=True)
class Isotropised:
    """Weights of pairs, and what they cost."""

    weights: np.ndarray  # (b,), mean one
    dose: float
    ess: float  # effective number of pairs, (Σw)²/Σw²
    clipped: float  # share of pairs whose weight was cut to the largest allowed
    distance: float  # of the weighted coordinates from the Gaussian: sliced, as in `audit`; about zero where it is one


@dataclass(frozen=True)
class Isotropy:
    """A density ratio that was fitted once, for every dose."""

    coordinates: LinearMap  # of s, to units in which the target is N(0, I)
    t: np.ndarray  # (b, d) the first states of the pairs, in those units
    log_ratio: np.ndarray  # (b,) of each pair: ½ log w(s) + ½ log w(s')
    seed: int

    def at(self, dose: float) -> Isotropised:
        if not 0 <= dose <= 1:
            raise InputError(f"The dose of isotropisation lies between 0 and 1, but {dose} was given.")
        ratio = np.exp(dose * (self.log_ratio - self.log_ratio.max()))
        weights = _clip(ratio)
        clipped = float((weights < ratio).mean())
        weights = weights / weights.mean()
        ess = float(weights.sum() ** 2 / np.square(weights).sum())
        return Isotropised(weights, dose, ess, clipped, self._distance(weights))

    def _distance(self, weights: np.ndarray) -> float:
        rng = numpy_generator(self.seed, "isotropise/distance")
        some = rng.permutation(len(self.t))[:DISTANCE_ROWS]
        features = SlicedFeatures(self.t.shape[1], rng)
        return GroupDistance(features(self.t[some]) - features.gaussian, np.arange(len(some)))(weights[some])


def _clip(weights: np.ndarray) -> np.ndarray:
    """The largest cut to τ, the greatest with τ ≤ 20 times the mean of what is left after the cut.

    A limit relative to the mean before the cut would not hold one row that is nearly all of it.
    With k rows cut, τ = 20 (kτ + rest)/n, so τ = 20 rest/(n − 20k).
    """
    order, n = np.sort(weights)[::-1], len(weights)
    rest = np.cumsum(order[::-1])[::-1]  # of all rows but the k largest
    k = np.arange(-(-n // MOST)).astype(int)  # at the last of these τ ≥ rest, which is enough in any case
    limits = MOST * rest[k] / (n - MOST * k)
    return np.minimum(weights, limits[np.argmax(order[k] <= limits)])


def isotropic_weights(
    s: np.ndarray,
    s_next: np.ndarray,
    dose: float,
    *,
    units: Literal["steps", "given"] = "steps",
    scale: float = 1.0,
    seed: int = 0,
) -> Isotropised:
    """Weights of the pairs whose states are s and s_next (b, d): the truth, or any coordinates that estimate it.

    dose    0 leaves every pair its weight, 1 corrects the density in full, 0 < dose < 1 tempers the correction
    units   "steps": where steps s' − s are isotropic (see above). "given": those of s, if it is known to be so there
    scale   c over the smallest standard deviation of s in any direction of those units. Below 1 the Gaussian fits
            better into a bounded region, and costs more pairs

    >>> rng = np.random.default_rng(0)
    >>> s, noise = rng.standard_normal((2, 4000, 2))
    >>> rho = np.array([0.95, 0.8])
    >>> found = isotropic_weights(s, rho * s + np.sqrt(1 - rho**2) * noise, 1.0)
    >>> bool(0.5 < found.ess / 4000 < 0.8)
    True
    """
    return fit_isotropy(s, s_next, units=units, scale=scale, seed=seed).at(dose)


def fit_isotropy(
    s: np.ndarray,
    s_next: np.ndarray,
    *,
    units: Literal["steps", "given"] = "steps",
    scale: float = 1.0,
    seed: int = 0,
) -> Isotropy:
    """The same for many doses: `fit_isotropy(s, s_next).at(dose)`."""
    check_matrices(s=s, s_next=s_next)
    check_same_shape(s=s, s_next=s_next)
    if units not in ("steps", "given"):
        raise InputError(f"The units to isotropise in are 'steps' or 'given', but '{units}' was asked for.")
    if not 0 < scale < np.inf:
        raise InputError(f"The scale of the target must be positive and finite, but {scale} was given.")
    s, s_next = s.astype(np.float64), s_next.astype(np.float64)
    coordinates = _coordinates(s, s_next, units, scale)
    t, t_next = coordinates.apply(s), coordinates.apply(s_next)
    ratio = fit_gaussian_ratio(np.concatenate([t, t_next]), numpy_generator(seed, "isotropise/ratio"))
    return Isotropy(coordinates, t, (ratio(t) + ratio(t_next)) / 2, seed)


def _coordinates(s: np.ndarray, s_next: np.ndarray, units: str, scale: float) -> LinearMap:
    """Centred, in the units asked for, divided by c."""
    both = np.concatenate([s, s_next])
    weight = whitener(s_next - s).weight if units == "steps" else np.eye(s.shape[1])
    spreads = np.linalg.eigvalsh(np.atleast_2d(np.cov(both @ weight.T, rowvar=False)))
    if not spreads[0] > 1e-9 * spreads[-1]:
        raise InputError(
            "The coordinates to isotropise in do not vary, or do not move, in some direction. Leave it out: take "
            "principal components, or the directions of a spectrum."
        )
    return LinearMap(weight / (scale * np.sqrt(spreads[0])), both.mean(0), np.zeros(s.shape[1]))


def isotropic_resample(weights: np.ndarray, rng: np.random.Generator, count: int | None = None) -> np.ndarray:
    """Indices (count,) of rows, each drawn in proportion to its weight: for trainers that know no weights.

    Systematic: one random offset, then equal steps through the cumulated weights. A row comes ⌊c⌋ or ⌈c⌉ times, c the
    expected number. Copies are no new evidence: keep them in one group, or one part, when rows are split or scored.

    >>> isotropic_resample(np.array([1.0, 0.0, 2.0, 1.0]), np.random.default_rng(0)).tolist()
    [0, 2, 2, 3]
    """
    check_weights(weights, len(weights))
    count = len(weights) if count is None else count
    if count < 1 or not weights.sum() > 0:
        raise InputError(f"Resampling needs a positive weight and a positive count, but count is {count}.")
    cumulated = np.cumsum(weights) / weights.sum()
    places = (np.arange(count) + rng.uniform()) / count
    return np.minimum(np.searchsorted(cumulated, places, side="right"), np.flatnonzero(weights)[-1])
