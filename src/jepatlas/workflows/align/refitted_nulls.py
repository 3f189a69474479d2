"""Errors and R² of maps that are fitted anew to permuted pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from jepatlas.alignment import LeastSquaresMap, RidgeMap, measure
from jepatlas.alignment.maps.permuted_ridge import PermutedRidge
from jepatlas.alignment.maps.ridge_penalty import held_out
from jepatlas.alignment.splits import first_seen_numbers
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.stats import explained_share

if TYPE_CHECKING:
    from jepatlas.workflows.align.align_study import Study

__all__ = ["REFITTED", "Fit", "HasMap", "refitted_scores"]

REFITTED = ("r2", "mse_sum", "mse_per_dim")
"""Metrics whose null fits the map anew to permuted pairs."""


class HasMap(Protocol):
    """A fitted estimator with a linear map."""

    @property
    def map_(self) -> LinearMap: ...


Fit = Callable[[np.ndarray, np.ndarray, np.ndarray | None], HasMap]
"""Fits a map to pairs of rows (b, d_a), (b, d_b) and optional groups of rows."""
Scores = Callable[[np.ndarray], Mapping[str, float]]
"""Metrics of one order of the rows of b."""


def refitted_scores(
    a: np.ndarray, b: np.ndarray, fit: Fit, fitted: HasMap, study: Study, *, names: list[str]
) -> Scores:
    """Metrics of the map that is fitted to a and b[order], scored on the held-out rows.

    Maps of the same kind as `fitted` share one factorisation of a where that is possible.
    """
    rows, scored = study.split.fit, study.scored
    groups = None if study.groups is None else study.groups[rows]
    shared = _shared_factors(a, rows, scored, groups, fitted)
    if shared is not None:
        standardise = isinstance(fitted, LeastSquaresMap | RidgeMap) and fitted.standardise
        return _from_factors(shared, b, (rows, scored), standardise, names)

    def refit(order: np.ndarray) -> Mapping[str, float]:
        found = fit(a[rows], b[order[rows]], groups)
        return measure(a[scored], b[order[scored]], found.map_, names=names, limit=study.limit)

    return refit


def _shared_factors(
    a: np.ndarray, rows: np.ndarray, scored: np.ndarray, groups: np.ndarray | None, fitted: HasMap
) -> PermutedRidge | None:
    """None for maps that are not linear in their targets, or whose settings are not the usual ones."""
    if not isinstance(fitted, LeastSquaresMap | RidgeMap) or not fitted.offset:
        return None
    held = None
    if isinstance(fitted, RidgeMap):
        if fitted.penalty != "held-out":
            return None
        held = held_out(np.arange(len(rows)) if groups is None else first_seen_numbers(groups), fitted.random_state)
    elif len(rows) <= a.shape[1]:
        return None  # moments would lose small directions of a fit that is exact
    return PermutedRidge(a[rows], a[scored], held, standardise=fitted.standardise)


def _from_factors(
    shared: PermutedRidge, b: np.ndarray, split: tuple[np.ndarray, np.ndarray], standardise: bool, names: list[str]
) -> Scores:
    rows, scored = split
    targets = (b - b.mean(0, dtype=np.float64)).astype(np.float32)
    unit = np.abs(targets).max(initial=0.0) or 1.0
    targets /= unit

    def score(order: np.ndarray) -> Mapping[str, float]:
        fitted_to, truth = targets[order[rows]], targets[order[scored]].astype(np.float64)
        errors = np.square(truth - shared.predict(fitted_to)).sum(0)
        spread = _spread(fitted_to) if standardise else np.full(len(errors), 1 / unit)
        squares = float((errors / np.square(np.where(spread > 0, spread, 1 / unit))).sum()) / len(truth)
        total = float(np.square(truth - truth.mean(0)).sum())
        found = {
            "r2": explained_share(errors.sum(), total),
            "mse_sum": squares,
            "mse_per_dim": squares / len(errors),
        }
        return {name: found[name] for name in names}

    return score


def _spread(rows: np.ndarray) -> np.ndarray:
    """Standard deviation of each column of nearly centred rows."""
    mean = np.ones(len(rows), rows.dtype) / len(rows) @ rows
    squares = np.einsum("ij,ij->j", rows, rows) / len(rows)
    return np.sqrt(np.maximum(squares - np.square(mean), 0.0)).astype(np.float64)
