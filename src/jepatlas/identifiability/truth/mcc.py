"""MCC, the mean correlation coefficient of nonlinear ICA: latents and states matched one to one.

    MCC = (1/n) Σ_i |Corr(h_{π(i)}, z_i)|        with the assignment π that makes it largest

Who is matched with whom, and with which sign, is decided on other rows than those it is measured on: so unrelated
latents have 0 and not the best of many accidents. It informs only. A rotation, which theory allows, lowers it: to about
.8 on average in two dimensions, and less in more.
"""

from __future__ import annotations

import numpy as np
import scipy  # its parts are loaded when they are asked for

__all__ = ["Matching", "correlations"]


class Matching:
    """The best assignment of latents to n states, from a covariance of (z, h); a state without a latent counts zero.

    >>> matching = Matching(np.array([[1, 0, 0, -1], [0, 1, 0.5, 0], [0, 0.5, 1, 0], [-1, 0, 0, 1]]), 2)
    >>> matching.latents.tolist(), matching.states.tolist(), matching.signs.tolist()
    ([0, 1], [1, 0], [1.0, -1.0])
    """

    def __init__(self, joint: np.ndarray, n: int) -> None:
        found = correlations(joint, n)
        self.n = n
        self.latents, self.states = scipy.optimize.linear_sum_assignment(-np.abs(found))
        self.signs = np.sign(found[self.latents, self.states])

    def __call__(self, joint: np.ndarray) -> float:
        """The mean correlation of the matched, in another covariance."""
        return float(self.signs @ correlations(joint, self.n)[self.latents, self.states] / self.n)


def correlations(joint: np.ndarray, n: int) -> np.ndarray:
    """Corr(h_j, z_i), (d, n), from the covariance of (z, h); 0 with what does not vary."""
    spread = np.sqrt(np.maximum(np.diag(joint), 0))
    scale = np.outer(spread[n:], spread[:n])
    return np.where(scale > 0, joint[n:, :n] / np.where(scale > 0, scale, 1.0), 0.0)
