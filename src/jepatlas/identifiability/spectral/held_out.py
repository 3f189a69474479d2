"""What fitted functions are worth on pairs that they have not seen: correlations with intervals, and reversibility.

Pairs are summed in blocks of whole groups, so intervals by group bootstrap need one pass and little memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.spectral.pair_chunks import PairArrays, PairChunks, Places
from jepatlas.identifiability.spectral.spectral_encoder import SpectralEncoder

__all__ = ["BlockMoments", "held_out_rates"]

BLOCKS = 200


@dataclass(frozen=True)
class BlockMoments:
    """Sums of m functions h over the pairs of each block."""

    rows: int  # pairs in all of them
    counts: np.ndarray  # (blocks,) of pairs, or the sums of their weights
    total: np.ndarray  # (blocks, m)  Σ (h + h')
    squares: np.ndarray  # (blocks, m)  Σ (h² + h'²)
    cross: np.ndarray  # (blocks, m, m)  Σ h h'ᵀ

    @classmethod
    def of(cls, encoder: SpectralEncoder, rows: Iterable[Places], low: float = 0.0) -> BlockMoments:
        """The rows with places in [low, 1), in equal ranges of places; empty blocks are dropped."""
        counts, m, count = np.zeros(BLOCKS), encoder.dim, 0
        total, squares, cross = np.zeros((BLOCKS, m)), np.zeros((BLOCKS, m)), np.zeros((BLOCKS, m, m))
        for chunk in rows:
            x, x_next, place, weights = chunk.within(low, 1.0)
            blocks, count = ((place - low) / (1 - low) * BLOCKS).astype(int), count + len(x)
            h, h_next = encoder.apply(x), encoder.apply(x_next)
            counts += np.bincount(blocks, weights, minlength=BLOCKS)
            for block in np.unique(blocks):
                a, b = h[blocks == block], h_next[blocks == block]
                w = np.ones((len(a), 1)) if weights is None else weights[blocks == block][:, None]
                total[block] += (w * (a + b)).sum(0)
                squares[block] += (w * (a**2 + b**2)).sum(0)
                cross[block] += (w * a).T @ b
        kept = counts > 0
        return cls(count, counts[kept], total[kept], squares[kept], cross[kept])

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

        The null is exact: if (x, x') and (x', x) have one law, exchanging the views of any block changes nothing, and
        that turns the sign of the block's antisymmetric part. The threshold is the null's 95% quantile.
        """
        parts, n = (self.cross - self.cross.transpose(0, 2, 1)) / 2, float(self.counts.sum())
        mean = self.total.sum(0) / (2 * n)
        whole = self.cross.sum(0) / n
        scale = np.linalg.norm((whole + whole.T) / 2 - np.outer(mean, mean)) * n

        def norms(weights: np.ndarray) -> np.ndarray:
            return np.linalg.norm(np.tensordot(weights, parts, 1), axis=(-2, -1)) / scale

        rng = numpy_generator(seed, "spectrum/reversibility")
        null = norms(rng.choice([-1.0, 1.0], (replicates, len(parts))))
        spread = norms(rng.multinomial(len(parts), np.full(len(parts), 1 / len(parts)), replicates).astype(float))
        value, limit = float(norms(np.ones((1, len(parts))))[0]), float(np.quantile(null, 0.95))
        low, high = np.quantile(spread, [0.025, 0.975])
        return Verdict(
            "reversibility",
            value,
            float(low),
            float(high),
            self.rows,
            float(null.mean()),
            limit,
            "lower",
            value <= limit,
            "Pairs look the same in both orders: the eigenfunctions of the symmetric part are those of the process."
            if value <= limit
            else "Pairs tell the direction of time: the symmetric part's eigenvalues are correlations, not "
            "decay rates, and "
            "directions that turn into each other look faster than they are.",
        )


def held_out_rates(
    encoder: SpectralEncoder,
    x: np.ndarray,
    x_next: np.ndarray,
    *,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    seed: int = 0,
    replicates: int = 500,
) -> tuple[Estimate, ...]:
    """The correlation that each of the encoder's functions keeps from x to x', on pairs it was not fitted on.

    In expectation the first is at most the true leading eigenvalue, whatever the encoder: an honest lower estimate.
    """
    pairs = PairChunks(PairArrays(x, x_next, groups, weights=weights), seed)
    return BlockMoments.of(encoder, pairs).rates(seed, replicates)
