"""Precondition audit: do pairs satisfy the assumptions of the theorems? The true state is not needed.

Each check measures the size of a violation, with a group-bootstrap interval and a null: the distribution of the
statistic if the assumption holds, for as many independent pairs. It fails if the lower limit of the interval exceeds
both the null's 99% quantile and the smallest relevant violation, because with enough samples every assumption is
violated. It is undecided if chance alone reaches a relevant violation.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.records import Verdict
from jepatlas.identifiability.dimension.rank import effective_rank, principal_axes
from jepatlas.identifiability.preconditions.dependence import additive_noise, independence
from jepatlas.identifiability.preconditions.gaussianity import coordinate_gaussianity, gaussianity, stationarity
from jepatlas.identifiability.preconditions.rates import rate_verdicts, reversibility
from jepatlas.identifiability.preconditions.white_pairs import DRAWS, WhitePairs
from jepatlas.identifiability.validation import as_arrays, check_enough_rows, check_matrices, check_same_shape

__all__ = ["audit"]

MAX_ROWS = 4000  # for sliced distances and dependences


def audit(
    h: np.ndarray, h_next: np.ndarray, *, groups: np.ndarray | None = None, seed: int = 0, draws: int = DRAWS
) -> list[Verdict]:
    """Verdicts on pairs of latents, or of any other coordinates; rows of one group are resampled together.

    Each null and each interval has `draws` draws.

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 2000, 2))
    >>> [v.name for v in audit(z, 0.9 * z + np.sqrt(0.19) * noise) if v.passed is False]
    []
    """
    h, h_next, groups = as_arrays(h=h, h_next=h_next, groups=groups)
    check_matrices(groups, h=h, h_next=h_next)
    check_same_shape(h=h, h_next=h_next)
    check_enough_rows(len(h))
    h = h.astype(np.float64)
    h_next = h_next.astype(np.float64)
    axes = principal_axes(h, h_next)
    if not len(axes.values):
        return [effective_rank(h, h_next)]
    pairs = WhitePairs.of(h, h_next, axes, groups, seed, draws=draws)
    some = pairs.subsampled(MAX_ROWS)
    return [
        effective_rank(h, h_next),
        stationarity(some),
        gaussianity(some),
        coordinate_gaussianity(some),
        *rate_verdicts(pairs),
        additive_noise(some),
        independence(some),
        reversibility(pairs),
    ]
