"""R² of each principal direction of the target, and effective ranks of both sides.

    R²_k = 1 − Σ(y_k − ŷ_k)² / Σ(y_k − ȳ_k)²          y_k along the k-th principal direction of the target
    effective rank = exp(−Σ p log p)                   p the shares of the variance by direction

The pooled R² weights directions by their variance: if one direction has most of it, R² describes that direction. The
unweighted mean of R²_k counts every direction alike. The number of predicted directions is the effective rank of the
variance that is predicted, of which direction k contributes Σ(y_k − ȳ_k)² − Σ(y_k − ŷ_k)².
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jepatlas.core.linear_moments import PairMoments

__all__ = ["TargetDirections", "effective_rank"]

ROUNDED = 1e-11
"""Share of the largest variance below which float32 latents do not vary in a direction."""


def effective_rank(variances: np.ndarray) -> float:
    """Exponential of the entropy of non-negative variances; 0 if all are zero.

    >>> round(effective_rank(np.array([1.0, 1.0, 0.0])), 6)
    2.0
    """
    positive = variances[variances > 0]
    if not positive.size:
        return 0.0
    shares = positive / positive.max()
    shares /= shares.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


@dataclass(frozen=True)
class TargetDirections:
    """Targets and residuals of held-out rows along the principal directions of the target, largest variance first."""

    target: np.ndarray  # (b, k)
    residual: np.ndarray  # (b, k)
    source_rank: float  # effective rank of the source
    target_rank: float

    @classmethod
    def of(cls, truth: np.ndarray, predicted: np.ndarray, moments: PairMoments) -> TargetDirections:
        """Directions are those of the pairs that the map was fitted on, whose `moments` are given."""
        values, vectors = np.linalg.eigh(moments.yy)
        kept = values > ROUNDED * max(values[-1], np.finfo(np.float64).tiny)
        basis = vectors[:, kept][:, ::-1]
        return cls(
            target=(truth - moments.y_mean) @ basis,
            residual=(truth - predicted) @ basis,
            source_rank=effective_rank(np.linalg.eigvalsh(moments.xx)),
            target_rank=effective_rank(np.maximum(values, 0)),
        )

    def totals(self, rows: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """Sums of squares of the targets about their mean, and of the residuals, by direction."""
        target = self.target[rows]
        return np.square(target - target.mean(0)).sum(0), np.square(self.residual[rows]).sum(0)

    @property
    def r2(self) -> np.ndarray:
        """R² of each direction (k,); NaN where the held-out rows do not vary."""
        total, residual = self.totals()
        return np.where(total > 0, 1 - residual / np.where(total > 0, total, 1), np.nan)

    def unweighted(self, rows: np.ndarray) -> Mapping[str, float]:
        """The mean of R² over the directions that vary in the given rows."""
        total, residual = self.totals(rows)
        varies = total > 0
        return {"r2_unweighted": float(1 - (residual[varies] / total[varies]).mean()) if varies.any() else float("nan")}

    @property
    def predicted(self) -> float:
        """Effective number of predicted directions."""
        total, residual = self.totals()
        return effective_rank(np.maximum(total - residual, 0))
