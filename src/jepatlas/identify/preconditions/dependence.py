"""Does what a linear prediction leaves depend on the state, and do coordinates depend on each other?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jepatlas.base.linear import least_squares, whitener
from jepatlas.base.records import Estimate, Verdict
from jepatlas.identify.preconditions.pairs import WhitePairs, judge

__all__ = ["additive_noise", "independence"]

DEPENDENCE = 0.05  # that matters


def additive_noise(pairs: WhitePairs) -> Verdict:
    """Whether the residual of the linear prediction, or its size, depends on the state it started from."""
    residual = _residuals(pairs)
    noise = np.concatenate([residual, residual**2], axis=1)
    state = np.concatenate([pairs.h**2, np.abs(pairs.h) * pairs.h], axis=1)
    estimate = pairs.estimate("additive_noise", _dependence([(noise, state)]))
    return judge("additive_noise", estimate, _independent(pairs), DEPENDENCE, (
        "What a linear prediction leaves over does not depend on the state.",
        "The residual of a linear prediction depends on the state: the noise is not additive, or the latents are bent.",
    ))  # fmt: skip


def independence(pairs: WhitePairs) -> Verdict:
    """Whether the squares of different coordinates are correlated, of the latents and of their residuals."""
    if pairs.h.shape[1] == 1:
        alone = Estimate(0.0, 0.0, 0.0, len(pairs.h))
        return Verdict.judge("independence", alone, direction="lower", good="There is only one coordinate.")
    squares = [np.square(part) for part in (pairs.h, _residuals(pairs))]
    estimate = pairs.estimate("independence", _dependence([(part, part) for part in squares]))
    return judge("independence", estimate, _independent(pairs), DEPENDENCE, (
        "Coordinates, and their residuals, vary independently as far as their squares tell.",
        "Coordinates vary together in size: they are not independent, in the state or in its noise.",
    ))  # fmt: skip


def _residuals(pairs: WhitePairs) -> np.ndarray:
    """Of the linear prediction, whitened: what is left must not owe its dependence to unequal rates."""
    residual = pairs.h_next - least_squares(pairs.h, pairs.h_next).apply(pairs.h)
    return whitener(residual).apply(residual)


def _dependence(columns: list[tuple[np.ndarray, np.ndarray]]) -> Callable[[np.ndarray], float]:
    """Root mean square of the correlations between the columns on the left and those on the right; 0 for the same one.

    Of independent columns it is 1/√n (the permutation variance of a correlation is 1/(n − 1)).
    """

    def of(weights: np.ndarray) -> float:
        share, squares = weights / weights.sum(), []
        for left, right in columns:
            a, b = left - share @ left, right - share @ right
            spread = np.sqrt(np.outer(share @ a**2, share @ b**2))
            correlation = (a * share[:, None]).T @ b / np.maximum(spread, 1e-300)
            squares.append(correlation[~np.eye(len(correlation), dtype=bool)] if left is right else correlation.ravel())
        return float(np.sqrt(np.mean(np.concatenate(squares) ** 2)))

    return of


def _independent(pairs: WhitePairs) -> tuple[float, float]:
    null = 1 / np.sqrt(max(pairs.groups - 1, 1))
    return null, 1.5 * null
