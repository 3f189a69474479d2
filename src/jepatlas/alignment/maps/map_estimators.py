"""Estimators of linear maps between latents, with the interface of scikit-learn: X is the source, y the target.

    y ≈ ȳ + s_y · W ((x − x̄) / s_x)

`offset=False` sets x̄ = ȳ = 0; the scales s are ones unless `standardise`. The fitted `map_` is a `LinearMap`, which can
be inverted, composed, saved and loaded. `inverse_transform` drops singular values of W below σ_max/τ with
τ = `condition_limit`. `products="float32"` is twice as fast for float32 rows; see `PairMoments.of`.

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

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from jepatlas.alignment.maps.conditioning import Conditioning
from jepatlas.alignment.maps.ridge_penalty import best_penalty, held_out
from jepatlas.alignment.maps.robust_weights import robust_weights
from jepatlas.alignment.splits import first_seen_numbers, group_labels
from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import CONDITION_LIMIT, LinearMap
from jepatlas.core.linear_moments import PairMoments, Products, fit_between, least_squares_of, procrustes_of, ridge_of

__all__ = ["FittedMap", "LeastSquaresMap", "ProcrustesMap", "RidgeMap", "RobustMap", "StreamedMap"]

Parts = tuple[PairMoments, PairMoments]
"""Moments of pairs to fit on and of pairs to choose a penalty on (empty if there is no penalty to choose)."""

_ROWS = 65_536  # rows per block, so that an array mapped from disk is never copied as a whole


class FittedMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Transformer that translates rows by `map_`.

    Only moments of the pairs are kept, no rows. The map is solved when it is first needed, not at every `partial_fit`.
    """

    n_samples_seen_: int
    _parts: Parts
    _solved: LinearMap | None

    @abstractmethod
    def solve(self, fit: PairMoments, held: PairMoments) -> LinearMap:
        """The map fitted on all these pairs."""

    @property
    @abstractmethod
    def limit(self) -> float:
        """τ: the inverse drops singular values below σ_max/τ."""

    @property
    def map_(self) -> LinearMap:
        check_is_fitted(self)
        if self._solved is None:
            self._solved = self.solve(*self._parts)
        return self._solved

    @property
    def moments_(self) -> PairMoments:
        """Moments of all pairs that the map was fitted on."""
        check_is_fitted(self)
        return self._parts[0].merge(self._parts[1])

    @property
    def conditioning_(self) -> Conditioning:
        """Singular values, rank and orthogonality of the map."""
        return Conditioning.of(self.map_, self.moments_, self.limit)

    def transform(self, X: Any) -> np.ndarray:
        """Translate rows (b, d_in) of the source to (b, d_out)."""
        check_is_fitted(self)
        return self.map_.apply(_validated(self, X, reset=False))

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Translate rows (b, d_out) of the target back to (b, d_in)."""
        rows, width = np.asarray(X), len(self.map_.y_mean)
        if rows.ndim != 2 or rows.shape[1] != width:
            raise InputError(f"'X' must have shape (b, {width}), the width of the target, but has shape {rows.shape}.")
        check_finite("X", rows)
        return self.map_.invert(self.limit).apply(rows)

    def score(self, X: Any, y: Any) -> float:
        """R² pooled over dimensions: 1 is perfect, 0 is the score of the mean of y."""
        check_is_fitted(self)
        x, targets = _checked_pairs(self, X, y, reset=False)
        if targets.shape[1] != len(self.map_.y_mean):
            raise InputError(f"'y' must have {len(self.map_.y_mean)} columns, but has {targets.shape[1]}.")
        return PairMoments.of(x, targets).r2(self.map_)

    @property
    def _n_features_out(self) -> int:
        return self._parts[0].d_out

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_parts")  # the default checks attributes that failed fits set, too

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


class StreamedMap(FittedMap):
    """A map that can be fitted on all pairs at once or in parts."""

    condition_limit: float
    products: Products

    @property
    def limit(self) -> float:
        return self.condition_limit

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on pairs of rows (b, d_in), (b, d_out); earlier pairs are discarded."""
        return self._fit(X, y)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Add pairs to those fitted so far. Memory does not grow with their number."""
        return self._add(X, y)

    def divide(self, x: np.ndarray, y: np.ndarray, index: np.ndarray, weights: np.ndarray | None = None) -> Parts:
        """Moments of (weighted) pairs; `index` numbers their rows, or the groups of these, over all parts."""
        return PairMoments.of(x, y, weights, products=self.products), PairMoments.empty(x.shape[1], y.shape[1])

    def _fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        for name in ("_parts", "_groups"):
            vars(self).pop(name, None)
        self._add(X, y, groups)
        self._solved = self.solve(*self._parts)
        return self

    def _add(self, X: Any, y: Any, groups: Any = None) -> Self:
        before: Parts | None = getattr(self, "_parts", None)
        x, targets = _checked_pairs(self, X, y, reset=before is None)
        seen = 0 if before is None else self.n_samples_seen_
        index = seen + np.arange(len(x)) if groups is None else self._number(groups, len(x))
        for start in range(0, len(x), _ROWS):
            rows = slice(start, start + _ROWS)
            fit, held = self.divide(x[rows], targets[rows], index[rows])
            before = (fit, held) if before is None else (before[0].merge(fit), before[1].merge(held))
        assert before is not None  # scikit-learn rejects input without rows
        self._parts, self._solved, self.n_samples_seen_ = before, None, seen + len(x)
        return self

    def _number(self, groups: Any, count: int) -> np.ndarray:
        """Number of each row's group, in order of first appearance over all parts."""
        labels, first, inverse = np.unique(np.asarray(groups), return_index=True, return_inverse=True)
        if len(inverse) != count:
            raise InputError(f"'groups' must have {count} entries, one per pair, but has {len(inverse)}.")
        self._groups: dict[Any, int] = getattr(self, "_groups", {})
        for label in labels[np.argsort(first)].tolist():
            self._groups.setdefault(label, len(self._groups))
        return np.array([self._groups[label] for label in labels.tolist()])[inverse]


class LeastSquaresMap(StreamedMap):
    """W = argmin Σ‖y − Wx‖²; the minimum-norm solution if the source is rank deficient."""

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
    """The best orthogonal map or, if `scaled`, similarity; maps between identified charts are of this form.

    With as many pairs as dimensions the error is about twice that with infinitely many; with twice as many, 1.4 times.
    With `standardise` the map is orthogonal in standardised coordinates only.
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
    """W = argmin Σ‖y − Wx‖² + λ‖W‖²; λ is given, or chosen on a held-out quarter of the pairs.

    The map is then fitted on all pairs. If rows of one group (state, episode, time block) are near copies, pass
    `groups` to `fit`, so that no group is on both sides; otherwise λ would be too small.
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
        """Fit on pairs of rows (b, d_in), (b, d_out); earlier pairs are discarded."""
        return self._fit(X, y, groups)

    def partial_fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Add pairs to those fitted so far; a group may continue in a later part."""
        return self._add(X, y, groups)

    @property
    def penalty_(self) -> float:
        """λ as given or chosen."""
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
            raise InputError(f"'penalty' must be a number or 'held-out', but '{self.penalty}' was given.")
        if held.count == 0 and fit.count > 1:
            raise InputError("Choosing 'penalty' on held-out pairs needs at least 2 groups of pairs. Give a number.")
        ridge = partial(self._ridge, fit)
        return best_penalty(fit, held, ridge, offset=self.offset, standardise=self.standardise)

    def _ridge(self, pairs: PairMoments, penalty: float) -> LinearMap:
        method = partial(ridge_of, penalty=penalty)
        return fit_between(pairs, method, offset=self.offset, standardise=self.standardise)


class RobustMap(FittedMap):
    """A map (by default least squares) fitted with low weights for mismatched pairs; see `robust_weights`.

    `trust_` is the weight of each pair, from 0 to 1; `distrusted_` are the rows with weights below ½. All rows are
    needed at once, so there is no `partial_fit`. If rows of one group are near copies, pass `groups` to `fit`: weights
    are then based on other groups, and an inner `RidgeMap` chooses its penalty on other groups.
    """

    def __init__(self, estimator: StreamedMap | None = None, *, folds: int = 5, random_state: int = 0) -> None:
        self.estimator, self.folds, self.random_state = estimator, folds, random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit on pairs of rows (b, d_in), (b, d_out), at least half of which are correct."""
        x, targets = _checked_pairs(self, X, y, reset=True)
        check_finite("x", x)
        check_finite("y", targets)
        chosen: Any = LeastSquaresMap() if self.estimator is None else clone(self.estimator)
        self.estimator_: StreamedMap = chosen
        rng = np.random.default_rng(self.random_state)
        index = first_seen_numbers(group_labels(groups, len(x)))
        self.trust_ = robust_weights(x, targets, self.estimator_.solve, rng, groups=index, folds=self.folds)
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


def _checked_pairs(estimator: FittedMap, X: Any, y: Any, *, reset: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows (b, d_in) and (b, d_out), checked by scikit-learn; a vector y is one column."""
    # moments show whether all numbers are finite, without a further pass over the rows
    options = {"multi_output": True, "y_numeric": True, "dtype": "numeric", "ensure_all_finite": False}
    x, targets = _validated(estimator, X, y, reset=reset, **options)
    return x, targets.reshape(len(targets), -1)


def _validated(estimator: FittedMap, *arrays: Any, **options: Any) -> Any:
    try:
        return validate_data(estimator, *arrays, **options)
    except ValueError as error:
        hint = (
            ". Match rows by their ids, and leave out rows without a partner." if "inconsistent" in str(error) else ""
        )
        raise InputError(f"{error}{hint}") from error
