"""How many directions latents really have: those that vary, and coordinates that only repeat another one."""

from __future__ import annotations

import numpy as np

from jepatlas.base.records import Estimate, Verdict

__all__ = ["effective_rank", "principal_axes", "repeated_coordinates"]

DEAD = 1e-3
"""Share of the mean variance up to which a direction counts as unused."""


def principal_axes(h: np.ndarray, h_next: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Variances (d,) of the latents' principal directions, the directions as columns (d, d), and which of them vary."""
    variances, axes = np.linalg.eigh(_covariance(h, h_next))
    return variances, axes, variances > DEAD * variances.mean()


def effective_rank(h: np.ndarray, h_next: np.ndarray) -> Verdict:
    """The number of directions of the latents that vary, against their width.

    >>> h = np.array([[1.0, 3.0], [2.0, 3.0], [4.0, 3.0]])
    >>> effective_rank(h, h).advice.split(":")[0]
    'Only 1 of 2 latent directions vary'
    """
    alive, dim = int(principal_axes(h, h_next)[2].sum()), h.shape[1]
    return Verdict.judge(
        "effective_rank", Estimate(alive, alive, alive, len(h)), direction="higher", threshold=dim,
        good="Every latent direction varies. Whether the world has more dimensions than that, latents cannot tell.",
        bad=f"Only {alive} of {dim} latent directions vary: the others collapsed, or repeat them. If the world has "
            "fewer dimensions than the latents, use fewer.",
    )  # fmt: skip


def repeated_coordinates(h: np.ndarray, h_next: np.ndarray) -> Verdict:
    """The number of coordinates that are another one over again, as it is or with its sign turned; it informs.

    Each makes a direction that does not vary, too. But there nothing has faded: a place is taken twice.

    >>> h = np.random.default_rng(0).standard_normal((100, 2))
    >>> repeated_coordinates(np.c_[h, 5 - h[:, :1]], np.c_[h, 5 - h[:, :1]]).advice
    'Latent coordinate 2 repeats coordinate 0.'
    """
    covariance = _covariance(h, h_next)
    own = np.diag(covariance)
    gap = own[:, None] + own - 2 * np.abs(covariance)  # the variance of h_i ∓ h_j
    floor = DEAD * own.mean()
    same = np.tril((gap <= floor) & (own[:, None] > floor) & (own > floor), -1)
    copies = np.flatnonzero(same.any(1))
    count = float(len(copies))
    first = f"Latent coordinate {copies[0]} repeats coordinate {same[copies[0]].argmax()}" if len(copies) else ""
    more = f", and {len(copies) - 1} others repeat one" if len(copies) > 1 else ""
    return Verdict.judge(
        "repeated_coordinates", Estimate(count, count, count, len(h)), direction="lower",
        good=f"{first}{more}." if first else "No latent coordinate repeats another one.",
    )  # fmt: skip


def _covariance(h: np.ndarray, h_next: np.ndarray) -> np.ndarray:
    both = np.concatenate([h, h_next])
    shifted = both - both[0]  # so that a constant column is exactly zero, not rounding
    return np.atleast_2d(np.cov(shifted, rowvar=False))
