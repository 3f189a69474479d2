"""How far latents may be from a rotation of the state, and still count as one: one standard for all certificates."""

from __future__ import annotations

import numpy as np

__all__ = ["UNEXPLAINED", "epsilon_of_sampling"]

UNEXPLAINED = 0.02
"""Share of the variance that may stay unexplained: 1 − R² with the true state, and without it the error of a rotation,
E‖h − Qz‖² / n, that Theorem 3 allows. Also the R² that may be lost by leaving directions out, and the share from which
a corruption is worth mentioning."""


def epsilon_of_sampling(dim: int, pairs: float, rho: float = 0.0) -> float:
    """ε = ‖Cov h − I‖_F of white Gaussian latents due to sampling alone: √(d(d+1)(1+ρ²) / 2 pairs).

    The two rows of a pair count as 2/(1+ρ²) independent rows, because their products have correlation ρ².
    """
    return float(np.sqrt(dim * (dim + 1) * (1 + rho**2) / (2 * pairs)))
