"""What a fitted map can and cannot say: its singular values, and what follows from them.

    κ = σ_max/σ_min      orthogonality ‖σ² − 1‖/√k      effective rank exp(−Σ p log p), p = σ²/Σσ²      sign det W

κ and ranks are those of W between the coordinates that it was fitted in, which its inverse goes through. Orthogonality
is that of the raw matrix, and of Σ_y^{−½} W Σ_x^{½} in whitened coordinates: standardisers would hide or feign it.
Where the source does not vary, ridge leaves rounding in W over its penalty: such singular values count as zero.

A network that ends in a layer normalisation, h = γ n + β with Σ n = 0, as vision transformers do, lacks one direction
by construction. It is known by Σ h/γ being constant, all weights of one sign, and is left out of κ and of what a map
could carry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.alignment.maps.map_verdicts import map_verdicts
from jepatlas.core.linear import distance_from_identity
from jepatlas.core.linear_map import CONDITION_LIMIT, LinearMap
from jepatlas.core.linear_moments import live_directions
from jepatlas.core.pair_moments import PairMoments
from jepatlas.core.records import Verdict

__all__ = ["Conditioning", "carried_rank", "varied_directions"]

_ROUNDINGS = 16  # as for directions of the source, see `linear_moments`
_COLUMNS = 8
_ROUNDED = 1e-11
"""Of the largest variance: what float32 latents have left in a direction that they lack, and less than any has."""
_GUESSED = 0.1
"""A rotation carries directions that never varied as well as any other; rounding leaves a small share there."""


@dataclass(frozen=True)
class Conditioning:
    """Measured on a map (d_in → d_out, k the smaller of both), and on the pairs it was fitted on."""

    singular_values: np.ndarray  # (k,), largest first
    condition: float
    rank: int
    effective_rank: float
    orthogonality: float | None
    """In whitened coordinates; None where the pairs are not known. Lower is better."""
    orthogonality_raw: float
    orthogonality_scaled: float
    """That of the raw matrix divided by its root mean square singular value: zero for a similarity."""
    determinant_sign: int | None
    """1 for a rotation, −1 where there is a reflection in it, 0 if singular; None if not square."""
    constant_source: int | None
    constant_target: int | None
    source_rank: int | None
    normed: tuple[bool, bool]
    """Whether the one direction that the source, and the target, lacks is that of a layer normalisation."""
    d_in: int
    d_out: int
    limit: float

    @classmethod
    def of(cls, fitted: LinearMap, moments: PairMoments | None = None, limit: float = CONDITION_LIMIT) -> Conditioning:
        raw = fitted.raw_weight
        sigma, raw_sigma = (np.linalg.svd(weight, compute_uv=False) for weight in (fitted.weight, raw))
        rank = carried_rank(fitted, sigma, moments)
        normed = (False, False) if moments is None else (lacks_one_mean(moments.xx), lacks_one_mean(moments.yy))
        full = min(raw.shape[1] - normed[0], raw.shape[0] - normed[1])
        sigma[rank:] = 0
        mean_square = np.square(raw_sigma).mean()
        return cls(
            singular_values=sigma,
            condition=float(sigma[0] / sigma[full - 1]) if rank >= full else float("inf"),
            rank=rank,
            effective_rank=_effective_rank(sigma),
            orthogonality=None if moments is None else _orthogonality(_whitened(raw, moments)),
            orthogonality_raw=_orthogonality(raw_sigma),
            orthogonality_scaled=_orthogonality(raw_sigma / np.sqrt(mean_square)) if mean_square > 0 else 1.0,
            determinant_sign=_sign(fitted.weight, rank),
            constant_source=None if moments is None else int((np.diag(moments.xx) <= 0).sum()),
            constant_target=None if moments is None else int((np.diag(moments.yy) <= 0).sum()),
            source_rank=None if moments is None else varied_directions(moments),
            normed=normed,
            d_in=raw.shape[1],
            d_out=raw.shape[0],
            limit=limit,
        )

    @property
    def full(self) -> int:
        """How many directions a map could carry between such sides."""
        return min(self.d_in - self.normed[0], self.d_out - self.normed[1])

    def verdicts(self, n_pairs: int) -> list[Verdict]:
        """What a map from so many pairs can and cannot say, and which prior would help; none of it is an error."""
        return map_verdicts(self, n_pairs)


def carried_rank(fitted: LinearMap, sigma: np.ndarray, moments: PairMoments | None) -> int:
    """How many singular values (largest first) are more than rounding, of the moments too where they are known."""
    least = max(fitted.weight.shape) * np.finfo(np.float64).eps
    if moments is None:
        return int((sigma > least * sigma[0]).sum())
    # without an offset, the mean of the source is a direction that the map has seen
    seen = varied_directions(moments if fitted.x_mean.any() else moments.about_origin())
    lowest = np.where(np.arange(len(sigma)) < seen, max(least, _ROUNDINGS * moments.rounding), _GUESSED)
    return int((sigma > lowest * sigma[0]).sum())


def varied_directions(moments: PairMoments) -> int:
    """In how many directions the source varies."""
    return int((live_directions(moments)[0] > 0).sum())


def lacks_one_mean(scatter: np.ndarray) -> bool:
    """Whether exactly one direction does not vary, and it is a weighted mean of all columns, weights of one sign.

    A direction that is lost by chance has weights of either sign: of 8 columns, one in 128 would pass for a mean.
    """
    spread = np.sqrt(np.maximum(np.diag(scatter), 0))
    if len(scatter) < _COLUMNS or not spread.all():
        return False
    values, vectors = np.linalg.eigh(scatter / spread[:, None] / spread)
    dead = values <= _ROUNDED * values[-1]
    return bool(dead.sum() == 1 and abs(np.sign(vectors[:, 0]).sum()) == len(scatter))


def _effective_rank(sigma: np.ndarray) -> float:
    share = np.square(sigma / sigma[0]) if sigma[0] > 0 else np.zeros(1)
    share = share[share > 0] / max(share.sum(), 1.0)
    return float(np.exp(-share @ np.log(share))) if len(share) else 0.0


def _orthogonality(sigma: np.ndarray) -> float:
    """‖WᵀW − I‖_F / ‖I‖_F from the singular values of W; of WWᵀ if the target is narrower."""
    return distance_from_identity(np.diag(np.square(sigma)))


def _whitened(raw: np.ndarray, moments: PairMoments) -> np.ndarray:
    """Singular values of Σ_y^{−½} W Σ_x^{½}; directions that do not vary stay dead."""
    x_values, x_vectors = np.linalg.eigh(moments.xx)
    y_values, y_vectors = np.linalg.eigh(moments.yy)
    live = y_values > 1e-12 * max(y_values[-1], np.finfo(np.float64).tiny)
    y_roots = np.where(live, 1 / np.sqrt(np.where(live, y_values, 1.0)), 0.0)
    inner = y_roots[:, None] * (y_vectors.T @ raw @ x_vectors) * np.sqrt(np.maximum(x_values, 0))
    return np.linalg.svd(inner, compute_uv=False)


def _sign(weight: np.ndarray, rank: int) -> int | None:
    if weight.shape[0] != weight.shape[1]:
        return None
    return int(np.linalg.slogdet(weight)[0]) if rank == len(weight) else 0
