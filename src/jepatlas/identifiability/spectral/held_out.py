"""Held-out correlations of fitted functions, with intervals, and a test of reversibility.

Pairs are summed in blocks of whole groups, so the group bootstrap resamples blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.spectral.pair_rows import PairRows
from jepatlas.identifiability.spectral.spectral_encoder import SpectralEncoder

__all__ = ["BlockMoments"]

BLOCKS = 200


@dataclass(frozen=True)
class BlockMoments:
    """Sums of m functions h over the pairs of each block."""

    rows: int  # pairs in all blocks
    counts: np.ndarray  # (blocks,) number of pairs, or the sums of their weights
    total: np.ndarray  # (blocks, m)  Σ (h + h')
    squares: np.ndarray  # (blocks, m)  Σ (h² + h'²)
    cross: np.ndarray  # (blocks, m, m)  Σ h h'ᵀ

    @classmethod
    def of(cls, encoder: SpectralEncoder, pairs: Iterable[PairRows], low: float = 0.0) -> BlockMoments:
        """Moments of the rows with places in [low, 1), in blocks of equal width; empty blocks are dropped."""
        m = encoder.dim
        rows = 0
        counts = np.zeros(BLOCKS)
        total = np.zeros((BLOCKS, m))
        squares = np.zeros((BLOCKS, m))
        cross = np.zeros((BLOCKS, m, m))
        for batch in pairs:
            x, x_next, place, weights = batch.within(low, 1.0)
            blocks = ((place - low) / (1 - low) * BLOCKS).astype(int)
            rows += len(x)
            h = encoder.apply(x)
            h_next = encoder.apply(x_next)
            counts += np.bincount(blocks, weights, minlength=BLOCKS)
            for block in np.unique(blocks):
                inside = blocks == block
                a = h[inside]
                b = h_next[inside]
                w = np.ones((len(a), 1)) if weights is None else weights[inside][:, None]
                total[block] += (w * (a + b)).sum(0)
                squares[block] += (w * (a**2 + b**2)).sum(0)
                cross[block] += (w * a).T @ b
        kept = counts > 0
        return cls(rows, counts[kept], total[kept], squares[kept], cross[kept])

    def correlations(self, weights: np.ndarray) -> np.ndarray:
        """E[h h'] / E[h²] for each function, about the common mean; NaN for a constant one."""
        pairs = weights @ self.counts
        mean = weights @ self.total / (2 * pairs)
        variance = weights @ self.squares / (2 * pairs) - mean**2
        lagged = weights @ np.diagonal(self.cross, axis1=1, axis2=2) / pairs - mean**2
        return lagged / np.where(variance > 0, variance, np.nan)

    def rates(self, seed: int, replicates: int = 500) -> tuple[Estimate, ...]:
        def statistic(weights: np.ndarray) -> dict[str, float]:
            return {str(i): value for i, value in enumerate(self.correlations(weights))}

        rng = numpy_generator(seed, "spectrum/bootstrap")
        drawn = bootstrap(statistic, len(self.counts), rng, replicates=replicates)
        return tuple(replace(estimate, n=self.rows) for estimate in drawn.values())

    def reversibility(self, seed: int, replicates: int = 500) -> Verdict:
        """‖A‖/‖S‖ for the antisymmetric and symmetric part of E[h h'ᵀ]: zero for a reversible process.

        The null is exact: if (x, x') and (x', x) have the same distribution, exchanging the views of any block changes
        nothing, and flips the sign of its antisymmetric part. The threshold is the null's 95% quantile.
        """
        parts = (self.cross - self.cross.transpose(0, 2, 1)) / 2
        blocks = len(parts)
        n = float(self.counts.sum())
        mean = self.total.sum(0) / (2 * n)
        whole = self.cross.sum(0) / n
        scale = np.linalg.norm((whole + whole.T) / 2 - np.outer(mean, mean)) * n

        def norms(weights: np.ndarray) -> np.ndarray:
            return np.linalg.norm(np.tensordot(weights, parts, 1), axis=(-2, -1)) / scale

        rng = numpy_generator(seed, "spectrum/reversibility")
        null = norms(rng.choice([-1.0, 1.0], (replicates, blocks)))
        resampled = norms(rng.multinomial(blocks, np.full(blocks, 1 / blocks), replicates).astype(float))
        value = float(norms(np.ones((1, blocks)))[0])
        limit = float(np.quantile(null, 0.95))
        low, high = np.quantile(resampled, [0.025, 0.975])
        passed = value <= limit
        if passed:
            advice = "The process looks reversible, so the functions found are its eigenfunctions."
        else:
            advice = (
                "The process is not reversible: eigenvalues of the symmetric part are correlations, not decay rates, "
                "and rotating directions appear faster than they are."
            )
        return Verdict(
            "reversibility",
            value,
            float(low),
            float(high),
            self.rows,
            null=float(null.mean()),
            threshold=limit,
            direction="lower",
            passed=passed,
            advice=advice,
        )
