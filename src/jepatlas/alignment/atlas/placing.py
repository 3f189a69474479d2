"""Projection Procrustes: a chart is turned onto known coordinates of the same states, by an orthogonal map.

    minimise  Σ_s ‖y_s − M x_s‖²    over M with MMᵀ = I,   x the wider of the two sides, centred

What only the wider side sees is no error. With equal widths M = UVᵀ of the cross-scatter. Else there is no closed form,
and UVᵀ is right on average only, for white coordinates; the fit then goes down from it by majorisation: with A = Σxxᵀ
and α its largest eigenvalue, M ← polar(Σyxᵀ + M(αI − A)).
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.linear_map import LinearMap

__all__ = ["place", "polar", "rank"]

STEPS, TOLERANCE = 300, 1e-14
RANK = 1e-10
"""Singular values of a cross-scatter below this share of the largest are rounding."""


def place(u: np.ndarray, goal: np.ndarray) -> LinearMap:
    """The orthogonal map of rows u (n, d) onto the coordinates `goal` (n, D), with orthonormal columns or rows.

    >>> z = np.random.default_rng(0).standard_normal((9, 3))
    >>> np.allclose(place(z[:, [2, 0]], z).weight, [[0, 1], [0, 0], [1, 0]], atol=1e-6)
    True
    """
    u_mean, goal_mean = u.mean(0), goal.mean(0)
    x, y = u - u_mean, goal - goal_mean
    weight = _project(x, y) if u.shape[1] >= goal.shape[1] else _project(y, x).T
    return LinearMap(weight, u_mean, goal_mean)


def _project(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """M (narrow, wide)."""
    cross, gram = y.T @ x, x.T @ x
    m = polar(cross)
    if x.shape[1] == y.shape[1]:
        return m
    rest = np.linalg.eigvalsh(gram)[-1] * np.eye(len(gram)) - gram
    for _ in range(STEPS):
        before, m = m, polar(cross + m @ rest)
        if np.square(m - before).sum() <= TOLERANCE * len(m):
            break
    return m


def polar(matrix: np.ndarray) -> np.ndarray:
    """UVᵀ of UΣVᵀ: the matrix with orthonormal columns (rows, where it is wide) that agrees best."""
    u, _, vt = np.linalg.svd(matrix, full_matrices=False)
    return u @ vt


def rank(matrix: np.ndarray) -> int:
    """Directions of a cross-scatter that are more than rounding."""
    sigma = np.linalg.svd(matrix, compute_uv=False)
    return int((sigma > RANK * max(sigma[0], np.finfo(float).tiny)).sum())
