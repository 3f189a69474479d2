"""Audit checks on dependence: additive noise, and independence of coordinates.

Both statistics are root-mean-square correlations, which noise alone keeps above zero. The null gives each group's
contribution to a correlation a random sign, which changes nothing if there is no dependence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from jepatlas.core.linear import least_squares, whitener
from jepatlas.core.records import Estimate, Verdict
from jepatlas.identifiability.covariance import SignedProduct
from jepatlas.identifiability.preconditions.white_pairs import (
    WhitePairs,
    add_in_quadrature,
    judge,
    mean_and_quantile,
)

__all__ = ["additive_noise", "independence"]

RELEVANT_CORRELATION = 0.05

Columns = list[tuple[np.ndarray, np.ndarray]]


def additive_noise(pairs: WhitePairs) -> Verdict:
    """Whether the residual of the linear prediction, or its size, depends on the state."""
    residual = _residuals(pairs)
    noise = np.concatenate([residual, residual**2], axis=1)
    state = np.concatenate([pairs.h**2, np.abs(pairs.h) * pairs.h], axis=1)
    return _verdict(
        "additive_noise",
        pairs,
        [(noise, state)],
        good="The residual of a linear prediction does not depend on the state.",
        bad="The residual of a linear prediction depends on the state: the noise is not additive, or the latents are "
        "nonlinear in the state. Train longer, or check for a warp with the true state. If the world's own noise "
        "depends on the state, expect a warp.",
    )


def independence(pairs: WhitePairs) -> Verdict:
    """Whether the squares of different coordinates are correlated, for the latents and for their residuals."""
    if pairs.h.shape[1] == 1:
        single = Estimate.exact(0.0, len(pairs.h))
        return Verdict.judge("independence", single, direction="lower", good="There is only one coordinate.")
    squares = [np.square(part) for part in (pairs.h, _residuals(pairs))]
    return _verdict(
        "independence",
        pairs,
        [(part, part) for part in squares],
        good="The squares of different coordinates, and of their residuals, are uncorrelated.",
        bad="The squares of different coordinates are correlated, so coordinates or their noise are not independent. "
        "Standardise each episode if the scale drifts, or leave out periods where all coordinates vary strongly.",
    )


def _residuals(pairs: WhitePairs) -> np.ndarray:
    """Residuals of the linear prediction, whitened, so that unequal rates do not appear as dependence."""
    residual = pairs.h_next - least_squares(pairs.h, pairs.h_next).apply(pairs.h)
    return whitener(residual).apply(residual)


def _verdict(name: str, pairs: WhitePairs, columns: Columns, *, good: str, bad: str) -> Verdict:
    null = mean_and_quantile(_signed_dependence(columns, pairs.signs(f"{name} null")))
    estimate = pairs.estimate(name, _dependence(columns), minimum=0.0)
    return judge(name, estimate, null, add_in_quadrature(null, RELEVANT_CORRELATION), good=good, bad=bad)


def _dependence(columns: Columns) -> Callable[[np.ndarray], float]:
    """Root-mean-square correlation between left and right columns, without that of a column with itself.

    For independent columns it is 1/√n (the permutation variance of a correlation is 1/(n − 1)).
    """

    def dependence(weights: np.ndarray) -> float:
        kept = np.flatnonzero(weights)  # a bootstrap gives a third of the rows no weight
        share = weights[kept] / weights.sum()
        correlations = []
        for left, right in columns:
            a = _weighted(left[kept], share)
            b = a if left is right else _weighted(right[kept], share)
            spread = np.outer(np.linalg.norm(a, axis=0), np.linalg.norm(b, axis=0))
            correlations.append(_off_diagonal(a.T @ b / np.maximum(spread, 1e-300), left is right))
        return _root_mean_square(correlations)

    return dependence


def _weighted(columns: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Centred, and multiplied by the root of the share, so that products of columns are covariances."""
    return (columns - share @ columns) * np.sqrt(share)[:, None]


def _signed_dependence(columns: Columns, signs: Iterable[np.ndarray]) -> Iterator[float]:
    """The same with a random sign for each row's contribution."""
    products = []
    for left, right in columns:
        a = _unit(left)
        b = a if left is right else _unit(right)
        products.append((SignedProduct(a, b), left is right))
    for sign in signs:
        yield _root_mean_square([_off_diagonal(product(sign), same) for product, same in products])


def _unit(columns: np.ndarray) -> np.ndarray:
    """Centred, with unit norm."""
    centred = columns - columns.mean(0)
    return centred / np.maximum(np.linalg.norm(centred, axis=0), 1e-300)


def _off_diagonal(correlations: np.ndarray, same: bool) -> np.ndarray:
    """All correlations, without the diagonal if left and right are the same columns."""
    if not same:
        return correlations.ravel()
    return correlations[~np.eye(len(correlations), dtype=bool)]


def _root_mean_square(correlations: list[np.ndarray]) -> float:
    return float(np.sqrt(np.mean(np.concatenate(correlations) ** 2)))
