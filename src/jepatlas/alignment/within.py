"""Partial out a column that both sides share, such as the light or the time, so that the rest is aligned.

    h ← h − B(c) β        β = argmin Σ‖h − h̄ − B(c) β‖² over the rows to fit on

B are indicators of categories (strings, or numbers with few distinct values), or cubic splines with knots at quantiles.
A category that the rows to fit on lack has no effect of its own.
"""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import SplineTransformer

from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.linear import least_squares

__all__ = ["SharedColumn"]

FEW = 12
"""Numbers with at most so many distinct values are categories."""
KNOTS = 8
ROWS_PER_TERM = 4
"""Fewest rows to fit on for each term of the basis."""


class SharedColumn:
    """A column (n,), or several (n, k), of which smooth or categorical effects are removed from latents.

    >>> light = np.linspace(0, 1, 200)
    >>> h = np.stack([np.sin(3 * light), light**2], 1)
    >>> float(np.abs(SharedColumn(light, np.arange(0, 200, 2)).residual(h) - h.mean(0)).max()) < 0.01
    True
    """

    def __init__(self, column: np.ndarray, fit_rows: np.ndarray) -> None:
        column = np.asarray(column)
        parts = column[:, None] if column.ndim == 1 else column
        self._rows = fit_rows
        self._basis = np.concatenate([_terms(part, fit_rows) for part in parts.T], axis=1)
        if not self._basis.shape[1]:
            raise InputError("The column to partial out ('within') does not vary in the rows to fit on. Leave it out.")
        if len(fit_rows) < ROWS_PER_TERM * self._basis.shape[1]:
            raise InputError(
                f"The column to partial out ('within') has {self._basis.shape[1] + 1} categories or terms, too many "
                f"for {len(fit_rows)} rows to fit on. Give a coarser column or more rows."
            )

    def residual(self, h: np.ndarray) -> np.ndarray:
        """Latents (n, d) without the effect of the column; their mean is kept."""
        fitted = least_squares(self._basis[self._rows], h[self._rows])
        return h - (fitted.apply(self._basis) - fitted.y_mean)


def _terms(column: np.ndarray, fit_rows: np.ndarray) -> np.ndarray:
    """The basis B(c) (n, k); no terms for a column that does not vary."""
    if column.dtype.kind in "US" or len(np.unique(column)) <= FEW:
        categories = np.unique(column[fit_rows])
        return (column[:, None] == categories[1:]).astype(np.float64)
    check_finite("within", column)
    splines = SplineTransformer(KNOTS, knots="quantile", extrapolation="linear", include_bias=False)
    return splines.fit(column[fit_rows, None].astype(np.float64)).transform(column[:, None].astype(np.float64))
