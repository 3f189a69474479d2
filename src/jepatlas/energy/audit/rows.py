"""An energy as a function of rows of numpy, whichever library it is written in.

Which one is found once, by calling it with two rows: with tensors of the dtype of its parameters or of the points, then
of float32, then with arrays. The dtype of what it answers says how finely its numbers may be held against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError

__all__ = ["RowEnergy", "as_row_energy", "short"]

ROWS = 16_384  # pairs that are evaluated at a time


@dataclass(frozen=True)
class RowEnergy:
    """E(x, y) for rows x and y, (m, d) → (m,) in float64."""

    call: Callable[[Any, Any], Any]
    like: Tensor | None  # the dtype and device it wants; None where it takes arrays of numpy
    precision: float  # eps of the dtype it answers in

    def __call__(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        parts = [self._part(x[i : i + ROWS], y[i : i + ROWS]) for i in range(0, len(x), ROWS)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _part(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            found = _answer(self.call, x, y, self.like)
        if found.shape != (len(x),):
            raise InputError(
                f"The energy must give one number for each pair of rows, but for {len(x)} pairs it gave {found.shape}."
            )
        if len(bad := np.flatnonzero(np.isnan(found))):
            raise InputError(
                f"The energy is NaN for {len(bad)} of {len(x)} pairs, for example from {short(x[bad[0]])} to "
                f"{short(y[bad[0]])}. An energy may be +inf, never NaN: look for inf − inf, 0/0 or the root of a "
                "negative number in it."
            )
        return found.astype(np.float64)

    def matrix(self, x: np.ndarray) -> np.ndarray:
        """E(x_i, x_j) of all pairs, (n, n)."""
        n = len(x)
        return self(np.repeat(x, n, 0), np.tile(x, (n, 1))).reshape(n, n)

    def slope(self, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray | None:
        """∂/∂y of E(x, y) + E(y, z); None where there is no gradient to be had."""
        if self.like is None:
            return None
        moved = torch.as_tensor(y).to(self.like).requires_grad_()
        ends = (torch.as_tensor(end).to(self.like) for end in (x, z))
        with torch.enable_grad():
            detour = self.call(next(ends), moved) + self.call(moved, next(ends))
        if not detour.requires_grad:
            return None
        (slope,) = torch.autograd.grad(detour.sum(), moved)
        return slope.nan_to_num(0.0, 0.0, 0.0).double().cpu().numpy()


def as_row_energy(energy: Callable[[Any, Any], Any], points: np.ndarray) -> RowEnergy:
    """Find out how an energy wants to be called."""
    rows, said = points[:2], []
    for like in _likes(energy, points):
        try:
            found = _answer(energy, rows, rows, like, with_gradient=True)
        except Exception as error:  # whatever it raises: the next way of calling it may be the right one
            said.append(str(error).split("\n", maxsplit=1)[0])
            continue
        exact = found.dtype if found.dtype.kind == "f" else np.dtype(np.float64)
        return RowEnergy(energy, like, float(np.finfo(exact).eps))
    raise InputError(
        f"The energy cannot be called with two arrays of rows of width {points.shape[1]}: {'; '.join(said)}. It must "
        "take (m, d) and (m, d), tensors or arrays, and give (m,)."
    )


def _likes(energy: Any, points: np.ndarray) -> Iterator[Tensor | None]:
    dtype = torch.float32 if points.dtype == np.float32 else torch.float64
    if isinstance(energy, nn.Module):
        floats = (p for p in (*energy.parameters(), *energy.buffers()) if p.is_floating_point())
        yield next(floats, torch.empty(0, dtype=dtype)).detach()
        return
    yield from (torch.empty(0, dtype=dtype), torch.empty(0, dtype=torch.float32), None)


def _answer(
    call: Callable[[Any, Any], Any], x: np.ndarray, y: np.ndarray, like: Tensor | None, with_gradient: bool = False
) -> np.ndarray:
    """A tensor that wants a gradient is refused by functions of numpy, which otherwise take it for an array."""
    if like is None:
        return np.asarray(call(x, y))
    found = call(*(torch.tensor(rows).to(like).requires_grad_(with_gradient) for rows in (x, y)))
    if not isinstance(found, Tensor):
        raise TypeError(f"it answers tensors with a {type(found).__name__}")
    found = found.detach().cpu()
    return (found.float() if found.dtype == torch.bfloat16 else found).numpy()  # numpy has no bfloat16


def short(row: np.ndarray) -> str:
    shown = ", ".join(f"{value:.4g}" for value in row[:4])
    return f"({shown}, …)" if len(row) > 4 else f"({shown})"
