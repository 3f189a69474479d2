"""Local efforts L(x, v): the cost per unit of time of moving from x with velocity v.

    L(x, s·v) = s·L(x, v) for s > 0        L(x, v) ≥ c‖v‖ with c > 0

Homogeneity of degree one makes the action of a path a length that does not depend on the speed. A quadratic L would
have infimum 0 when the travel time is free: moving slower always costs less. The lower bound keeps the energy between
distinct points positive. L(x, −v) may differ from L(x, v), and both may be +∞.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.errors import InputError

__all__ = ["Anisotropic", "Conformal", "Current", "Effort", "Euclidean", "Pullback", "Scale", "norm"]


class Effort(Protocol):
    """A local effort, differentiable where it is finite."""

    @property
    def floor(self) -> float:
        """The constant c in L(x, v) ≥ c‖v‖."""
        ...

    def __call__(self, x: Tensor, v: Tensor) -> Tensor: ...  # (..., d), (..., d) → (...)


def norm(v: Tensor) -> Tensor:
    """‖v‖ over the last dimension, with gradient 0 at v = 0 where `torch.linalg.norm` is not differentiable."""
    squares = v.square().sum(-1)
    zero = squares == 0
    return torch.where(zero, 1.0, squares).sqrt() * ~zero


@dataclass(frozen=True)
class Euclidean:
    """L(x, v) = c‖v‖. Minimal paths are straight lines."""

    floor: float = 1.0

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        return self.floor * norm(v)


@dataclass(frozen=True)
class Conformal:
    """L(x, v) = f(x)‖v‖: isotropic at each point. f(x) = 1/x_d gives the Poincaré half-space.

    Points with f(x) < floor are outside the domain; the effort there is +∞.
    """

    factor: Callable[[Tensor], Tensor]  # (..., d) → (...)
    floor: float

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        factor = self.factor(x)
        inside = factor >= self.floor
        return torch.where(inside, factor, 1.0) * norm(v) + torch.where(inside, 0.0, torch.inf)


@dataclass(frozen=True)
class Anisotropic:
    """L(x, v) = √(vᵀ G(x) v): the length of a Riemannian metric, the same in both directions.

    G(x) is symmetric and its smallest eigenvalue is at least floor².
    """

    metric: Callable[[Tensor], Tensor]  # (..., d) → (..., d, d)
    floor: float

    @classmethod
    def constant(cls, metric: np.ndarray) -> Self:
        """The effort of a metric that does not depend on x.

        >>> Anisotropic.constant(np.diag([4.0, 9.0])).floor
        2.0
        """
        matrix = np.asarray(metric, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T):
            raise InputError(f"metric has shape {matrix.shape}, but must be a symmetric matrix (d, d).")
        smallest = float(np.linalg.eigvalsh(matrix)[0])
        if not smallest > 0:
            raise InputError(f"metric must be positive definite, but its smallest eigenvalue is {smallest:.4g}.")
        return cls(lambda x: torch.as_tensor(matrix).to(x), smallest**0.5)

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        squares = (v * (self.metric(x) @ v[..., None])[..., 0]).sum(-1)
        zero = squares <= 0
        return torch.where(zero, 1.0, squares).sqrt() * ~zero


@dataclass(frozen=True)
class Current:
    """Travel time of a vehicle of speed s in a current W(x): Zermelo's problem, a Randers metric where |W| < s.

        |v − T·W| = T·s,  so  T = |v|² / (v·W + √((v·W)² + (s² − |W|²)|v|²))

    T is the time the displacement v takes. It is +∞ where no heading achieves v, that is outside the reachable cone of
    a current at least as fast as the vehicle. `fastest` bounds |W(x)| from above.
    """

    current: Callable[[Tensor], Tensor]  # (..., d) → (..., d)
    fastest: float
    speed: float = 1.0

    def __post_init__(self) -> None:
        if not self.speed > 0:
            raise InputError(f"speed must be positive, but {self.speed} was given.")
        if not self.fastest >= 0:
            raise InputError(f"fastest must be at least 0, but {self.fastest} was given.")

    @classmethod
    def constant(cls, current: np.ndarray, speed: float = 1.0) -> Self:
        """The travel time in a current that does not depend on x."""
        vector = np.asarray(current, dtype=np.float64)
        return cls(lambda x: torch.as_tensor(vector).to(x).expand_as(x), float(np.linalg.norm(vector)), speed)

    @property
    def floor(self) -> float:
        return 1 / (self.speed + self.fastest)

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        current = self.current(x)
        along = (v * current).sum(-1)
        slack = self.speed**2 - current.square().sum(-1)
        squares = v.square().sum(-1)
        inner = along.square() + slack * squares
        moving = squares > 0
        possible = moving & (inner >= 0) & ((along > 0) | (slack > 0))
        root = torch.where(possible & (inner > 0), inner, 1.0).sqrt() * (inner > 0)
        # Two equal forms of T. Each branch uses the one that does not subtract nearly equal numbers.
        downstream = squares / torch.where(possible & (along >= 0), along + root, 1.0)
        upstream = (root - along) / torch.where(possible & (along < 0), slack, 1.0)
        time = torch.where(along >= 0, downstream, upstream)
        return torch.where(possible, time, torch.where(moving, torch.inf, 0.0))


@dataclass(frozen=True)
class Scale:
    """Growing and shrinking at different prices. Each coordinate is a size s > 0.

        L(s, v) = Σ (a·v⁺ + b·v⁻) / s,    with action  a·log⁺(s'/s) + b·log⁺(s/s')  per coordinate

    `grow` is a, `shrink` is b. Sizes are limited to `largest`, because L ≥ c‖v‖ fails for unbounded s.
    """

    grow: float
    shrink: float
    largest: float

    def __post_init__(self) -> None:
        for name in ("grow", "shrink", "largest"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive, but {getattr(self, name)} was given.")

    @property
    def floor(self) -> float:
        return min(self.grow, self.shrink) / self.largest

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        inside = ((x > 0) & (x <= self.largest)).all(-1)
        sizes = torch.where(inside[..., None], x, 1.0)
        effort = ((self.grow * torch.relu(v) + self.shrink * torch.relu(-v)) / sizes).sum(-1)
        return torch.where(inside, effort, torch.inf)


@dataclass(frozen=True)
class Pullback:
    """The effort on latents h that a decoder g pulls back from its output space.

        L_h(h, u) = L(g(h), J_g(h)·u)        J_g the Jacobian of g

    It inherits homogeneity from L. `floor` must be at most the smallest singular value of J_g times the floor of L; a
    decoder with a singular Jacobian has no positive floor. `effort_verdicts` checks the value given.
    """

    effort: Effort
    decoder: Callable[[Tensor], Tensor]  # (..., d) → (..., p)
    floor: float

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        return self.effort(*torch.func.jvp(self.decoder, (x,), (v,)))
