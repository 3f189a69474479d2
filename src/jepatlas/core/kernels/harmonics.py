"""Sums and gradients over the harmonics cos kθ and sin kθ, without storing them.

Given cos θ and sin θ of every sample (rows) and slice (columns), the Chebyshev recurrence computes all knots k in the
first-level cache, for a block of columns at a time. This takes one multiplication and three additions per sample, slice
and knot for each of the two. The torch equivalent is in `jepatlas.core.normality`.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.kernels import compiled

__all__ = ["harmonic_gradient", "harmonic_sums"]

COLUMNS = 256  # of one block; its sums over 17 knots fill half of a first-level cache


@compiled(fastmath=True)
def harmonic_sums(cosine: np.ndarray, sine: np.ndarray, knots: int) -> tuple[np.ndarray, np.ndarray]:
    """Σ_rows cos kθ and Σ_rows sin kθ for k < knots: two (knots, columns) arrays."""
    rows, columns = cosine.shape
    cosine_sums = np.zeros((knots, columns), cosine.dtype)
    sine_sums = np.zeros((knots, columns), cosine.dtype)
    for first in range(0, columns, COLUMNS):
        width = min(COLUMNS, columns - first)
        c_sums = np.zeros((knots, width), cosine.dtype)
        s_sums = np.zeros((knots, width), cosine.dtype)
        for row in range(rows):
            _add_row(cosine[row, first : first + width], sine[row, first : first + width], c_sums, s_sums)
        cosine_sums[:, first : first + width] = c_sums
        sine_sums[:, first : first + width] = s_sums
    return cosine_sums, sine_sums


@compiled(fastmath=True)
def _add_row(cosine: np.ndarray, sine: np.ndarray, c_sums: np.ndarray, s_sums: np.ndarray) -> None:
    width = len(cosine)
    c_before, c_now = np.ones(width, cosine.dtype), cosine.copy()
    s_before, s_now = np.zeros(width, cosine.dtype), sine.copy()
    for k in range(len(c_sums)):
        for j in range(width):
            c_sums[k, j] += c_before[j]
            s_sums[k, j] += s_before[j]
            c_before[j] = 2 * cosine[j] * c_now[j] - c_before[j]
            s_before[j] = 2 * cosine[j] * s_now[j] - s_before[j]
        c_before, c_now = c_now, c_before
        s_before, s_now = s_now, s_before


@compiled(fastmath=True)
def harmonic_gradient(
    cosine: np.ndarray, sine: np.ndarray, grad_cosine: np.ndarray, grad_sine: np.ndarray
) -> np.ndarray:
    """∂/∂θ of Σ_k (g_k cos kθ + f_k sin kθ) = Σ_k k (f_k cos kθ − g_k sin kθ), for every sample and slice."""
    rows, columns = cosine.shape
    knots = len(grad_cosine)
    total = np.zeros_like(cosine)
    for first in range(0, columns, COLUMNS):
        last = min(columns, first + COLUMNS)
        weight = np.arange(knots).astype(cosine.dtype).reshape(-1, 1)
        g, f = weight * grad_cosine[:, first:last], weight * grad_sine[:, first:last]
        for row in range(rows):
            _add_gradient(cosine[row, first:last], sine[row, first:last], g, f, total[row, first:last])
    return total


@compiled(fastmath=True)
def _add_gradient(cosine: np.ndarray, sine: np.ndarray, g: np.ndarray, f: np.ndarray, total: np.ndarray) -> None:
    width = len(cosine)
    c_before, c_now = np.ones(width, cosine.dtype), cosine.copy()
    s_before, s_now = np.zeros(width, cosine.dtype), sine.copy()
    for k in range(len(g)):
        for j in range(width):
            total[j] += f[k, j] * c_before[j] - g[k, j] * s_before[j]
            c_before[j] = 2 * cosine[j] * c_now[j] - c_before[j]
            s_before[j] = 2 * cosine[j] * s_now[j] - s_before[j]
        c_before, c_now = c_now, c_before
        s_before, s_now = s_now, s_before
