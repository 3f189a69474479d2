"""Does what a linear prediction leaves depend on the state, and do coordinates depend on each other?

Both are the root mean square of correlations, which noise alone does not leave at zero. The null gives every group's
part of a correlation a random sign: where there is no dependence, that changes nothing, however rows of a group hang
together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from jepatlas.core.linear import least_squares, whitener
from jepatlas.core.records import Estimate, Verdict
from jepatlas.identifiability.covariance import SignedProduct
from jepatlas.identifiability.preconditions.pairs import WhitePairs, beside, judge, quantiles

__all__ = ["additive_noise", "independence"]

DEPENDENCE = 0.05  # that matters


def additive_noise(pairs: WhitePairs) -> Verdict:
    """Whether the residual of the linear prediction, or its size, depends on the state it started from."""
    residual = _residuals(pairs)
    noise = np.concatenate([residual, residual**2], axis=1)
    state = np.concatenate([pairs.h**2, np.abs(pairs.h) * pairs.h], axis=1)
    return _judged(
        "additive_noise",
        pairs,
        [(noise, state)],
        (
            "What a linear prediction leaves over does not depend on the state.",
            "The residual of a linear prediction depends on the state: the noise is not additive, or "
            "the latents are bent. "
            "Look for a warp with the truth at hand, or train further; where the world's own noise is "
            "so, expect a warp.",
        ),
    )


def independence(pairs: WhitePairs) -> Verdict:
    """Whether the squares of different coordinates are correlated, of the latents and of their residuals."""
    if pairs.h.shape[1] == 1:
        alone = Estimate(0.0, 0.0, 0.0, len(pairs.h))
        return Verdict.judge("independence", alone, direction="lower", good="There is only one coordinate.")
    squares = [np.square(part) for part in (pairs.h, _residuals(pairs))]
    return _judged(
        "independence",
        pairs,
        [(part, part) for part in squares],
        (
            "Coordinates, and their residuals, vary independently as far as their squares tell.",
            "Coordinates vary together in size: they are not independent, in the state or in its noise. Standardise by "
            "episode if their scale drifts, or leave out the stretches where all of them swing.",
        ),
    )


def _residuals(pairs: WhitePairs) -> np.ndarray:
    """Of the linear prediction, whitened: what is left must not owe its dependence to unequal rates."""
    residual = pairs.h_next - least_squares(pairs.h, pairs.h_next).apply(pairs.h)
    return whitener(residual).apply(residual)


Columns = list[tuple[np.ndarray, np.ndarray]]


def _judged(name: str, pairs: WhitePairs, columns: Columns, advice: tuple[str, str]) -> Verdict:
    null = quantiles(_signed(columns, pairs.signs(f"{name} null")))
    estimate = pairs.estimate(name, _dependence(columns), least=0.0)
    return judge(name, estimate, null, beside(null, DEPENDENCE), advice)


def _dependence(columns: Columns) -> Callable[[np.ndarray], float]:
    """Root mean square of the correlations between the columns on the left and those on the right; 0 for the same one.

    Of independent columns it is 1/√n (the permutation variance of a correlation is 1/(n − 1)).
    """

    def of(weights: np.ndarray) -> float:
        kept = np.flatnonzero(weights)  # a bootstrap leaves a third of the rows without weight
        share, squares = weights[kept] / weights.sum(), []
        for left, right in columns:
            a = _scaled(left[kept], share)
            b = a if left is right else _scaled(right[kept], share)
            spread = np.outer(np.linalg.norm(a, axis=0), np.linalg.norm(b, axis=0))
            squares.append(_different(a.T @ b / np.maximum(spread, 1e-300), left is right))
        return _size(squares)

    return of


def _scaled(columns: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Centred, and every row times the root of its share, so that products of columns are covariances."""
    return (columns - share @ columns) * np.sqrt(share)[:, None]


def _signed(columns: Columns, signs: Iterable[np.ndarray]) -> Iterator[float]:
    """The same where each row's part of a correlation has a random sign."""
    products = []
    for left, right in columns:
        a = _unit(left)
        products.append((SignedProduct(a, a if left is right else _unit(right)), left is right))
    for sign in signs:
        yield _size([_different(product(sign), same) for product, same in products])


def _unit(columns: np.ndarray) -> np.ndarray:
    """Centred, and of length one."""
    centred = columns - columns.mean(0)
    return centred / np.maximum(np.linalg.norm(centred, axis=0), 1e-300)


def _different(correlations: np.ndarray, same: bool) -> np.ndarray:
    """Without those of a column with itself."""
    return correlations[~np.eye(len(correlations), dtype=bool)] if same else correlations.ravel()


def _size(correlations: list[np.ndarray]) -> float:
    return float(np.sqrt(np.mean(np.concatenate(correlations) ** 2)))
