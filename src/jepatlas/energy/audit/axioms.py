"""Axioms other than the triangle inequality, and the degree of asymmetry.

E(x, y) ≥ 0        E(x, x) = 0        E(x, y) = 0 only if x = y        E(x, y) ≥ c‖x − y‖ with c > 0

asymmetry = mean over pairs of |E(x, y) − E(y, x)| / (E(x, y) + E(y, x)): 0 if symmetric, 1 if all pairs are one-way
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import bootstrap
from jepatlas.energy.audit.sample import Sample

__all__ = [
    "asymmetry_index",
    "asymmetry_verdict",
    "floor_verdict",
    "identity_verdict",
    "indiscernibles_verdict",
    "nonnegativity_verdict",
]

REPLICATES = 200
MOST_PAIRS = 100_000  # at energy zero, whose lengths are compared
ROWS = 1024  # rows of a matrix of lengths that are in memory at once


def nonnegativity_verdict(sample: Sample) -> Verdict:
    """`nonnegativity`: the smallest energy."""
    flat = int(sample.energies.argmin())
    smallest = float(sample.energies.flat[flat])
    share = (sample.energies < -sample.rounding).mean()
    return Verdict.judge(
        "nonnegativity",
        Estimate.exact(smallest, sample.energies.size),
        direction="higher",
        threshold=-sample.rounding,
        good="No energy is negative.",
        bad=f"The energy {sample.pair(flat)} is {smallest:.4g}; {share:.1%} of the energies are negative. A cycle of "
        "negative cost has no minimum. Use costs instead of rewards, or end the network in a softplus.",
    )


def identity_verdict(sample: Sample) -> Verdict:
    """`identity`: the largest |E(x, x)|."""
    diagonal = sample.diagonal
    state = int(np.abs(diagonal).argmax())
    name = state if sample.pool is not None else sample.states[state]
    share = (np.abs(diagonal) > sample.rounding).mean()
    return Verdict.judge(
        "identity",
        Estimate.exact(float(np.abs(diagonal[state])), len(diagonal)),
        direction="lower",
        threshold=sample.rounding,
        null=0.0,
        good="The energy from a state to itself is zero.",
        bad=f"The energy from state {name} to itself is {diagonal[state]:.4g}; it is not zero at "
        f"{share:.1%} of the states. Look for an ε under a square root, or for different encoders of x and y.",
    )


def indiscernibles_verdict(sample: Sample, pseudo: bool) -> Verdict:
    """`indiscernibles`: the share of pairs of distinct states at energy zero. No threshold if declared `pseudo`."""
    zero = (np.abs(sample.energies) <= sample.rounding) & sample.apart
    pairs = int(sample.apart.sum())
    share = float(zero.sum() / pairs) if pairs else 0.0
    good = "Distinct states have positive energy between them."
    found = ""
    if zero.any():
        both = (zero & zero.T).sum() / 2
        found = (
            f"The energy {sample.pair(_farthest(sample, zero))} is zero although they are distinct. {share:.1%} of "
            f"pairs have energy zero, {both:.0f} of them in both directions."
        )
        good = f"{found} The energy is declared as pseudo, so this is allowed."
    return Verdict.judge(
        "indiscernibles",
        Estimate.exact(share, pairs),
        direction="lower",
        threshold=None if pseudo else 0.0,
        good=good,
        bad=f"{found} Declare the energy as pseudo, or add c‖x − y‖ to it.",
    )


def floor_verdict(sample: Sample) -> Verdict | None:
    """`floor`: the largest c with E(x, y) ≥ c‖x − y‖ on the sample; None without positions."""
    if sample.positions is None or not sample.apart.any():
        return None
    least, flat, length = np.inf, 0, 0.0
    for first in range(0, sample.n, ROWS):
        rows = slice(first, first + ROWS)
        lengths = cdist(sample.positions[rows], sample.positions)
        apart = sample.apart[rows]
        ratio = np.where(apart, sample.energies[rows] / np.where(apart, lengths, 1.0), np.inf)
        place = int(ratio.argmin())
        if ratio.flat[place] < least:
            least, flat, length = float(ratio.flat[place]), first * sample.n + place, float(lengths.flat[place])
    return Verdict.judge(
        "floor",
        Estimate.exact(least, int(sample.apart.sum())),
        direction="higher",
        good=f"The largest c with E(x, y) ≥ c‖x − y‖ is {least:.4g}, attained {sample.pair(flat)} at distance "
        f"{length:.4g}.",
    )


def asymmetry_verdict(sample: Sample) -> Verdict:
    """`asymmetry`: the mean index with a bootstrap interval over states. It has no threshold."""
    row, column = np.triu_indices(sample.n, 1)
    index = asymmetry_index(sample.energies)[row, column]

    def mean(weights: np.ndarray) -> dict[str, float]:
        pairs = weights[row] * weights[column]
        return {"asymmetry": float(np.average(index, weights=pairs if pairs.any() else None))}

    estimate = bootstrap(mean, sample.n, sample.rng("asymmetry"), replicates=REPLICATES)["asymmetry"]
    worst = int(index.argmax())
    advice = "The energy is symmetric."
    if index[worst] > sample.tolerance:
        directions = [(row[worst], column[worst]), (column[worst], row[worst])]
        dear, cheap = sorted(directions, key=lambda pair: -sample.energies[pair])
        advice = (
            f"The largest difference is {sample.pair(dear[0] * sample.n + dear[1])}: {sample.energies[dear]:.4g}, "
            f"against {sample.energies[cheap]:.4g} in the other direction."
        )
    return Verdict.judge("asymmetry", estimate, direction="higher", null=0.0, good=advice)


def asymmetry_index(energies: np.ndarray) -> np.ndarray:
    """|E(x, y) − E(y, x)| / (E(x, y) + E(y, x)) of every pair, (n, n).

    It is 1 for pairs reachable in one direction only, and 0 if both energies are zero or both infinite.

    >>> asymmetry_index(np.array([[0.0, 3.0], [1.0, 0.0]]))[0, 1]
    np.float64(0.5)
    """
    there = np.maximum(energies, 0.0)
    back = there.T
    one_way = np.isinf(there) != np.isinf(back)
    finite = np.isfinite(there) & np.isfinite(back)
    total = np.where(finite, there + back, 0.0)
    difference = np.abs(np.where(finite, there, 0.0) - np.where(finite, back, 0.0))
    return np.where(one_way, 1.0, difference / np.where(total > 0, total, 1.0))


def _farthest(sample: Sample, zero: np.ndarray) -> int:
    """The most distant pair at energy zero; pairs that are zero in both directions come first."""
    both = zero & zero.T
    pairs = np.flatnonzero(both if both.any() else zero)
    if sample.positions is None:
        return int(pairs[0])
    pairs = pairs[:: max(1, len(pairs) // MOST_PAIRS)]
    rows, columns = np.divmod(pairs, sample.n)
    return int(pairs[np.square(sample.positions[rows] - sample.positions[columns]).sum(1).argmax()])
