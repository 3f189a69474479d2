"""Fewer latents than the state has dimensions (m < n): which part of the state they hold. The truth z is needed.

With u the whitened state, directions v_1 … v_n of it are ordered by how well h gives them (`state_directions.py`), and

    share_k = held-out R² of v_kᵀu from h        held = Σ_k share_k ≤ m for a linear map

`held` counts the state's directions that a linear map finds in h; a map from m numbers can find no more than m of them.
A linear h is a projection: with h = Au + const, AAᵀ = I says that it is an orthonormal one (then AᵀA is idempotent),
and `projection` = ‖AAᵀ − I‖_F/√m is its distance from that, in the latents' own units.

Two things are called superposition. Both are measured:
- *of coordinates*: several z_i share one latent linearly, so that each is read with the others mixed in.
  `participation` = (Σ_i r_i)²/Σ_i r_i², r_i the share of coordinate z_i: m where h holds m coordinates and nothing of
  the others, n where all are held equally. In an isotropic world every rotation is as good, so it is no fault there.
- *of directions*: h holds more than m of them, folded so that only a nonlinear map finds them.
  `held_nonlinear` is `held` for the best function of h that was tried, `folded` = held_nonlinear − held, and
  `superposed` = held_nonlinear − m. The first is above zero wherever latents are bent, the second only where more
  directions than latents were squeezed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jepatlas.core.linear import Split, orthogonality_error
from jepatlas.core.records import Estimate
from jepatlas.identifiability.checks import check_matrices
from jepatlas.identifiability.dimension.state_directions import StateDirections, r2_of_columns
from jepatlas.identifiability.truth.explained import decode
from jepatlas.identifiability.truth.halves import Halves
from jepatlas.identifiability.truth.response import linear_response

__all__ = ["Captured", "captured", "captured_of"]

ROWS = 10_000
"""Rows of each half that are looked at, at most."""


@dataclass(frozen=True)
class Captured:
    """What latents hold of the state; directions that do not vary are left out."""

    shares: tuple[Estimate, ...]  # of each direction, linearly; best held first
    directions: np.ndarray  # (k, n) rows of unit length: coefficients on the standardised coordinates of z
    nonlinear: tuple[Estimate, ...]  # of directions that the best function of h holds best, by that function
    coordinates: tuple[Estimate, ...]  # share of each coordinate of z, linearly
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
    halves = Halves(h.astype(np.float64), z.astype(np.float64), split, groups).some(ROWS, rng)
    return captured_of(halves, decode(halves, rng), rng, replicates)


def captured_of(
    halves: Halves, decoded: Mapping[str, np.ndarray], rng: np.random.Generator, replicates: int = 500
) -> Captured:
    """The same where z is decoded already, by each family of maps."""
    measures = _Measures(halves, decoded)
    found = halves.estimates(measures, rng, replicates)
    shares = {
        name: tuple(found.pop(f"{name}_{i}") for i in range(count))
        for name, count in (("linear", measures.count), ("any", measures.count), ("coordinate", halves.z.shape[1]))
    }
    return Captured(shares["linear"], measures.linear.rows, shares["any"], shares["coordinate"], found)


class _Measures:
    """Everything that is fitted, once; then the measures of the rows to score under any weights."""

    def __init__(self, halves: Halves, decoded: Mapping[str, np.ndarray]) -> None:
        fit, score = halves.split
        self.linear, self.any = (StateDirections(halves, decoded[family]) for family in ("linear", "any"))
        self.count = len(self.linear.rows)
        self.h, self.z, self.left = halves.h[score], halves.z[score], (halves.z - decoded["linear"])[score]
        self.response = linear_response(self.linear.white(halves.z[fit]), halves.h[fit])[0]

    def __call__(self, weights: np.ndarray) -> dict[str, float]:
        linear, best = self.linear.shares(weights), self.any.shares(weights)
        shares = {"linear": linear, "any": best, "coordinate": r2_of_columns(self.z, self.left, weights)}
        held, nonlinear = float(linear.sum()), float(best.sum())
        each = {f"{name}_{i}": float(share) for name, column in shares.items() for i, share in enumerate(column)}
        response = linear_response(self.linear.white(self.z), self.h, weights)[0]
        return each | {
            "held": held,
            "held_nonlinear": nonlinear,
            "folded": nonlinear - held,
            "superposed": nonlinear - self.h.shape[1],
            "participation": _participation(np.maximum(shares["coordinate"], 0)),
            "projection": orthogonality_error(self.response.T, response.T),
        }


def _participation(shares: np.ndarray) -> float:
    return float(shares.sum() ** 2 / max(np.square(shares).sum(), np.finfo(float).tiny))
