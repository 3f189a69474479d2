"""Sums and gradients over the harmonics cos kθ and sin kθ of many samples, without storing them.

One row of samples u (a slice of SIGReg) is processed at a time, in chunks that stay in the first-level cache. A
polynomial gives cos θ and sin θ of θ = step·u; the harmonics follow by the Chebyshev recurrence

    cos (k+1)θ = 2 cos θ cos kθ − cos (k−1)θ,  and the same for the sine.

Eight harmonics are computed in one pass over a chunk, with their eight sums in registers. The torch equivalent is in
`jepatlas.core.normality`.
"""

from __future__ import annotations

import math

import numpy as np

from jepatlas.core.kernels import compiled

__all__ = ["harmonic_gradient", "harmonic_sums"]

CHUNK = 1024  # samples; five arrays of them fit in a first-level cache
GROUP = 8  # harmonics of one pass

# θ = q·π/2 + r with |r| ≤ π/4. π/2 is a sum of two numbers, of which q times the first is exact. The Taylor series of
# sin r to degree 15 and of cos r to degree 16 are exact to the last digit of float64.
HIGH = 1.5703125
REDUCTION = (2 / math.pi, HIGH, math.pi / 2 - HIGH, 0.8)
SINE = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(1, 8))
COSINE = tuple((-1) ** k / math.factorial(2 * k) for k in range(1, 9))
CONSTANTS = {dtype: np.array(REDUCTION + SINE + COSINE, dtype) for dtype in (np.float32, np.float64)}


def harmonic_sums(samples_sb: np.ndarray, step: float, knots: int) -> tuple[np.ndarray, np.ndarray]:
    """Σ_b cos kθ and Σ_b sin kθ for k < knots, θ = step·u: two (s, knots) arrays."""
    dtype = samples_sb.dtype.type
    return _sums(samples_sb, dtype(step), CONSTANTS[dtype], knots)


def harmonic_gradient(
    samples_sb: np.ndarray, step: float, grad_cosine_sk: np.ndarray, grad_sine_sk: np.ndarray
) -> np.ndarray:
    """∂/∂u of Σ_k (g_k Σ_b cos kθ + f_k Σ_b sin kθ), which is step · Σ_k k (f_k cos kθ − g_k sin kθ): (s, b)."""
    dtype = samples_sb.dtype.type
    return _gradient(samples_sb, dtype(step), CONSTANTS[dtype], grad_cosine_sk, grad_sine_sk)


@compiled(error_model="numpy")
def _sums(samples, step, constants, knots):
    slices, rows = samples.shape
    groups = -(-(knots - 1) // GROUP)
    cosine = np.zeros((slices, 1 + groups * GROUP), samples.dtype)
    sine = np.zeros((slices, 1 + groups * GROUP), samples.dtype)
    cosine[:, 0] = rows
    buffers = np.empty((5, CHUNK), samples.dtype)
    for s in range(slices):
        for first in range(0, rows, CHUNK):
            u = samples[s, first : first + CHUNK]
            double, c_before, c_now, s_before, s_now = _start(u, step, constants, buffers)
            for k in range(1, 1 + groups * GROUP, GROUP):
                _add_sums(double, c_before, c_now, cosine[s, k : k + GROUP])
                _add_sums(double, s_before, s_now, sine[s, k : k + GROUP])
    return cosine[:, :knots], sine[:, :knots]


@compiled(error_model="numpy")
def _gradient(samples, step, constants, grad_cosine, grad_sine):
    slices, rows = samples.shape
    knots = grad_cosine.shape[1]
    weights = np.zeros((2, -(-(knots - 1) // GROUP) * GROUP), samples.dtype)  # of cos kθ and of sin kθ, for k ≥ 1
    gradient = np.zeros_like(samples)
    buffers = np.empty((5, CHUNK), samples.dtype)
    for s in range(slices):
        for k in range(1, knots):
            weights[0, k - 1] = step * k * grad_sine[s, k]
            weights[1, k - 1] = -step * k * grad_cosine[s, k]
        for first in range(0, rows, CHUNK):
            u = samples[s, first : first + CHUNK]
            double, c_before, c_now, s_before, s_now = _start(u, step, constants, buffers)
            total = gradient[s, first : first + CHUNK]
            for k in range(0, weights.shape[1], GROUP):
                _add_gradient(double, c_before, c_now, weights[0, k : k + GROUP], total)
                _add_gradient(double, s_before, s_now, weights[1, k : k + GROUP], total)
    return gradient


# No reassociation here: it would undo the exact reduction of θ.
@compiled(error_model="numpy", fastmath={"contract"})
def _start(u, step, constants, buffers):
    """2 cos θ, and the harmonics k = 0 and k = 1 of the cosine and of the sine, in these buffers."""
    n = len(u)
    double, c_before, c_now = buffers[0, :n], buffers[1, :n], buffers[2, :n]  # contiguous, so loops are vectorised
    s_before, s_now = buffers[3, :n], buffers[4, :n]
    inverse, high, low, limit = constants[:4]
    s3, s5, s7, s9, s11, s13, s15 = constants[4:11]
    c2, c4, c6, c8, c10, c12, c14, c16 = constants[11:19]
    for i in range(n):
        theta = u[i] * step
        quarter = np.rint(theta * inverse)
        r = (theta - quarter * high) - quarter * low
        r = (
            limit if r > limit else r
        )  # the phase of a huge θ is lost to rounding, but sine and cosine are at most 1; NaN stays NaN
        r = -limit if r < -limit else r
        x = r * r
        sine = r + r * (x * (s3 + x * (s5 + x * (s7 + x * (s9 + x * (s11 + x * (s13 + x * s15)))))))
        cosine = x * (c2 + x * (c4 + x * (c6 + x * (c8 + x * (c10 + x * (c12 + x * (c14 + x * c16))))))) + np.float32(1)
        turn = np.int32(quarter)
        c = sine if turn & 1 else cosine
        s = cosine if turn & 1 else sine
        c = -c if (turn + 1) & 2 else c
        c_now[i] = c
        s_now[i] = -s if turn & 2 else s
        double[i] = c + c
    c_before[:] = 1
    s_before[:] = 0
    return double, c_before, c_now, s_before, s_now


@compiled(error_model="numpy", fastmath={"contract", "reassoc"})
def _add_sums(double, before, now, sums):
    """Add Σ_b of the next eight harmonics to `sums`, and advance `before` and `now` by eight."""
    zero = sums.dtype.type(0)
    s0, s1, s2, s3, s4, s5, s6, s7 = zero, zero, zero, zero, zero, zero, zero, zero
    for i in range(len(double)):
        d, a, b = double[i], before[i], now[i]
        s0 += b
        a = d * b - a
        s1 += a
        b = d * a - b
        s2 += b
        a = d * b - a
        s3 += a
        b = d * a - b
        s4 += b
        a = d * b - a
        s5 += a
        b = d * a - b
        s6 += b
        a = d * b - a
        s7 += a
        before[i], now[i] = a, d * a - b
    for k, value in enumerate((s0, s1, s2, s3, s4, s5, s6, s7)):
        sums[k] += value


@compiled(error_model="numpy", fastmath={"contract", "reassoc"})
def _add_gradient(double, before, now, weights, total):
    """Add Σ_k w_k times the next eight harmonics to `total`, and advance `before` and `now` by eight."""
    w0, w1, w2, w3, w4, w5, w6, w7 = weights
    for i in range(len(double)):
        d, a, b = double[i], before[i], now[i]
        sum_ = w0 * b
        a = d * b - a
        sum_ += w1 * a
        b = d * a - b
        sum_ += w2 * b
        a = d * b - a
        sum_ += w3 * a
        b = d * a - b
        sum_ += w4 * b
        a = d * b - a
        sum_ += w5 * a
        b = d * a - b
        sum_ += w6 * b
        a = d * b - a
        total[i] += sum_ + w7 * a
        before[i], now[i] = a, d * a - b
