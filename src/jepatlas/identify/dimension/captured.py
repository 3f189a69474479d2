"""Fewer latents than the state has dimensions (m < n): which part of the state they hold. The truth z is needed.

With y the whitened state, directions v_1 … v_n of it are ordered by how well h gives them linearly, and

    share_k = held-out R² of v_kᵀy from h        held = Σ_k share_k ≤ m

`held` counts the state's directions that a linear map finds in h; a map from m numbers can find no more than m of them.
A linear h is a projection: with h = Ay + const, AAᵀ = I says that it is an orthonormal one (then AᵀA is idempotent),
and `projection` = ‖AAᵀ − I‖_F/√m is its distance from that, in the latents' own units.

Two things are called superposition. Both are measured:
- *of coordinates*: several z_i share one latent linearly, so that each is read with the others mixed in.
  `participation` = (Σ_i r_i)²/Σ_i r_i², r_i the share of coordinate z_i: m where h holds m coordinates and nothing of
  the others, n where all are held equally. In an isotropic world every rotation is as good, so it is no fault there.
- *of directions*: h holds more than m of them, folded so that only a nonlinear map finds them.
  `held_nonlinear` is `held` for a nonlinear regression on h (random features), `folded` = held_nonlinear − held, and
  `superposed` = held_nonlinear − m. The first is above zero wherever latents are bent, the second only where more
  directions than latents were squeezed in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from jepatlas.base.linear import Split, hold_out, least_squares, r2, ridge, whitener
from jepatlas.base.records import Estimate
from jepatlas.base.stats import Moments, bootstrap
from jepatlas.identify.checks import check_matrices
from jepatlas.identify.features import Features, principal_whitener, random_frequencies
from jepatlas.identify.recovery import linear_response

__all__ = ["Captured", "captured", "name_direction"]

FEATURES = 256  # cosines, and as many sines
LENGTH_SCALES, RIDGES = (0.05, 0.2, 0.7, 2.0), (1e-6, 1e-4, 1e-2)
NAMED = 0.15  # share of a direction's largest coefficient below which a coordinate is not named


@dataclass(frozen=True)
class Captured:
    """What latents hold of the state."""

    shares: tuple[Estimate, ...]  # of each direction, linearly; best held first
    nonlinear: tuple[Estimate, ...]  # of the same directions, by nonlinear regression
    directions: np.ndarray  # (n, n) rows of unit length: coefficients on the standardised coordinates of z
    coordinates: tuple[Estimate, ...]  # share of each coordinate of z
    measures: dict[str, Estimate]  # held, held_nonlinear, folded, superposed, participation, projection


def captured(
    h: np.ndarray,
    z: np.ndarray,
    split: Split,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> Captured:
    """From latents h (b, m) and true states z (b, n); fitted on one part of the rows, scored on the other.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.standard_normal((2000, 3))
    >>> h = z[:, :2] @ np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> found = captured(h, z, hold_out(2000, rng), rng, replicates=50)
    >>> [round(share.value, 2) + 0.0 for share in found.shares], name_direction(found.directions[-1])
    ([1.0, 1.0, 0.0], 'z3')
    """
    check_matrices(groups, h=h, z=z)
    h, z, n = h.astype(np.float64), z.astype(np.float64), z.shape[1]
    measures = _Measures(h, z, split, rng, groups)
    held = None if groups is None else groups[split.score]
    found = bootstrap(measures, len(split.score), rng, groups=held, replicates=replicates)
    shares = {name: tuple(found.pop(f"{name}_{i}") for i in range(n)) for name in measures.pairs}
    return Captured(shares["linear"], shares["nonlinear"], measures.directions, shares["coordinate"], found)


class _Measures:
    """Everything that is fitted, once; then the measures of the rows to score under any weights."""

    def __init__(
        self, h: np.ndarray, z: np.ndarray, split: Split, rng: np.random.Generator, groups: np.ndarray | None
    ) -> None:
        fit, score = split
        white = whitener(z[fit])
        y, linear = white.apply(z), least_squares(h[fit], white.apply(z[fit]))
        axes = np.linalg.eigh(np.atleast_2d(np.cov(linear.apply(h[fit]), rowvar=False)))[1][:, ::-1]
        bent = _nonlinear(h[fit], y[fit], h[score], rng, None if groups is None else groups[fit])
        self.pairs = {
            "linear": (y[score] @ axes, linear.apply(h[score]) @ axes),
            "nonlinear": (y[score] @ axes, bent @ axes),
            "coordinate": (z[score], least_squares(h[fit], z[fit]).apply(h[score])),
        }
        self.h, self.y, self.response = h[score], y[score], linear_response(y[fit], h[fit])[0]
        rows = (axes.T @ white.weight) * z[fit].std(0)
        self.directions = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)

    def __call__(self, weights: np.ndarray) -> dict[str, float]:
        shares = {name: _shares(*pair, weights) for name, pair in self.pairs.items()}
        held, nonlinear = float(shares["linear"].sum()), float(shares["nonlinear"].sum())
        each = {f"{name}_{i}": float(r) for name, column in shares.items() for i, r in enumerate(column)}
        return each | {
            "held": held,
            "held_nonlinear": nonlinear,
            "folded": nonlinear - held,
            "superposed": nonlinear - self.h.shape[1],
            "participation": _participation(np.maximum(shares["coordinate"], 0)),
            "projection": _projection(self.response, linear_response(self.y, self.h, weights)[0]),
        }


def _shares(target: np.ndarray, guess: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """R² of each column; 0 for one that does not vary, as there is nothing of it to hold."""
    share = weights / weights.sum()
    spread = share @ np.square(target - share @ target)
    return 1 - np.where(spread > 0, share @ np.square(target - guess), 1) / np.where(spread > 0, spread, 1)


def _participation(shares: np.ndarray) -> float:
    return float(shares.sum() ** 2 / max(np.square(shares).sum(), np.finfo(float).tiny))


def _projection(one: np.ndarray, other: np.ndarray) -> float:
    """‖AAᵀ − I‖_F/√m from two independent estimates of A, whose noise does not add up."""
    product, eye = one @ other.T, np.eye(len(one))
    return float(np.linalg.norm((product + product.T) / 2 - eye) / np.sqrt(len(one)))


def _nonlinear(
    h: np.ndarray, y: np.ndarray, h_score: np.ndarray, rng: np.random.Generator, groups: np.ndarray | None
) -> np.ndarray:
    """y by ridge regression on random features of h; length scale and ridge by rows held out within the fit."""
    if np.ptp(h, axis=0).max() == 0:
        return np.broadcast_to(y.mean(0), (len(h_score), y.shape[1]))
    white = principal_whitener(Moments.of(torch.from_numpy(h)))
    frequencies = random_frequencies(FEATURES, len(white.weight), rng)
    inner, best = hold_out(len(h), rng, groups=groups), (-np.inf, Features(white, frequencies, 1.0), RIDGES[-1])
    for scale in LENGTH_SCALES:
        features = Features(white, frequencies / (scale * np.sqrt(len(white.weight))), 1.0)
        phi, other = features(h[inner.fit]), features(h[inner.score])
        for penalty in RIDGES:
            score = r2(y[inner.score], ridge(phi, y[inner.fit], penalty * len(phi)).apply(other))
            best = max(best, (score, features, penalty), key=lambda tried: tried[0])
    _, features, penalty = best
    return ridge(features(h), y, penalty * len(h)).apply(features(h_score))


def name_direction(row: np.ndarray) -> str:
    """A direction as a combination of the standardised coordinates z1, z2, …; what hardly takes part is left out.

    >>> name_direction(np.array([0.01, -0.6, 0.8]))
    '0.80·z3 − 0.60·z2'
    """
    order = [i for i in np.argsort(-np.abs(row), kind="stable") if abs(row[i]) > NAMED * np.abs(row).max()]
    if len(order) == 1:
        return f"z{order[0] + 1}"
    sign = np.sign(row[order[0]])
    terms = [("−" if sign * row[i] < 0 else "+", f"{abs(row[i]):.2f}·z{i + 1}") for i in order]
    return terms[0][1] + "".join(f" {mark} {term}" for mark, term in terms[1:])
