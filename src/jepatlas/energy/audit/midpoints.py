"""The triangle inequality of a function, where it is most likely broken: by points between x and z.

    gap = (E(x, z) − E(x, y) − E(y, z)) / max(E(x, z), s/10)

Random triples are wide triangles, on which even squared distances pass. So y is taken on the straight segment from x
to z, from the given points that lie nearly between the two, and from there by ascent on the gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from jepatlas.core.records import Estimate, Verdict
from jepatlas.energy.audit.rows import RowEnergy, short
from jepatlas.energy.audit.sample import Sample
from jepatlas.energy.audit.triangle import relative_gap

__all__ = ["climb", "midpoints"]

PAIRS = 1500  # with three points on the segment and four near it: 10,500 triples
SHARES = (0.25, 0.5, 0.75)
NEAR = 4
POOL = 2048  # given points that are looked through for those
CLIMBERS = 64
STEPS = 25
REACH = 0.2  # of the distance from x to z, in the first step of the ascent


def midpoints(sample: Sample) -> Verdict | None:
    """The largest gap over all triples tried; None for a matrix, which has no points between."""
    if sample.energy is None or sample.pool is None or not sample.apart.any():
        return None
    pairs, rng = _Pairs.of(sample, sample.energy, sample.rng("midpoints")), sample.rng("midpoints/near")
    straight = [pairs.through(y, f"at {share:g} of the straight way") for y, share in pairs.on_segment()]
    near = [
        pairs.through(y, "one of the given points") for y in pairs.near(np.asarray(sample.positions), sample.pool, rng)
    ]
    every = [*straight, *near, _climbed(pairs, straight + near, rng)]
    worst = max(every, key=lambda one: one.gap.max())
    largest, count = float(worst.gap.max()), sum(len(one.gap) for one in every)
    short_cuts = np.mean([one.gap > sample.tolerance for one in straight])
    return Verdict.judge(
        "midpoints",
        Estimate(largest, largest, largest, count),
        direction="lower",
        threshold=sample.tolerance,
        null=0.0,
        good=f"No point between is a short cut, in {count} triples that were chosen to find one.",
        bad=f"{worst.named(sample)} {short_cuts:.1%} of points on straight ways are short cuts. Use a head that is a "
        "quasimetric by construction.",
    )


def climb(
    energy: RowEnergy, ends: tuple[np.ndarray, np.ndarray], y: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Move each y to where E(x, y) + E(y, z) is less: against the gradient, or at random where there is none."""
    (x, z), least = ends, energy(ends[0], y) + energy(y, ends[1])
    length = np.linalg.norm(z - x, axis=1, keepdims=True)
    for step in range(STEPS):
        slope = energy.slope(x, y, z)
        way = rng.standard_normal(y.shape) if slope is None else slope
        unit = way / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-300)
        there = y - REACH * (1 - step / STEPS) * length * unit
        detour = energy(x, there) + energy(there, z)
        better = detour < least
        y, least = np.where(better[:, None], there, y), np.where(better, detour, least)
    return y


@dataclass(frozen=True)
class _Through:
    """Triples: rows x and z of the sample, a point y for each, and how these were found."""

    x: np.ndarray  # (m,)
    z: np.ndarray  # (m,)
    y: np.ndarray  # (m, d)
    legs: np.ndarray  # (2, m)
    gap: np.ndarray  # (m,)
    found: str

    def named(self, sample: Sample) -> str:
        at = int(self.gap.argmax())
        x, z, (first, second) = self.x[at], self.z[at], self.legs[:, at]
        return (
            f"The energy {sample.pair(x * sample.n + z)} is {sample.energies[x, z]:.4g}, but by way of "
            f"{short(self.y[at])}, {self.found}, it is {first:.4g} + {second:.4g} = {first + second:.4g}."
        )


@dataclass(frozen=True)
class _Pairs:
    """Pairs of sampled states, and what a point between them would save."""

    rows: tuple[np.ndarray, np.ndarray]  # (m,) each, of x and of z
    ends: tuple[np.ndarray, np.ndarray]  # (m, d) each
    direct: np.ndarray  # (m,)
    energy: RowEnergy
    scale: float

    @classmethod
    def of(cls, sample: Sample, energy: RowEnergy, rng: np.random.Generator) -> _Pairs:
        pairs = np.argwhere(sample.apart)
        x, z = pairs[rng.permutation(len(pairs))[:PAIRS]].T
        at = np.asarray(sample.positions)
        return cls((x, z), (at[x], at[z]), np.maximum(sample.energies[x, z], 0.0), energy, sample.scale)

    def some(self, chosen: np.ndarray) -> _Pairs:
        (x, z), (at_x, at_z) = self.rows, self.ends
        ends = (at_x[chosen], at_z[chosen])
        return _Pairs((x[chosen], z[chosen]), ends, self.direct[chosen], self.energy, self.scale)

    def through(self, y: np.ndarray, found: str) -> _Through:
        legs = np.maximum([self.energy(self.ends[0], y), self.energy(y, self.ends[1])], 0.0)
        return _Through(*self.rows, y, legs, relative_gap(self.direct, legs.sum(0), self.scale), found)

    def on_segment(self) -> list[tuple[np.ndarray, float]]:
        return [((1 - share) * self.ends[0] + share * self.ends[1], share) for share in SHARES]

    def near(self, positions: np.ndarray, pool: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        """Of the given points those with the shortest ‖x − y‖ + ‖y − z‖ that are neither x nor z."""
        some = pool[rng.permutation(len(pool))[:POOL]].astype(np.float64)
        lengths = cdist(positions, some)
        beside = np.where(lengths > 0, lengths, np.inf)
        around = beside[self.rows[0]] + beside[self.rows[1]]
        nearest = np.argsort(around, axis=1)[:, :NEAR].T
        return [some[y] for y in nearest if np.isfinite(around[np.arange(len(y)), y]).all()]


def _climbed(pairs: _Pairs, tried: list[_Through], rng: np.random.Generator) -> _Through:
    """From the best y of each pair: the pairs with the largest gaps, and as many others."""
    gaps = np.stack([one.gap for one in tried])
    chosen = np.unique(np.r_[np.argsort(-gaps.max(0))[:CLIMBERS], np.arange(min(CLIMBERS, gaps.shape[1]))])
    start = np.stack([one.y for one in tried])[gaps.argmax(0)[chosen], chosen]
    some = pairs.some(chosen)
    return some.through(climb(some.energy, some.ends, start, rng), "found by ascent")
