"""Coverage: how many directions of the state are in the latents at all, in whatever form.

    left_i = E (v_i·(z − ẑ(h)))² / E (v_i·z)²        ẑ: the best function of h that was tried, z whitened

The directions v_i are the principal ones of what ẑ leaves on the rows of the fit; left_i is taken on others, so that
many dimensions and few rows do not make a direction look worse than it is. One of which most is left over is missing.
"""

from __future__ import annotations

import numpy as np

from jepatlas.base.records import Verdict
from jepatlas.identify.composition import Explained

__all__ = ["coverage"]

FOUND = 0.2
"""Share of a direction's variance that must be recovered for it to count as found."""
NAMED = 0.8


def coverage(explained: Explained, rng: np.random.Generator, replicates: int = 500) -> Verdict:
    """The number of directions of the state that some function of the latents finds, against all that vary."""
    halves = explained.halves
    fit, score = halves.split
    mean, root, unit = _whitening(halves.z[fit])
    left, states = (halves.z - explained.decoded["any"]) @ unit, (halves.z - mean) @ unit
    directions = np.linalg.eigh(left[fit].T @ left[fit])[1][:, ::-1]
    missed, around = (np.square(rows[score] @ directions) for rows in (left, states))

    def lost(weights: np.ndarray) -> np.ndarray:
        return weights @ missed > (1 - FOUND) * (weights @ around)

    count, dim = "coverage", unit.shape[1]
    found = halves.estimates(lambda weights: {count: float(dim - lost(weights).sum())}, rng, replicates)[count]
    gone = directions[:, lost(np.ones(len(score)))]
    return Verdict.judge(
        count, found, direction="higher", threshold=dim,
        good="Every direction of the state can be found in the latents.",
        bad=f"Of {dim} directions of the state only {found.value:.0f} can be found in the latents, by any function "
            f"that was tried{_named(root, gone)}.",
    )  # fmt: skip


def _whitening(z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, R and U with z − mean = R u and u = Uᵀ(z − mean) white; directions that do not vary are left out.

    Coordinates are brought to one scale first: a small one is not one that does not vary.
    """
    shifted = z - z[0]  # so that a constant column is exactly zero, not rounding
    spread = shifted.std(0)
    units = np.where(spread > 0, spread, 1.0)
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(shifted / units, rowvar=False, bias=True)))
    kept = values > 1e-12 * max(values[-1], np.finfo(float).tiny)
    roots, axes = np.sqrt(values[kept]), vectors[:, kept]
    return z[0] + shifted.mean(0), units[:, None] * axes * roots, axes / (units[:, None] * roots)


def _named(root: np.ndarray, gone: np.ndarray) -> str:
    """Which coordinates of z lie, for the most part, in the missing directions (those are columns, of white z)."""
    if gone.shape[1] in (0, len(gone)):
        return ""
    varies = np.maximum(np.square(root).sum(1), np.finfo(float).tiny)
    names = [f"z[{i}]" for i in np.flatnonzero(np.square(root @ gone).sum(1) > NAMED * varies)]
    return (
        f"; {', '.join(names)} cannot" if len(names) == gone.shape[1] else "; the rest is mixed of several coordinates"
    )
