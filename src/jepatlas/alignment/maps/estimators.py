"""Maps between the latents of two models, as scikit-learn estimators: X is the source, y the target, rows are pairs.

    y ≈ ȳ + s_y · W ((x − x̄) / s_x)

`offset=False` is x̄ = ȳ = 0; the scales s are ones unless `standardise`. What is fitted is a `LinearMap` (`map_`), which
can be inverted, composed, saved and loaded. `inverse_transform` leaves out singular values of W below σ_max/τ, with
τ = `condition_limit`. `products="float32"` is twice as fast on streams of float32 rows; see `PairMoments.of`.

>>> x = np.random.default_rng(0).normal(size=(50, 3))
>>> y = x[:, [1, 2, 0]] + 5
>>> found = ProcrustesMap().fit(x, y)
>>> found.map_.weight.round(6) + 0.0
array([[0., 1., 0.],
       [0., 0., 1.],
       [1., 0., 0.]])
>>> np.allclose(found.inverse_transform(y), x)
True
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from jepatlas.alignment.maps.fitted import FittedMap, Parts, StreamedMap, by_appearance, paired
from jepatlas.alignment.maps.penalty import best_penalty, held_out
from jepatlas.alignment.maps.robust import trust
from jepatlas.alignment.splits import group_labels
from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import CONDITION_LIMIT, LinearMap
from jepatlas.core.linear_moments import fit_between, least_squares_of, procrustes_of, ridge_of
from jepatlas.core.pair_moments import PairMoments, Products

__all__ = ["LeastSquaresMap", "ProcrustesMap", "RidgeMap", "RobustMap"]


class LeastSquaresMap(StreamedMap):
    """W = argmin Σ‖y − Wx‖²; the smallest such W where the source is rank deficient."""

    def __init__(
        self,
        *,
        offset: bool = True,
        standardise: bool = False,
        condition_limit: float = CONDITION_LIMIT,
        products: Products = "float64",
    ) -> None:
        self.offset, self.standardise = offset, standardise
        self.condition_limit, self.products = condition_limit, products

    def solve(self, fit: PairMoments, held: PairMoments) -> LinearMap:
        return fit_between(fit.merge(held), least_squares_of, offset=self.offset, standardise=self.standardise)


class ProcrustesMap(StreamedMap):
    """The best rotation or reflection, or, `scaled`, similarity: what maps between identified charts are.

    As many pairs as dimensions suffice, at about twice the error of endless pairs; twice as many come within 1.4 times.
    Standardising makes it a rotation in standardised coordinates only.
    """

    def __init__(
        self,
        *,
        scaled: bool = False,
        offset: bool = True,
        standardise: bool = False,
        condition_limit: float = CONDITION_LIMIT,
        products: Products = "float64",
    ) -> None:
        self.scaled, self.offset, self.standardise = scaled, offset, standardise
        self.condition_limit, self.products = condition_limit, products

    def solve(self, fit: PairMoments, held: PairMoments) -> LinearMap:
        method = partial(procrustes_of, scaled=self.scaled)
        return fit_between(fit.merge(held), method, offset=self.offset, standardise=self.standardise)


class RidgeMap(StreamedMap):
    """W = argmin Σ‖y − Wx‖² + λ‖W‖²; λ is given, or chosen by the score on a quarter of the pairs held out.

    Then all pairs are fitted with it. Where rows of one group (state, episode, time block) are alike, give `groups`
    to `fit`, so that none is on both sides: λ would come out too small.
    """

    def __init__(
        self,
        penalty: float | Literal["held-out"] = "held-out",
        *,
        offset: bool = True,
        standardise: bool = False,
        condition_limit: float = CONDITION_LIMIT,
        products: Products = "float64",
        random_state: int = 0,
    ) -> None:
        self.penalty, self.offset, self.standardise = penalty, offset, standardise
        self.condition_limit, self.products, self.random_state = condition_limit, products, random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit on pairs of rows (b, d_in), (b, d_out); earlier ones are forgotten."""
        return self._fit(X, y, groups)

    def partial_fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Add pairs to those fitted so far; a group may go on in a later part."""
        return self._add(X, y, groups)

    @property
    def penalty_(self) -> float:
        """λ, as it was given or chosen."""
        check_is_fitted(self)
        return self._chosen(*self._parts)

    def solve(self, fit: PairMoments, held: PairMoments) -> LinearMap:
        return self._ridge(fit.merge(held), self._chosen(fit, held))

    def divide(self, x: np.ndarray, y: np.ndarray, index: np.ndarray, weights: np.ndarray | None = None) -> Parts:
        if self.penalty != "held-out":
            return super().divide(x, y, index, weights)
        held = held_out(index, self.random_state)
        fit, other = (
            PairMoments.of(x[rows], y[rows], None if weights is None else weights[rows], products=self.products)
            for rows in (~held, held)
        )
        return fit, other

    def _chosen(self, fit: PairMoments, held: PairMoments) -> float:
        if not isinstance(self.penalty, str):
            return self.penalty
        if self.penalty != "held-out":
            raise InputError(f"The penalty is a number or 'held-out', but '{self.penalty}' was given.")
        if held.count == 0 and fit.count > 1:
            raise InputError("A penalty chosen by held-out score needs at least 2 groups of pairs. Give it a number.")
        ridge = partial(self._ridge, fit)
        return best_penalty(fit, held, ridge, offset=self.offset, standardise=self.standardise)

    def _ridge(self, pairs: PairMoments, penalty: float) -> LinearMap:
        method = partial(ridge_of, penalty=penalty)
        return fit_between(pairs, method, offset=self.offset, standardise=self.standardise)


class RobustMap(FittedMap):
    """Another map (least squares, if none is given), fitted so that mismatched pairs do not count; see `robust`.

    `trust_` is the weight of each pair, from 0 to 1, and `distrusted_` are the rows of those below ½. It takes the rows
    themselves, so there is no `partial_fit`. Where rows of one group are alike, give `groups` to `fit`: none of them is
    judged by another, and an inner `RidgeMap` chooses its penalty by other groups, too.
    """

    def __init__(self, estimator: StreamedMap | None = None, *, folds: int = 5, random_state: int = 0) -> None:
        self.estimator, self.folds, self.random_state = estimator, folds, random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit on pairs of rows (b, d_in), (b, d_out), at least half of which belong together."""
        x, targets = paired(self, X, y, reset=True)
        check_finite("x", x)
        check_finite("y", targets)
        chosen: Any = LeastSquaresMap() if self.estimator is None else clone(self.estimator)
        self.estimator_: StreamedMap = chosen
        rng = np.random.default_rng(self.random_state)
        index = by_appearance(group_labels(groups, len(x)))
        self.trust_ = trust(x, targets, self.estimator_.solve, rng, groups=index, folds=self.folds)
        self.distrusted_ = np.flatnonzero(self.trust_ < 0.5)
        self._parts = self.estimator_.divide(x, targets, index, self.trust_)
        self._solved = self.solve(*self._parts)
        self.n_samples_seen_ = len(x)
        return self

    def solve(self, fit: PairMoments, held: PairMoments) -> LinearMap:
        return self.estimator_.solve(fit, held)

    @property
    def limit(self) -> float:
        return self.estimator_.condition_limit
