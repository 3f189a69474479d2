"""What an energy is, without the triangle inequality: not negative, zero for staying, and for nothing else.

E(x, y) ≥ 0        E(x, x) = 0        E(x, y) = 0 only if x = y        E(x, y) ≥ c‖x − y‖ with some c > 0
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from jepatlas.core.records import Estimate, Verdict
from jepatlas.energy.audit.sample import Sample

__all__ = ["floor", "identity", "indiscernibles", "nonnegativity"]


def nonnegativity(sample: Sample) -> Verdict:
    """The least energy."""
    flat = int(sample.energies.argmin())
    least = float(sample.energies.flat[flat])
    below = (sample.energies < -sample.rounding).mean()
    return Verdict.judge(
        "nonnegativity",
        _exactly(least, sample.energies.size),
        direction="higher",
        threshold=-sample.rounding,
        good="No energy is negative.",
        bad=f"The energy {sample.pair(flat)} is {least:.4g}, and {below:.1%} of all are negative: a way that gains "
        "energy could be gone for ever. Give costs, not rewards, or end in a softplus.",
    )


def identity(sample: Sample) -> Verdict:
    """The largest |E(x, x)|."""
    staying = np.abs(np.diag(sample.energies))
    state = int(staying.argmax())
    return Verdict.judge(
        "identity",
        _exactly(float(staying[state]), sample.n),
        direction="lower",
        threshold=sample.rounding,
        null=0.0,
        good="Staying costs nothing.",
        bad=f"Staying at state {sample.states[state]} costs {np.diag(sample.energies)[state]:.4g}, and more than "
        f"nothing at {(staying > sample.rounding).mean():.1%} of states. Is there an ε under a root, or are x and y "
        "encoded differently?",
    )


def indiscernibles(sample: Sample, pseudo: bool) -> Verdict:
    """The share of pairs of distinct states with no energy between them; where it is declared, it informs."""
    free = (np.abs(sample.energies) <= sample.rounding) & sample.apart
    pairs = int(sample.apart.sum())
    share = float(free.sum() / pairs) if pairs else 0.0
    named = f"Nothing is needed {sample.pair(_worst_free(sample, free))}" if free.any() else ""
    both = (free & free.T).sum() / 2
    found = f"{named}, which are distinct; {share:.1%} of pairs are such, {both:.0f} of them both ways."
    return Verdict.judge(
        "indiscernibles",
        _exactly(share, pairs),
        direction="lower",
        threshold=None if pseudo else 0.0,
        good=found + " It is declared that this may be." if free.any() else "Distinct states have energy between them.",
        bad=found + " Declare the energy as pseudo, or add c‖x − y‖ to it.",
    )


def floor(sample: Sample) -> Verdict | None:
    """The largest c with E(x, y) ≥ c‖x − y‖ for all sampled states; None where positions are not known."""
    if sample.positions is None or not sample.apart.any():
        return None
    lengths = cdist(sample.positions, sample.positions)
    ratio = np.where(sample.apart, sample.energies / np.where(sample.apart, lengths, 1.0), np.inf)
    flat = int(ratio.argmin())
    where = f"reached {sample.pair(flat)}, over a length of {lengths.flat[flat]:.4g}"
    return Verdict.judge(
        "floor",
        _exactly(float(ratio.flat[flat]), int(sample.apart.sum())),
        direction="higher",
        good=f"The largest c with E(x, y) ≥ c‖x − y‖ is {ratio.flat[flat]:.4g}, {where}.",
    )


def _worst_free(sample: Sample, free: np.ndarray) -> int:
    """The pair that is farthest apart, both ways free before one way free."""
    lengths = np.ones_like(sample.energies) if sample.positions is None else cdist(sample.positions, sample.positions)
    return int(np.where(free & free.T if (free & free.T).any() else free, lengths, -1.0).argmax())


def _exactly(value: float, n: int) -> Estimate:
    """An extreme of the sample is what it is: it has no interval."""
    return Estimate(value, value, value, n)
