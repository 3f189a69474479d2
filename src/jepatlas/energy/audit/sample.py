"""Input of an audit: the energies between sampled states, with positions and true energies where they are known.

An energy is a matrix E (row → column) or a function of two arrays of rows, in numpy or torch. Larger inputs are
subsampled by the seed; all states of a matrix remain available for checks that need no more than its entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.seeding import numpy_generator

__all__ = [
    "ROUNDINGS",
    "RowEnergy",
    "Sample",
    "as_row_energy",
    "default_tolerance",
    "draw_sample",
    "energy_matrix",
    "precision_of",
    "true_energies",
]

ROUNDINGS = 1024  # times eps: sums over a few thousand dimensions have an error of about the square root of that
LARGEST_TOLERANCE = 0.02  # a violation by 2% is one in any precision
DECIMALS = 6
SCALE_ENTRIES = 1 << 20  # entries, evenly spaced, whose median is the scale
STRICT = 1 / 16  # tolerance for energies that must be zero, relative to the general tolerance
ROWS = 16_384  # pairs evaluated at a time

RowFunction = Callable[[Any, Any], Any]
"""E of two arrays or tensors of rows, (m, d), (m, d) → (m,)."""


@dataclass(frozen=True)
class Sample:
    """Energies between n states."""

    energies: np.ndarray  # (n, n) from row to column
    states: np.ndarray  # (n,) indices of the sampled states
    positions: np.ndarray | None  # (n, d)
    truth: np.ndarray | None  # (n, n)
    tolerance: float  # relative
    seed: int
    energy: RowEnergy | None = None  # the function, if the energy is one
    pool: np.ndarray | None = None  # (m, d) all points given with the function
    full: Sample | None = None  # all states of a matrix, if this is a subsample

    @property
    def whole(self) -> Sample:
        """All states of a matrix; the sample itself for a function."""
        return self if self.full is None else self.full

    @cached_property
    def diagonal(self) -> np.ndarray:
        """E(x, x) of the states, or of all points that were given with a function."""
        if self.energy is not None and self.pool is not None:
            return self.energy(self.pool, self.pool)
        return np.diag(self.energies)

    @property
    def n(self) -> int:
        return len(self.energies)

    @property
    def others(self) -> np.ndarray:
        """Mask of the off-diagonal entries, (n, n)."""
        return ~np.eye(self.n, dtype=bool)

    @cached_property
    def apart(self) -> np.ndarray:
        """Mask of the pairs of distinct states, (n, n); equal positions are one state."""
        if self.positions is None:
            return self.others
        labels = np.unique(self.positions, axis=0, return_inverse=True)[1].ravel()
        return labels[:, None] != labels

    @cached_property
    def scale(self) -> float:
        """The median of the finite positive energies."""
        step = max(1, self.energies.size // SCALE_ENTRIES)
        flat = np.arange(0, self.energies.size, step + (step % self.n == 0))  # a multiple of n would keep to one column
        some = self.energies.ravel()[flat]
        usual = some[np.isfinite(some) & (some > 0) & (flat // self.n != flat % self.n)]
        return float(np.median(usual)) if len(usual) else 1.0

    @property
    def rounding(self) -> float:
        """The largest absolute value that counts as zero."""
        return STRICT * self.tolerance * self.scale

    def rng(self, name: str) -> np.random.Generator:
        return numpy_generator(self.seed, f"energy/audit/{name}")

    def pair(self, flat: int | np.integer) -> str:
        """The name of an entry, given by its row-major index."""
        row, column = divmod(int(flat), self.n)
        return f"from state {self.states[row]} to state {self.states[column]}"


def draw_sample(
    energy: np.ndarray | RowFunction,
    points: np.ndarray | None,
    truth: np.ndarray | None,
    *,
    states: int,
    tolerance: float | None,
    seed: int,
) -> Sample:
    """Sample at most `states` states of a matrix, or of a function and the points to evaluate it at."""
    if tolerance is not None and not 0 <= tolerance < np.inf:
        raise InputError(f"tolerance must be finite and at least 0, but {tolerance} was given.")
    matrix = energy_matrix(energy)
    positions = None if points is None else _read_points(points)
    exact = None if truth is None else true_energies(truth)
    size = _common_size({"energies": matrix, "points": positions, "true energies": exact})
    if size < 2 or states < 2:
        raise InputError(f"An audit needs at least 2 states, but {size} were given and states={states}.")
    kept = np.sort(numpy_generator(seed, "energy/audit/states").permutation(size)[:states])
    chosen = None if positions is None else positions[kept].astype(np.float64)
    known = (kept, chosen, None if exact is None else exact[np.ix_(kept, kept)])
    if matrix is not None:
        relative = default_tolerance(matrix) if tolerance is None else tolerance
        full = None
        if len(kept) < size:
            every = None if positions is None else positions.astype(np.float64)
            full = Sample(_as_float(matrix), np.arange(size), every, None, relative, seed)
        return Sample(matrix[np.ix_(kept, kept)].astype(np.float64), *known, relative, seed, full=full)
    if positions is None or isinstance(energy, np.ndarray):
        raise InputError("points (n, d) are required to audit an energy that is a function, but none were given.")
    rows = as_row_energy(energy, positions)
    relative = min(ROUNDINGS * rows.precision, LARGEST_TOLERANCE) if tolerance is None else tolerance
    return Sample(rows.matrix(positions[kept]), *known, relative, seed, rows, positions)


def _as_float(matrix: np.ndarray) -> np.ndarray:
    """In float32 or float64; half precision becomes float32, without loss."""
    if matrix.dtype in (np.float32, np.float64):
        return matrix
    return matrix.astype(np.float32 if matrix.dtype == np.float16 else np.float64)


def energy_matrix(energy: Any) -> np.ndarray | None:
    """The given matrix as a numpy array; None for a function."""
    if isinstance(energy, np.ndarray):
        return _square_matrix("The matrix of energies", energy)
    if hasattr(energy, "detach"):
        return _square_matrix("The matrix of energies", energy.detach().cpu().numpy())
    if callable(energy):
        return None
    raise InputError(f"energy must be a square matrix or a function of two arrays, not a {type(energy).__name__}.")


def true_energies(truth: Any) -> np.ndarray:
    """Check a matrix of exact energies; +∞ marks unreachable pairs."""
    exact = _square_matrix("The matrix of true energies", np.asarray(truth)).astype(np.float64)
    if len(bad := np.argwhere(exact < 0)):
        raise InputError(f"True energies must be at least 0, but the one from {bad[0, 0]} to {bad[0, 1]} is negative.")
    return exact


def precision_of(matrix: np.ndarray) -> float:
    """The eps of the dtype the numbers were computed in: float32 if all of them are exact float32 values.

    >>> [f"{precision_of(matrix):.0e}" for matrix in (np.eye(2), np.eye(2) / 3)]
    ['1e-07', '2e-16']
    """
    if matrix.dtype == np.float16:
        return float(np.finfo(np.float16).eps)
    with np.errstate(over="ignore"):
        single = bool((matrix.astype(np.float32) == matrix).all())
    return float(np.finfo(np.float32 if single else np.float64).eps)


def default_tolerance(matrix: np.ndarray) -> float:
    """Relative tolerance: 1024 eps of the numbers, or the rounding of decimals, at most 2%.

    A path has two legs, so a gap relative to at least s/10 has an error of up to 15 times that of decimals, in units of
    the median s.

    >>> x = np.random.default_rng(0).uniform(1, 2, (9, 9))
    >>> [f"{default_tolerance(one):.1g}" for one in (x, x.astype(np.float16), x.round(4))]
    ['2e-13', '0.02', '0.001']
    """
    return min(max(ROUNDINGS * precision_of(matrix), _decimal_rounding(matrix)), LARGEST_TOLERANCE)


def _decimal_rounding(matrix: np.ndarray) -> float:
    """The error that rounding to decimals leaves in a gap; 0 for integers and for numbers that are not rounded."""
    some = matrix.ravel()[:: max(1, matrix.size // SCALE_ENTRIES)].astype(np.float64)
    some = some[np.isfinite(some) & (some != 0)]
    if not len(some):
        return 0.0
    for digits in range(DECIMALS + 1):
        scaled = some * 10.0**digits
        if (np.abs(scaled - np.round(scaled)) <= 4 * precision_of(matrix) * np.abs(scaled)).all():
            return 15 * 0.1**digits / float(np.median(np.abs(some))) if digits else 0.0
    return 0.0


def _square_matrix(name: str, given: np.ndarray) -> np.ndarray:
    """Check that a matrix is square, real and free of NaN. Infinite entries are allowed."""
    if given.dtype.kind not in "fiub":
        raise InputError(f"{name} must hold real numbers, but its dtype is {given.dtype}.")
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise InputError(
            f"{name} must be square, with E(x, y) from row x to column y, but its shape is {given.shape}. "
            "Give the same states as rows and as columns, in the same order."
        )
    if len(given) < 2:
        raise InputError(f"{name} must have at least 2 states, but it has {len(given)}.")
    if len(bad := np.argwhere(np.isnan(given))):
        raise InputError(
            f"{name} has {len(bad)} NaN, the first from state {bad[0, 0]} to state {bad[0, 1]}. Use +inf for "
            "unreachable pairs."
        )
    return given


def _read_points(points: Any) -> np.ndarray:
    """Points (n, d); float32 is kept so that a float32 function is called with its own dtype."""
    array = np.asarray(points.detach().cpu() if hasattr(points, "detach") else points)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(f"points must have shape (n, d), but their shape is {array.shape}.")
    check_finite("points", array)
    return array if array.dtype == np.float32 else array.astype(np.float64)


def _common_size(given: dict[str, np.ndarray | None]) -> int:
    """The number of states, equal in all inputs; 2 if none of them has rows."""
    counts = {name: len(array) for name, array in given.items() if array is not None}
    if len(set(counts.values())) > 1:
        shown = " and ".join(f"{count} rows of {name}" for name, count in counts.items())
        raise InputError(f"All inputs must have one row per state, but there are {shown}.")
    return next(iter(counts.values()), 2)


@dataclass(frozen=True)
class RowEnergy:
    """An energy as a function of numpy rows, (m, d), (m, d) → (m,) in float64, whichever library it is written in."""

    function: RowFunction
    like: Tensor | None  # a tensor of the dtype and device of its arguments; None if it takes numpy arrays
    precision: float  # eps of the dtype of its result

    def __call__(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        parts = [self._evaluate(x[i : i + ROWS], y[i : i + ROWS]) for i in range(0, len(x), ROWS)]
        return np.concatenate(parts) if parts else np.empty(0)

    def matrix(self, x: np.ndarray) -> np.ndarray:
        """E(x_i, x_j) of all pairs, (n, n)."""
        n = len(x)
        return self(np.repeat(x, n, 0), np.tile(x, (n, 1))).reshape(n, n)

    def detour_gradient(self, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray | None:
        """∂/∂y of E(x, y) + E(y, z), (m, d); None if the energy is not differentiable by torch."""
        if self.like is None:
            return None
        start, middle, end = (torch.as_tensor(rows).to(self.like) for rows in (x, y, z))
        middle.requires_grad_()
        with torch.enable_grad():
            detour = self.function(start, middle) + self.function(middle, end)
        if not detour.requires_grad:
            return None
        (gradient,) = torch.autograd.grad(detour.sum(), middle)
        return gradient.nan_to_num(0.0, 0.0, 0.0).double().cpu().numpy()

    def _evaluate(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            result = _call(self.function, x, y, self.like)
        if result.shape != (len(x),):
            raise InputError(
                f"The energy must return one number per pair of rows, but it returned shape {result.shape} for "
                f"{len(x)} pairs."
            )
        if len(bad := np.flatnonzero(np.isnan(result))):
            raise InputError(
                f"The energy is NaN for {len(bad)} of {len(x)} pairs, for example from {format_row(x[bad[0]])} to "
                f"{format_row(y[bad[0]])}. Look for inf − inf, 0/0 or the square root of a negative number."
            )
        return result.astype(np.float64)


def as_row_energy(energy: RowFunction, points: np.ndarray) -> RowEnergy:
    """Find the arguments an energy accepts by calling it with two rows of the points.

    Tried in order: tensors of the dtype of its parameters or of the points, float32 tensors, numpy arrays.
    """
    rows = points[:2]
    errors = []
    for like in _argument_types(energy, points):
        try:
            result = _call(energy, rows, rows, like, with_gradient=True)
        except Exception as error:  # any error means that this type of argument is not accepted
            errors.append(str(error).split("\n", maxsplit=1)[0])
            continue
        exact = result.dtype if result.dtype.kind == "f" else np.dtype(np.float64)
        return RowEnergy(energy, like, float(np.finfo(exact).eps))
    raise InputError(
        f"energy cannot be called with two arrays of rows of width {points.shape[1]}: {'; '.join(errors)}. It must map "
        "(m, d), (m, d) to (m,), as tensors or arrays."
    )


def _argument_types(energy: Any, points: np.ndarray) -> Iterator[Tensor | None]:
    dtype = torch.float32 if points.dtype == np.float32 else torch.float64
    if isinstance(energy, nn.Module):
        floats = (p for p in (*energy.parameters(), *energy.buffers()) if p.is_floating_point())
        yield next(floats, torch.empty(0, dtype=dtype)).detach()
        return
    yield from (torch.empty(0, dtype=dtype), torch.empty(0, dtype=torch.float32), None)


def _call(
    function: RowFunction, x: np.ndarray, y: np.ndarray, like: Tensor | None, with_gradient: bool = False
) -> np.ndarray:
    """Call an energy with arrays, or with tensors like `like`.

    With a gradient, numpy functions raise on tensors instead of silently converting them to arrays.
    """
    if like is None:
        return np.asarray(function(x, y))
    result = function(*(torch.tensor(rows).to(like).requires_grad_(with_gradient) for rows in (x, y)))
    if not isinstance(result, Tensor):
        raise TypeError(f"it returns a {type(result).__name__} for tensors")
    result = result.detach().cpu()
    if result.dtype == torch.bfloat16:  # numpy has no bfloat16
        result = result.float()
    return result.numpy()


def format_row(row: np.ndarray) -> str:
    shown = ", ".join(f"{value:.4g}" for value in row[:4])
    return f"({shown}, …)" if len(row) > 4 else f"({shown})"
