"""Unmixing: the rotation of white rows whose coordinates are as far from Gaussian as can be (FastICA, Hyvärinen 1999).

    V ← E[tanh(Vu) uᵀ] − diag(E tanh'(Vu)) V,        V ← (VVᵀ)^{−½} V        in turns, until V rests

Latents h = Q₂ w(Q₁z) of a Gaussian state are a rotation of independent coordinates that are not Gaussian, so this finds
w(Q₁z) again, without looking at z. Of Gaussian rows it finds some rotation, as good as any other.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from jepatlas.core.linear import whitener

__all__ = ["unmix"]

ROUNDS, REST = 200, 1e-6


def unmix(h: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """All of h (b, d), whitened and turned as found on `rows`.

    >>> rng = np.random.default_rng(0)
    >>> cubes = rng.standard_normal((4000, 2)) ** 3
    >>> found = unmix(cubes @ np.array([[0.6, -0.8], [0.8, 0.6]]), np.arange(4000), rng)
    >>> np.sort(np.abs(np.corrcoef(found.T, cubes.T)[:2, 2:]), axis=None).round(1).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    white = whitener(h[rows]).apply(h)
    u, turn = white[rows], scipy.linalg.orth(rng.standard_normal((h.shape[1],) * 2))
    for _ in range(ROUNDS):
        bent = np.tanh(u @ turn.T)
        raw = bent.T @ u / len(u) - (1 - np.square(bent)).mean(0)[:, None] * turn
        left, _, right = np.linalg.svd(raw)
        before, turn = turn, left @ right
        if np.abs(np.abs(np.sum(turn * before, axis=1)) - 1).max() < REST:
            break
    return white @ turn.T
