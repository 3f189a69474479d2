"""Conditioning of a fitted map: singular values, rank, orthogonality, and verdicts on them.

    κ = σ_max/σ_min      orthogonality ‖σ² − 1‖/√k      effective rank exp(−Σ p log p), p = σ²/Σσ²      sign det W

κ and ranks refer to W between the coordinates it was fitted in, because its inverse goes through them. Orthogonality
refers to the raw matrix, and to Σ_y^{−½} W Σ_x^{½} in whitened coordinates; standardisers could hide or mimic it. In
directions in which the source does not vary, ridge leaves values at rounding level in W; they count as zero.

A network that ends in a layer normalisation, h = γ n + β with Σ n = 0, as vision transformers do, lacks one direction
by construction. It is recognised by Σ h/γ being constant with weights of one sign, and does not count in κ or rank.

Few pairs, constant dimensions, lost rank and bad conditioning are verdicts, not errors: they limit what the map can do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.alignment.directions import effective_rank
from jepatlas.core.linear import distance_from_identity
from jepatlas.core.linear_map import CONDITION_LIMIT, LinearMap
from jepatlas.core.linear_moments import PairMoments, live_directions
from jepatlas.core.records import Direction, Estimate, Verdict

__all__ = ["Conditioning", "carried_rank", "varied_directions"]

_ROUNDINGS = 16  # as for directions of the source, see `linear_moments`
_FEWEST_COLUMNS = 8
_ROUNDED = 1e-11
"""Share of the largest variance below which float32 latents do not vary in a direction."""
_GUESSED = 0.1
"""Share of the largest singular value that counts in directions in which the source never varied. A rotation maps them
like any other; other fits leave a small share there by rounding."""


@dataclass(frozen=True)
class Conditioning:
    """Properties of a map (d_in → d_out, k the smaller of both) and of the pairs it was fitted on."""

    singular_values: np.ndarray  # (k,), largest first
    condition: float
    rank: int
    effective_rank: float
    orthogonality: float | None
    """In whitened coordinates; None if the pairs are unknown. Lower is better."""
    orthogonality_raw: float
    orthogonality_scaled: float
    """That of the raw matrix divided by its root mean square singular value: zero for a similarity."""
    determinant_sign: int | None
    """1 for a rotation, −1 if it includes a reflection, 0 if singular; None if not square."""
    constant_source: int | None
    constant_target: int | None
    source_rank: int | None
    normed: tuple[bool, bool]
    """Whether the source, and the target, lack exactly the one direction of a layer normalisation."""
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
            effective_rank=effective_rank(np.square(sigma / (sigma[0] or 1.0))),
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
        """Largest rank that a map between these sides can have."""
        return min(self.d_in - self.normed[0], self.d_out - self.normed[1])

    def verdicts(self, n_pairs: int) -> list[Verdict]:
        """Verdicts on a map that was fitted on `n_pairs` pairs, with what would improve it."""
        verdicts = [self._pairs_verdict(n_pairs), *self._side_verdicts(n_pairs)]
        return [*verdicts, *self._rank_verdicts(n_pairs), *self._shape_verdicts(n_pairs)]

    def _pairs_verdict(self, n: int) -> Verdict:
        return _judge(
            "pairs_beyond_dimensions",
            n - self.d_in,
            n,
            "higher",
            1,  # the offset takes one pair
            good=f"{n} pairs for {self.d_in} source dimensions determine a linear map. Held-out R² says how well.",
            bad=f"{n} pairs for {self.d_in} source dimensions: least squares fits any target exactly, so its score on "
            "these pairs means nothing. A penalty chosen on held-out pairs needs fewer pairs; a rotation, if both "
            "charts are certified, needs fewest. Judge either by the held-out score only.",
        )

    def _side_verdicts(self, n: int) -> list[Verdict]:
        if self.source_rank is None or self.constant_source is None or self.constant_target is None:
            return []
        return [
            _judge(
                "constant_source",
                self.constant_source,
                n,
                "lower",
                0,
                good="Every source dimension varies.",
                bad=f"{self.constant_source} of {self.d_in} source dimensions are constant, so the map cannot use "
                "them. Drop them, or add pairs in which they vary.",
            ),
            _judge(
                "constant_target",
                self.constant_target,
                n,
                "lower",
                0,
                good="Every target dimension varies.",
                bad=f"{self.constant_target} of {self.d_out} target dimensions are constant. They are predicted by "
                "their constant, which R² does not count, and the inverse cannot use them. Drop them.",
            ),
            _judge(
                "source_rank",
                self.source_rank,
                n,
                "higher",
                self.d_in - self.normed[0],
                good=f"Every source direction varies{_layer_norm_note(self.normed[0])}.",
                bad=f"The source varies in {self.source_rank} of {self.d_in} directions. The map is reliable in these "
                "directions only; what a rotation does with the others is arbitrary. PCA would remove them.",
            ),
        ]

    def _rank_verdicts(self, n: int) -> list[Verdict]:
        return [
            _judge(
                "map_rank",
                self.rank,
                n,
                "higher",
                self.full,
                good=f"The map carries all {self.full} directions that it can{_layer_norm_note(any(self.normed))}.",
                bad=f"The map carries {self.rank} of {self.full} directions. The others are lost, and the inverse "
                f"restores only their mean. {self._remedy}",
            ),
            _judge(
                "condition",
                self.condition,
                n,
                "lower",
                self.limit,
                good=f"κ = {self.condition:.3g}: the inverse amplifies noise by no more than that.",
                bad=f"κ = {self.condition:.3g} is above {self.limit:.3g}. The map translates forwards, but its inverse "
                "drops the weakest directions, because they would be noise. A probe that reads them cannot be "
                f"migrated through the inverse. {self._remedy}",
            ),
        ]

    @property
    def _remedy(self) -> str:
        if self.source_rank == 0:
            return "The source does not vary at all: give pairs in which it does."
        if self.constant_target == self.d_out:
            return "The target does not vary at all: give pairs in which it does."
        return (
            "More pairs or a penalty may help with weak directions, and so may a rotation if both charts are "
            "certified. Directions that do not vary cannot be recovered."
        )

    def _shape_verdicts(self, n: int) -> list[Verdict]:
        """Properties without a threshold."""
        verdicts: list[Verdict] = []
        if self.orthogonality is not None:
            good = "‖WᵀW − I‖/‖I‖ in whitened coordinates: 0 for a rotation."
            verdicts.append(_inform("orthogonality", self.orthogonality, n, "lower", good))
        most = min(self.d_in, self.d_out)
        good = f"Effective number of directions that the map carries: exponential of the entropy of σ², at most {most}."
        verdicts.append(_inform("effective_rank", self.effective_rank, n, "higher", good))
        if self.determinant_sign is not None:
            kinds = {1: "no reflection", -1: "a reflection", 0: "the map is singular"}
            good = f"Sign of det W, between standardised coordinates if there are any: {kinds[self.determinant_sign]}."
            verdicts.append(_inform("determinant_sign", self.determinant_sign, n, "higher", good))
        return verdicts


def carried_rank(fitted: LinearMap, sigma: np.ndarray, moments: PairMoments | None) -> int:
    """Number of singular values (largest first) above rounding level, also that of the moments if they are known."""
    least = max(fitted.weight.shape) * np.finfo(np.float64).eps
    if moments is None:
        return int((sigma > least * sigma[0]).sum())
    # without an offset, the mean of the source is a direction that the map was fitted to
    seen = varied_directions(moments if fitted.x_mean.any() else moments.about_origin())
    lowest = np.where(np.arange(len(sigma)) < seen, max(least, _ROUNDINGS * moments.rounding), _GUESSED)
    return int((sigma > lowest * sigma[0]).sum())


def varied_directions(moments: PairMoments) -> int:
    """Number of directions in which the source varies."""
    return int((live_directions(moments)[0] > 0).sum())


def lacks_one_mean(scatter: np.ndarray) -> bool:
    """Whether exactly one direction does not vary, and it is a mean of all columns with weights of one sign.

    A direction that is lost by chance has weights of both signs: with 8 columns, one in 128 has weights of one sign.
    """
    spread = np.sqrt(np.maximum(np.diag(scatter), 0))
    if len(scatter) < _FEWEST_COLUMNS or not spread.all():
        return False
    values, vectors = np.linalg.eigh(scatter / spread[:, None] / spread)
    dead = values <= _ROUNDED * values[-1]
    return bool(dead.sum() == 1 and abs(np.sign(vectors[:, 0]).sum()) == len(scatter))


def _orthogonality(sigma: np.ndarray) -> float:
    """‖WᵀW − I‖_F / ‖I‖_F from the singular values of W; of WWᵀ if the target is narrower."""
    return distance_from_identity(np.diag(np.square(sigma)))


def _whitened(raw: np.ndarray, moments: PairMoments) -> np.ndarray:
    """Singular values of Σ_y^{−½} W Σ_x^{½}; zero in directions that do not vary."""
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


def _layer_norm_note(lacking: bool) -> str:
    return ", except the one that a final layer normalisation removes, which is harmless" if lacking else ""


def _judge(name: str, value: float, n: int, direction: Direction, threshold: float, *, good: str, bad: str) -> Verdict:
    estimate = Estimate.exact(value, n)
    return Verdict.judge(name, estimate, direction=direction, threshold=threshold, good=good, bad=bad)


def _inform(name: str, value: float, n: int, direction: Direction, good: str) -> Verdict:
    return Verdict.judge(name, Estimate.exact(value, n), direction=direction, good=good)
