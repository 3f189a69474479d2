"""The precondition audit: do a user's own pairs look like the world that the theorems speak of? No truth is needed.

Each check is the size of a violation, with an interval from a bootstrap by groups, beside its null: what the statistic
is where the assumption holds, in as many independent pairs. It fails where even the lower end of the interval is above
both the null's 99% quantile and what matters in practice, for with enough samples every assumption is violated. Where
chance alone reaches what matters, it does not pass either: it is undecided.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.records import Verdict
from jepatlas.identifiability.checks import as_arrays, check_matrices, check_rows_to_judge, check_same_shape
from jepatlas.identifiability.dimension.rank import effective_rank, principal_axes
from jepatlas.identifiability.preconditions.coordinates import coordinate_gaussianity
from jepatlas.identifiability.preconditions.dependence import additive_noise, independence
from jepatlas.identifiability.preconditions.distributions import gaussianity, stationarity
from jepatlas.identifiability.preconditions.pairs import WhitePairs
from jepatlas.identifiability.preconditions.rates import rate_verdicts, reversibility

__all__ = ["audit"]

ROWS = 4000  # as many as the sliced distances and dependences are taken over


def audit(h: np.ndarray, h_next: np.ndarray, *, groups: np.ndarray | None = None, seed: int = 0) -> list[Verdict]:
    """Verdicts on pairs of latents, or of any other coordinates; rows of one group are drawn and exchanged together.

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 2000, 2))
    >>> [v.name for v in audit(z, 0.9 * z + np.sqrt(0.19) * noise) if v.passed is False]
    []
    """
    h, h_next, groups = as_arrays(h=h, h_next=h_next, groups=groups)
    check_matrices(groups, h=h, h_next=h_next)
    check_same_shape(h=h, h_next=h_next)
    check_rows_to_judge(len(h))
    h, h_next = h.astype(np.float64), h_next.astype(np.float64)
    axes = principal_axes(h, h_next)
    if not len(axes.values):
        return [effective_rank(h, h_next)]
    pairs = WhitePairs.of(h, h_next, axes, groups, seed)
    some = pairs.some(ROWS)
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
