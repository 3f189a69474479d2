"""Linear dynamics with actions: h' = A h + B u + c.

In rotated coordinates h = Qz, with Q orthogonal, the system z' = Az + Bu + c becomes h' = QAQᵀ h + QB u + Qc.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.lazy import lazy_import

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy_import("torch")

__all__ = ["LinearSystem", "check_orthogonal", "fit_linear_system"]

ORTHOGONALITY_TOLERANCE = 1e-6  # of QᵀQ − I: conjugation is exact for orthogonal Q only


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """Known or fitted A, B and c; satisfies the `Dynamics` protocol.

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
                f"A linear system needs A of shape (d, d) and B of shape (d, a), but A has {np.shape(self.a_dd)} and "
                f"B has {np.shape(self.b_da)}."
            )
        if np.shape(self.c_d) not in ((1,), (d,)):
            raise InputError(f"c must have shape ({d},), but it has {np.shape(self.c_d)}.")
        if not all(np.isfinite(part).all() for part in (self.a_dd, self.b_da, self.c_d)):
            raise InputError("A, B and c must be finite, but at least one holds NaN or infinite entries.")
        object.__setattr__(self, "c_d", np.broadcast_to(self.c_d, d))

    def step(self, h: np.ndarray, u: np.ndarray) -> np.ndarray:
        """One step: (b, d), (b, a) → (b, d)."""
        return h @ self.a_dd.T + u @ self.b_da.T + self.c_d

    def rollout(self, h: Tensor, actions: Tensor) -> Tensor:
        """(b, d), (b, t, a) → (b, t, d)"""
        a = torch.tensor(self.a_dd, dtype=h.dtype, device=h.device)
        b = torch.tensor(self.b_da, dtype=h.dtype, device=h.device)
        c = torch.tensor(self.c_d, dtype=h.dtype, device=h.device)
        if h.shape[-1] != len(a) or actions.shape[-1] != b.shape[1]:
            raise InputError(
                f"This system has {len(a)} latent and {b.shape[1]} action dimensions, "
                f"but the inputs have {h.shape[-1]} and {actions.shape[-1]}."
            )
        latents = []
        for push in (actions @ b.T + c).unbind(1):
            h = torch.addmm(push, h, a.T)
            latents.append(h)
        return torch.stack(latents, dim=1)

    def conjugate(self, q_dd: np.ndarray) -> LinearSystem:
        """The same system in the coordinates h = Qz."""
        q = check_orthogonal(q_dd, len(self.a_dd))
        return LinearSystem(q @ self.a_dd @ q.T, q @ self.b_da, q @ self.c_d)


def fit_linear_system(
    h: np.ndarray, u: np.ndarray, h_next: np.ndarray, weights: np.ndarray | None = None
) -> LinearSystem:
    """Least squares on (weighted) rows; the minimum-norm solution if the rows do not determine A and B.

    >>> h, u = np.random.default_rng(0).standard_normal((2, 50, 2))
    >>> fit_linear_system(h, u, 0.5 * h + 2 * u).b_da.round(9) + 0.0
    array([[2., 0.],
           [0., 2.]])
    """
    from jepatlas.core.linear_moments import PairMoments, least_squares_of  # noqa: PLC0415  (imports scipy)

    fitted = least_squares_of(PairMoments.of(np.concatenate([h, u], axis=1), h_next, weights))
    a, b = np.split(fitted.weight, [h.shape[1]], axis=1)
    return LinearSystem(a, b, fitted.y_mean - fitted.weight @ fitted.x_mean)


def check_orthogonal(q_dd: np.ndarray, dim: int) -> np.ndarray:
    """Q as float64; raises InputError if it is not an orthogonal dim × dim matrix."""
    q = np.asarray(q_dd, dtype=np.float64)
    if q.shape != (dim, dim) or not np.abs(q.T @ q - np.eye(dim)).max() < ORTHOGONALITY_TOLERANCE:
        raise InputError(
            f"Q must be an orthogonal {dim} × {dim} matrix, with QᵀQ = I to within {ORTHOGONALITY_TOLERANCE:g}. "
            "Project it first: U Vᵀ of its singular value decomposition."
        )
    return q
