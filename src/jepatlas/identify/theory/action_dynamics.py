"""Linear dynamics with actions, h' = A h + B u + c, fitted to rows of latents, actions and next latents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear_moments import PairMoments, least_squares_of

__all__ = ["LinearDynamics", "fit_dynamics"]


@dataclass(frozen=True, eq=False)
class LinearDynamics:
    """h' = A h + B u + c."""

    a_dd: np.ndarray
    b_da: np.ndarray
    c_d: np.ndarray

    @classmethod
    def given(cls, a: np.ndarray, b: np.ndarray, dim: int, actions: int) -> LinearDynamics:
        """Known A and B, for states and actions of these widths."""
        a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
        if a.shape != (dim, dim) or b.shape != (dim, actions):
            raise InputError(
                f"For states of width {dim} and actions of width {actions}, A must be {(dim, dim)} and B "
                f"{(dim, actions)}, but {a.shape} and {b.shape} were given."
            )
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise InputError("A or B holds NaN or infinite numbers. Give finite ones.")
        return cls(a, b, np.zeros(dim))

    def apply(self, h: np.ndarray, u: np.ndarray) -> np.ndarray:
        """(b, d), (b, a) → (b, d)"""
        return h @ self.a_dd.T + u @ self.b_da.T + self.c_d


def fit_dynamics(h: np.ndarray, u: np.ndarray, h_next: np.ndarray, weights: np.ndarray | None = None) -> LinearDynamics:
    """By least squares on (weighted) rows; the smallest A and B where the rows leave them open.

    >>> h, u = np.random.default_rng(0).standard_normal((2, 50, 2))
    >>> fit_dynamics(h, u, 0.5 * h + 2 * u).b_da.round(9) + 0.0
    array([[2., 0.],
           [0., 2.]])
    """
    found = least_squares_of(PairMoments.of(np.concatenate([h, u], axis=1), h_next, weights))
    a, b = np.split(found.weight, [h.shape[1]], axis=1)
    return LinearDynamics(a, b, found.y_mean - found.weight @ found.x_mean)
