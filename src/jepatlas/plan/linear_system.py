"""A linear world, z' = A z + B u + c, and the same world in rotated coordinates.

With h = Qz, Q orthogonal, it is h' = QAQᵀ h + QB u + Qc: the same world for the same actions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.errors import InputError

__all__ = ["LinearSystem", "check_rotation"]

ORTHOGONAL = 1e-6  # how far QᵀQ may be from I: what is only nearly orthogonal is not what the theorem speaks of


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """`Dynamics` that are known, or were fitted, as matrices.

    >>> system = LinearSystem(np.eye(1), np.ones((1, 1)))
    >>> system.rollout(torch.zeros(1, 1), torch.ones(1, 3, 1)).flatten()
    tensor([1., 2., 3.])
    """

    a_dd: np.ndarray
    b_da: np.ndarray
    c_d: np.ndarray = field(default_factory=lambda: np.zeros(1))

    def __post_init__(self) -> None:
        d = len(self.a_dd)
        if np.shape(self.a_dd) != (d, d) or np.ndim(self.b_da) != 2 or len(self.b_da) != d:
            raise InputError(
                f"A linear system has A (d, d) and B (d, a), but {np.shape(self.a_dd)} and {np.shape(self.b_da)} "
                "were given."
            )
        if np.shape(self.c_d) not in ((1,), (d,)):
            raise InputError(f"c of a linear system of width {d} has shape ({d},), not {np.shape(self.c_d)}.")
        if not all(np.isfinite(part).all() for part in (self.a_dd, self.b_da, self.c_d)):
            raise InputError("A linear system has entries that are not finite.")
        object.__setattr__(self, "c_d", np.broadcast_to(self.c_d, d))

    def rollout(self, h: Tensor, actions: Tensor) -> Tensor:
        """(b, d), (b, t, a) → (b, t, d)"""
        a, b, c = (torch.tensor(part, dtype=h.dtype, device=h.device) for part in (self.a_dd, self.b_da, self.c_d))
        if h.shape[-1] != len(a) or actions.shape[-1] != b.shape[1]:
            raise InputError(
                f"This system has {len(a)} latent and {b.shape[1]} action dimensions, "
                f"but was given {h.shape[-1]} and {actions.shape[-1]}."
            )
        pushes, reached = actions @ b.T + c, []
        for push in pushes.unbind(1):
            h = torch.addmm(push, h, a.T)
            reached.append(h)
        return torch.stack(reached, dim=1)

    def conjugated(self, q_dd: np.ndarray) -> LinearSystem:
        """The same world in the coordinates h = Qz."""
        q = check_rotation(q_dd, len(self.a_dd))
        return LinearSystem(q @ self.a_dd @ q.T, q @ self.b_da, q @ self.c_d)


def check_rotation(q_dd: np.ndarray, dim: int) -> np.ndarray:
    q = np.asarray(q_dd, dtype=np.float64)
    if q.shape != (dim, dim) or not np.abs(q.T @ q - np.eye(dim)).max() < ORTHOGONAL:
        raise InputError(
            f"Conjugation is by an orthogonal matrix, {dim} × {dim}, with QᵀQ = I to {ORTHOGONAL:g}; "
            "the one given is not. Project it first: U Vᵀ of its singular value decomposition."
        )
    return q
