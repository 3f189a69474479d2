"""What all map estimators share: a scikit-learn transformer around a fitted `LinearMap`, with targets of any width.

They keep moments of the pairs, no rows. The map is solved when it is first asked for, not at every `partial_fit`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from jepatlas.alignment.maps.conditioning import Conditioning
from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.pair_moments import PairMoments, Products

__all__ = ["FittedMap", "Parts", "StreamedMap", "by_appearance", "paired"]

Parts = tuple[PairMoments, PairMoments]
"""Pairs to fit on, and pairs to choose a penalty by (none, where there is none to choose). The map is of both."""

_ROWS = 65_536  # taken at once, so that an array mapped from disk is never copied as a whole


class FittedMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Translates rows by `map_`."""

    n_samples_seen_: int
    _parts: Parts
    _solved: LinearMap | None

    @abstractmethod
    def solve(self, fit: PairMoments, held: PairMoments) -> LinearMap:
        """The map of all these pairs."""

    @property
    @abstractmethod
    def limit(self) -> float:
        """τ: what the map carries less than 1/τ of the most is not translated back."""

    @property
    def map_(self) -> LinearMap:
        check_is_fitted(self)
        if self._solved is None:
            self._solved = self.solve(*self._parts)
        return self._solved

    @property
    def moments_(self) -> PairMoments:
        """Of all pairs that the map was fitted on."""
        check_is_fitted(self)
        return self._parts[0].merge(self._parts[1])

    @property
    def conditioning_(self) -> Conditioning:
        """How well the map can be inverted, and how far it is from a rotation."""
        return Conditioning.of(self.map_, self.moments_, self.limit)

    def transform(self, X: Any) -> np.ndarray:
        """Rows (b, d_in) of the source, translated to (b, d_out)."""
        check_is_fitted(self)
        return self.map_.apply(_validated(self, X, reset=False))

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Rows (b, d_out) of the target, translated back."""
        rows, width = np.asarray(X), len(self.map_.y_mean)
        if rows.ndim != 2 or rows.shape[1] != width:
            raise InputError(f"The target has {width} dimensions, but the rows to translate have shape {rows.shape}.")
        check_finite("X", rows)
        return self.map_.invert(self.limit).apply(rows)

    def score(self, X: Any, y: Any) -> float:
        """R², pooled over dimensions. Higher is better: 1 is perfect, 0 is what the mean of y would give."""
        check_is_fitted(self)
        x, targets = paired(self, X, y, reset=False)
        if targets.shape[1] != len(self.map_.y_mean):
            raise InputError(f"The target has {len(self.map_.y_mean)} dimensions, but y has {targets.shape[1]}.")
        return PairMoments.of(x, targets).r2(self.map_)

    @property
    def _n_features_out(self) -> int:
        return self._parts[0].d_out

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_parts")  # scikit-learn would take the width of refused rows for a fit

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


class StreamedMap(FittedMap):
    """A map of pairs that are given all at once, or a part at a time."""

    condition_limit: float
    products: Products

    @property
    def limit(self) -> float:
        return self.condition_limit

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on pairs of rows (b, d_in), (b, d_out); earlier ones are forgotten."""
        return self._fit(X, y)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Add pairs to those fitted so far. Any number of them takes the memory of a map."""
        return self._add(X, y)

    def divide(self, x: np.ndarray, y: np.ndarray, index: np.ndarray, weights: np.ndarray | None = None) -> Parts:
        """Moments of (weighted) pairs; `index` is the place of their rows, or of the groups of these, in the stream."""
        return PairMoments.of(x, y, weights, products=self.products), PairMoments.empty(x.shape[1], y.shape[1])

    def _fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        for name in ("_parts", "_groups"):
            vars(self).pop(name, None)
        self._add(X, y, groups)
        self._solved = self.solve(*self._parts)
        return self

    def _add(self, X: Any, y: Any, groups: Any = None) -> Self:
        before: Parts | None = getattr(self, "_parts", None)
        x, targets = paired(self, X, y, reset=before is None)
        seen = 0 if before is None else self.n_samples_seen_
        index = seen + np.arange(len(x)) if groups is None else self._order(groups, len(x))
        for start in range(0, len(x), _ROWS):
            rows = slice(start, start + _ROWS)
            fit, held = self.divide(x[rows], targets[rows], index[rows])
            before = (fit, held) if before is None else (before[0].merge(fit), before[1].merge(held))
        assert before is not None  # scikit-learn refuses pairs without rows
        self._parts, self._solved, self.n_samples_seen_ = before, None, seen + len(x)
        return self

    def _order(self, groups: Any, count: int) -> np.ndarray:
        """The place of each row's group, in the order of their first appearance."""
        labels, first, inverse = np.unique(np.asarray(groups), return_index=True, return_inverse=True)
        if len(inverse) != count:
            raise InputError(f"There are {count} pairs, but {len(inverse)} group labels.")
        self._groups: dict[Any, int] = getattr(self, "_groups", {})
        for label in labels[np.argsort(first)].tolist():
            self._groups.setdefault(label, len(self._groups))
        return np.array([self._groups[label] for label in labels.tolist()])[inverse]


def by_appearance(labels: np.ndarray) -> np.ndarray:
    """Groups as numbers in the order of their first rows, as a stream would number them.

    >>> by_appearance(np.array([7, 2, 7, 5])).tolist()
    [0, 1, 0, 2]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def paired(estimator: FittedMap, X: Any, y: Any, *, reset: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows (b, d_in) and (b, d_out) as scikit-learn checks them; a plain y is one column."""
    # that all is finite is seen in the moments, without a further pass over the rows
    options = {"multi_output": True, "y_numeric": True, "dtype": "numeric", "ensure_all_finite": False}
    x, targets = _validated(estimator, X, y, reset=reset, **options)
    return x, targets.reshape(len(targets), -1)


def _validated(estimator: FittedMap, *arrays: Any, **options: Any) -> Any:
    try:
        return validate_data(estimator, *arrays, **options)
    except ValueError as error:
        hint = ". Match rows by their ids, and leave out what has no partner." if "inconsistent" in str(error) else ""
        raise InputError(f"{error}{hint}") from error
