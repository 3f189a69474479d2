"""Which part of a known state the latents contain (for m < n latents in particular). The true state z is needed.

With û = ẑ(h) a prediction of the whitened state u, directions v_1, v_2, … of u are the principal axes of the residual
on the fit rows, best captured first, and

    share_k = 1 − E (v_k·(u − û))² / Var(v_k·u)       held = Σ_k share_k ≤ m for a linear map

Shares are taken on the score rows, so that many dimensions and few rows do not make a direction look worse than it is.
`held` is the number of state directions that a linear map recovers from h. A linear h = Au + const is an orthonormal
projection if AAᵀ = I; `projection` = ‖AAᵀ − I‖_F/√m is its distance from one.

Two kinds of superposition are measured:
- *of coordinates*: several z_i share one latent linearly. `participation` = (Σ_i r_i)²/Σ_i r_i², r_i the share of
  coordinate z_i: m if h contains m coordinates exactly, n if all are captured equally. In an isotropic world all
  rotations are equivalent, so it is not a fault there.
- *of directions*: h contains more than m of them, which only a nonlinear map recovers. `held_nonlinear` is `held` for
  the best function of h that was tried, `folded` = held_nonlinear − held, and `superposed` = held_nonlinear − m. The
  first is positive whenever latents are nonlinear, the second only if more directions than latents were compressed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jepatlas.core.linear import Split, orthogonality_error
from jepatlas.core.records import Estimate, Verdict
from jepatlas.identifiability.covariance import linear_response
from jepatlas.identifiability.regressions import decode
from jepatlas.identifiability.resampling import Halves
from jepatlas.identifiability.validation import check_matrices

__all__ = ["MAX_ROWS", "Captured", "captured", "captured_from", "captured_verdicts", "coverage", "name_direction"]

MAX_ROWS = 10_000
"""Largest number of rows of each half that are used."""
FOUND = 0.2
"""Share of a direction's variance from which it counts as recovered, for `coverage`."""
HELD = 0.9
"""Share of a direction's variance from which it counts as captured linearly."""
SUPERPOSED = 0.1
"""Number of directions above m that may be due to the noise of a nonlinear regression."""
NAMED = 0.15  # coordinates with a smaller share of the largest coefficient are not named
MOSTLY = 0.8  # share of a coordinate's variance from which it counts as part of some directions


@dataclass(frozen=True)
class Captured:
    """What latents contain of the state. Constant directions are excluded."""

    shares: tuple[Estimate, ...]  # of each direction, linearly; largest first
    directions: np.ndarray  # (k, n) unit rows: coefficients on the standardised coordinates of z
    nonlinear: tuple[Estimate, ...]  # of each direction, by the best function of h
    coordinates: tuple[Estimate, ...]  # of each coordinate of z, linearly
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
    >>> found = captured(h, z, Split(np.arange(1000), np.arange(1000, 2000)), rng, replicates=50)
    >>> [round(share.value, 1) + 0.0 for share in found.shares], np.abs(found.directions[-1]).round(1).tolist()
    ([1.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    """
    check_matrices(groups, h=h, z=z)
    halves = Halves(h.astype(np.float64), z.astype(np.float64), split, groups).subsampled(MAX_ROWS, rng)
    return captured_from(halves, decode(halves, rng), rng, replicates)


def captured_from(
    halves: Halves, decoded: Mapping[str, np.ndarray], rng: np.random.Generator, replicates: int = 500
) -> Captured:
    """The same from existing predictions of z by each family of maps (see `decode`)."""
    statistic = _Statistic(halves, decoded)
    found = halves.estimates(statistic, rng, replicates)
    shares = {}
    for name, count in (
        ("linear", statistic.count),
        ("any", statistic.count),
        ("coordinate", halves.z.shape[1]),
    ):
        shares[name] = tuple(found.pop(f"{name}_{i}") for i in range(count))
    return Captured(shares["linear"], statistic.linear.rows, shares["any"], shares["coordinate"], found)


class _Statistic:
    """Fits everything once; calls return all measures under row weights."""

    def __init__(self, halves: Halves, decoded: Mapping[str, np.ndarray]) -> None:
        fit, score = halves.split
        self.linear = _StateDirections(halves, decoded["linear"])
        self.any = _StateDirections(halves, decoded["any"])
        self.count = len(self.linear.rows)
        self.h = halves.h[score]
        self.z = halves.z[score]
        self.residual = (halves.z - decoded["linear"])[score]
        self.response = linear_response(self.linear.whiten(halves.z[fit]), halves.h[fit])[0]

    def __call__(self, weights: np.ndarray) -> dict[str, float]:
        linear = self.linear.shares(weights)
        nonlinear = self.any.shares(weights)
        coordinates = _r2_of_columns(self.z, self.residual, weights)
        measures = {}
        for name, shares in (("linear", linear), ("any", nonlinear), ("coordinate", coordinates)):
            for i, share in enumerate(shares):
                measures[f"{name}_{i}"] = float(share)
        held = float(linear.sum())
        held_nonlinear = float(nonlinear.sum())
        response = linear_response(self.linear.whiten(self.z), self.h, weights)[0]
        return measures | {
            "held": held,
            "held_nonlinear": held_nonlinear,
            "folded": held_nonlinear - held,
            "superposed": held_nonlinear - self.h.shape[1],
            "participation": _participation(np.maximum(coordinates, 0)),
            "projection": orthogonality_error(self.response.T, response.T),
        }


def _participation(shares: np.ndarray) -> float:
    return float(shares.sum() ** 2 / max(np.square(shares).sum(), np.finfo(float).tiny))


class _StateDirections:
    """Directions of the state, sorted by how well a prediction ẑ recovers them, largest share first.

    `rows` (k, n) has unit rows: their coefficients on the standardised coordinates of z.
    """

    def __init__(self, halves: Halves, decoded: np.ndarray) -> None:
        fit, score = halves.split
        self._mean, spread, self._root, self._unit = _whitening(halves.z[fit])
        residual = (halves.z - decoded) @ self._unit
        self._axes = np.linalg.eigh(residual[fit].T @ residual[fit])[1]
        self._residual = residual[score] @ self._axes
        self._along = self.whiten(halves.z[score]) @ self._axes
        rows = (self._unit @ self._axes).T * spread
        self.rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)

    def whiten(self, z: np.ndarray) -> np.ndarray:
        """u (b, k)."""
        return (z - self._mean) @ self._unit

    def shares(self, weights: np.ndarray | None = None) -> np.ndarray:
        """(k,), on (weighted) score rows."""
        if weights is None:
            weights = np.ones(len(self._along))
        return _r2_of_columns(self._along, self._residual, weights)

    def coordinates(self, chosen: np.ndarray) -> list[str]:
        """The coordinates of z whose variance lies mostly in the chosen directions (a mask)."""
        total = np.maximum(np.square(self._root).sum(1), np.finfo(float).tiny)
        within = np.square(self._root @ self._axes[:, chosen]).sum(1)
        return [f"z[{i}]" for i in np.flatnonzero(within > MOSTLY * total)]


def _r2_of_columns(target: np.ndarray, residual: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """R² of each column; 0 for a constant one."""
    share = weights / weights.sum()
    spread = share @ np.square(target - share @ target)
    return 1 - np.where(spread > 0, share @ np.square(residual), 1) / np.where(spread > 0, spread, 1)


def _whitening(z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean, spread, R and U with z − mean = R u and u = Uᵀ(z − mean) white; constant directions are dropped.

    Coordinates are standardised first, so that a coordinate with small units is not taken for a constant one.
    """
    shifted = z - z[0]  # a constant column becomes exactly zero instead of rounding error
    spread = shifted.std(0)
    units = np.where(spread > 0, spread, 1.0)
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(shifted / units, rowvar=False, bias=True)))
    kept = values > 1e-12 * max(values[-1], np.finfo(float).tiny)
    roots = np.sqrt(values[kept])
    axes = vectors[:, kept]
    return z[0] + shifted.mean(0), spread, units[:, None] * axes * roots, axes / (units[:, None] * roots)


def name_direction(row: np.ndarray) -> str:
    """A direction as a combination of the standardised coordinates z[0], z[1], …, without small coefficients.

    >>> name_direction(np.array([0.01, -0.6, 0.8]))
    '0.80·z[2] − 0.60·z[1]'
    """
    order = [i for i in np.argsort(-np.abs(row), kind="stable") if abs(row[i]) > NAMED * np.abs(row).max()]
    if len(order) == 1:
        return f"z[{order[0]}]"
    sign = np.sign(row[order[0]])
    text = f"{abs(row[order[0]]):.2f}·z[{order[0]}]"
    for i in order[1:]:
        mark = "−" if sign * row[i] < 0 else "+"
        text += f" {mark} {abs(row[i]):.2f}·z[{i}]"
    return text


def coverage(
    halves: Halves, decoded: Mapping[str, np.ndarray], rng: np.random.Generator, replicates: int = 500
) -> Verdict:
    """The number of state directions that some function of the latents recovers, compared with all that vary.

    `decoded` are predictions of z from h by each family of maps (see `decode`).
    """
    directions = _StateDirections(halves, decoded["any"])
    dim = len(directions.rows)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {"coverage": float((directions.shares(weights) >= FOUND).sum())}

    found = halves.estimates(statistic, rng, replicates)["coverage"]
    missing = _name_missing(directions, directions.shares() < FOUND)
    return Verdict.judge(
        "coverage",
        found,
        direction="higher",
        threshold=dim,
        good=f"All {dim} directions of the state can be recovered from the latents.",
        bad=f"Only {found.value:.0f} of {dim} directions of the state can be recovered from the latents{missing}.",
    )


def _name_missing(directions: _StateDirections, missing: np.ndarray) -> str:
    if missing.all() or not missing.any():
        return ""
    names = directions.coordinates(missing)
    if len(names) == missing.sum():
        return f"; missing: {', '.join(names)}"
    return "; each missing direction is a mixture of coordinates"


def captured_verdicts(found: Captured, latents: int) -> list[Verdict]:
    """Verdicts `captured` and `superposition`, for that many latents."""
    return [_captured_verdict(found), _superposition_verdict(found, latents)]


def _captured_verdict(found: Captured) -> Verdict:
    coordinates = ", ".join(f"z[{i}] {max(share.value, 0):.2f}" for i, share in enumerate(found.coordinates))
    worst = name_direction(found.directions[-1])
    if "·" in worst:
        worst += " (standardised z)"
    return Verdict.judge(
        "captured",
        found.shares[-1],
        direction="higher",
        threshold=HELD,
        null=0.0,
        good="The latents capture every direction of the state linearly.",
        bad=f"The latents miss part of the state, {worst} most. Linear R² of each coordinate: {coordinates}.",
    )


def _superposition_verdict(found: Captured, latents: int) -> Verdict:
    """Fails only on evidence: if the lower limit exceeds what noise can explain."""
    superposed = found.measures["superposed"]
    folded = found.measures["folded"]
    passed = bool(superposed.low <= SUPERPOSED)
    if passed:
        advice = (
            f"The {latents} latents contain no more than {latents} state directions, spread over "
            f"{found.measures['participation'].value:.1f} coordinates of the state."
        )
        if folded.low > SUPERPOSED:
            advice += f" A nonlinear map recovers {folded.value:.2f} directions more than a linear map."
    else:
        advice = (
            f"{found.measures['held_nonlinear'].value:.1f} state directions are compressed into {latents} latents; a "
            f"linear map recovers {found.measures['held'].value:.1f} of them. Use more latents."
        )
    return Verdict(
        "superposition",
        superposed.value,
        superposed.low,
        superposed.high,
        superposed.n,
        null=None,
        threshold=SUPERPOSED,
        direction="lower",
        passed=passed,
        advice=advice,
    )
