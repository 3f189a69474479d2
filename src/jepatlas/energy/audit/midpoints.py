"""The triangle inequality of a function at adversarially chosen middle points y.

    gap = (E(x, z) − E(x, y) − E(y, z)) / max(E(x, z), s/10)        s the median energy

Random triples form wide triangles, on which even squared distances pass. So y is taken on the straight segment from x
to z, among the given points closest to that segment, and from the best of these by gradient ascent on the gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from jepatlas.core.records import Estimate, Verdict
from jepatlas.energy.audit.sample import RowEnergy, Sample, format_row
from jepatlas.energy.audit.triangle import relative_gap

__all__ = ["ascend_gap", "midpoints_verdict"]

PAIRS = 1500  # with three points on the segment and four near it: 10,500 triples
SHARES = (0.25, 0.5, 0.75)
NEAREST = 4
POOL = 2048  # given points that are searched for the nearest
ASCENTS = 64
STEPS = 25
STEP_SIZE = 0.2  # of the first ascent step, relative to ‖x − z‖


def midpoints_verdict(sample: Sample) -> Verdict | None:
    """`midpoints`: the largest gap over all triples tried; None for a matrix, which has no further points."""
    if sample.energy is None or sample.pool is None or not sample.apart.any():
        return None
    rng = sample.rng("midpoints/near")
    pairs = _Pairs.draw(sample, sample.energy, sample.rng("midpoints"))
    straight = [
        pairs.through((1 - share) * pairs.x + share * pairs.z, f"at {share:g} of the straight segment")
        for share in SHARES
    ]
    nearest = pairs.nearest_points(np.asarray(sample.positions), sample.pool, rng)
    tried = [*straight, *(pairs.through(y, "one of the given points") for y in nearest)]
    tried.append(_ascended(pairs, tried, rng))
    worst = max(tried, key=lambda triples: triples.gap.max())
    largest = float(worst.gap.max())
    count = sum(len(triples.gap) for triples in tried)
    share = np.mean([triples.gap > sample.tolerance for triples in straight])
    return Verdict.judge(
        "midpoints",
        Estimate.exact(largest, count),
        direction="lower",
        threshold=sample.tolerance,
        null=0.0,
        good=f"No middle point violates the triangle inequality, in {count} triples chosen to violate it.",
        bad=f"{worst.describe(sample)} {share:.1%} of the points on straight segments violate the triangle inequality. "
        "Use a head that is a quasimetric by construction.",
    )


def ascend_gap(energy: RowEnergy, x: np.ndarray, z: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Move each y to decrease E(x, y) + E(y, z), along the gradient or, without one, in random directions."""
    least = energy(x, y) + energy(y, z)
    length = np.linalg.norm(z - x, axis=1, keepdims=True)
    for step in range(STEPS):
        gradient = energy.detour_gradient(x, y, z)
        direction = rng.standard_normal(y.shape) if gradient is None else gradient
        unit = direction / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
        moved = y - STEP_SIZE * (1 - step / STEPS) * length * unit
        detour = energy(x, moved) + energy(moved, z)
        better = detour < least
        y = np.where(better[:, None], moved, y)
        least = np.where(better, detour, least)
    return y


@dataclass(frozen=True)
class _Triples:
    """Middle points y of some pairs."""

    rows: np.ndarray  # (2, m) sampled states x and z
    y: np.ndarray  # (m, d)
    legs: np.ndarray  # (2, m)
    gap: np.ndarray  # (m,)
    origin: str  # how the middle points were chosen

    def describe(self, sample: Sample) -> str:
        """The triple with the largest gap."""
        worst = int(self.gap.argmax())
        x, z = self.rows[:, worst]
        first, second = self.legs[:, worst]
        return (
            f"The energy {sample.pair(x * sample.n + z)} is {sample.energies[x, z]:.4g}, but through "
            f"{format_row(self.y[worst])}, {self.origin}, it is {first:.4g} + {second:.4g} = {first + second:.4g}."
        )


@dataclass(frozen=True)
class _Pairs:
    """Pairs (x, z) of sampled states."""

    rows: np.ndarray  # (2, m) sampled states x and z
    x: np.ndarray  # (m, d)
    z: np.ndarray  # (m, d)
    direct: np.ndarray  # (m,) E(x, z)
    energy: RowEnergy
    scale: float

    @classmethod
    def draw(cls, sample: Sample, energy: RowEnergy, rng: np.random.Generator) -> _Pairs:
        pairs = np.argwhere(sample.apart)
        x, z = rows = pairs[rng.permutation(len(pairs))[:PAIRS]].T
        positions = np.asarray(sample.positions)
        direct = np.maximum(sample.energies[x, z], 0.0)
        return cls(rows, positions[x], positions[z], direct, energy, sample.scale)

    def subset(self, chosen: np.ndarray) -> _Pairs:
        return _Pairs(
            self.rows[:, chosen], self.x[chosen], self.z[chosen], self.direct[chosen], self.energy, self.scale
        )

    def through(self, y: np.ndarray, origin: str) -> _Triples:
        legs = np.maximum([self.energy(self.x, y), self.energy(y, self.z)], 0.0)
        return _Triples(self.rows, y, legs, relative_gap(self.direct, legs.sum(0), self.scale), origin)

    def nearest_points(self, positions: np.ndarray, pool: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        """For each rank, the given points with the least ‖x − y‖ + ‖y − z‖ that are neither x nor z, (m, d)."""
        candidates = pool[rng.permutation(len(pool))[:POOL]].astype(np.float64)
        lengths = cdist(positions, candidates)
        lengths = np.where(lengths > 0, lengths, np.inf)
        around = lengths[self.rows[0]] + lengths[self.rows[1]]
        nearest = np.argsort(around, axis=1)[:, :NEAREST].T
        return [candidates[y] for y in nearest if np.isfinite(around[np.arange(len(y)), y]).all()]


def _ascended(pairs: _Pairs, tried: list[_Triples], rng: np.random.Generator) -> _Triples:
    """Ascent from the best y of each pair, for the pairs with the largest gaps and as many others."""
    gaps = np.stack([triples.gap for triples in tried])
    largest = np.argsort(-gaps.max(0))[:ASCENTS]
    chosen = np.unique(np.r_[largest, np.arange(min(ASCENTS, gaps.shape[1]))])
    start = np.stack([triples.y for triples in tried])[gaps.argmax(0)[chosen], chosen]
    subset = pairs.subset(chosen)
    return subset.through(ascend_gap(subset.energy, subset.x, subset.z, start, rng), "found by gradient ascent")
