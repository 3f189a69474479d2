"""Landmark matching: the least effort of a smooth velocity field that carries one set of points to another.

Of all fields that move landmarks q with velocities q̇, the one of least norm in the space of a Gaussian kernel k is
v(x) = Σᵢ k(x, qᵢ)pᵢ with p = K(q)⁻¹q̇. The local effort is

    L(q, q̇)² = q̇ᵀK(q)⁻¹q̇ + mean_j [ a·(div v(qⱼ))⁺² + b·(div v(qⱼ))⁻² ]

It is homogeneous of degree one, at least ‖v‖, and symmetric only if a = b. E is the length of the best path found: an
upper bound of second order in the number of segments. The path minimises ∫L², whose minimiser is the shortest path at
constant effort; ∫L itself does not depend on the parametrisation, so its minimiser is not unique.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # submodules load on first access
import torch
from torch import Tensor

from jepatlas.core.errors import InputError, check_positive

__all__ = ["LandmarkEffort", "Matching", "landmark_energies", "match_landmarks"]

BOW = 0.05  # leftward bend of the initial path: on straight lines landmarks may collide, which no field allows
JITTER = 1e-10  # added to the diagonal of K, which is nearly singular for close landmarks


@dataclass(frozen=True)
class LandmarkEffort:
    """The kernel width and the extra cost of expansion and contraction."""

    width: float = 1.0
    """Standard deviation of the kernel: the range over which landmarks move their surroundings."""
    expand: float = 0.0
    """The weight a of positive divergence at the landmarks."""
    contract: float = 0.0
    """The weight b of negative divergence at the landmarks."""

    def __post_init__(self) -> None:
        check_positive("width", self.width)
        for name, value in (("expand", self.expand), ("contract", self.contract)):
            if not 0 <= value < math.inf:
                raise InputError(f"{name} must be finite and at least 0, but {value} was given.")

    def kernel(self, x: Tensor, y: Tensor) -> Tensor:
        """(..., m, d), (..., n, d) → (..., m, n)."""
        return torch.exp(-(x.unsqueeze(-2) - y.unsqueeze(-3)).square().sum(-1) / (2 * self.width**2))

    def momenta(self, q: Tensor, velocity: Tensor) -> Tensor:
        """p = K⁻¹q̇: (..., k, d)."""
        k = self.kernel(q, q) + JITTER * torch.eye(q.shape[-2], dtype=q.dtype)
        return torch.linalg.solve(k, velocity)

    def squared(self, q: Tensor, velocity: Tensor) -> Tensor:
        """L²: (..., k, d) → (...)."""
        p = self.momenta(q, velocity)
        apart = q.unsqueeze(-2) - q.unsqueeze(-3)
        slope = -(apart * p.unsqueeze(-3)).sum(-1) / self.width**2
        divergence = (self.kernel(q, q) * slope).sum(-1)
        uneven = self.expand * divergence.relu().square() + self.contract * (-divergence).relu().square()
        return (velocity * p).sum((-2, -1)) + uneven.mean(-1)


@dataclass(frozen=True)
class Matching:
    """A path of landmarks. Its energy E is the sum of the lengths of its segments."""

    path: np.ndarray  # (segments + 1, k, d)
    lengths: np.ndarray  # (segments,)
    gradient: float
    """The largest component of the final gradient relative to the action: near 0 for a stationary path."""
    effort: LandmarkEffort

    @property
    def energy(self) -> float:
        return float(self.lengths.sum())

    def warp(self, points: np.ndarray) -> np.ndarray:
        """Carry other points (n, d), for example a grid, along the fields of the path: (segments + 1, n, d)."""
        path = torch.from_numpy(self.path)
        x = torch.as_tensor(points, dtype=torch.float64)
        middle, moved = (path[1:] + path[:-1]) / 2, path.diff(dim=0)
        carried = [x]
        for q, p in zip(middle, self.effort.momenta(middle, moved), strict=True):
            half = x + self.effort.kernel(x, q) @ p / 2
            x = x + self.effort.kernel(half, q) @ p
            carried.append(x)
        return torch.stack(carried).numpy()


def match_landmarks(
    start: np.ndarray, end: np.ndarray, effort: LandmarkEffort | None = None, segments: int = 16
) -> Matching:
    """The path of least action from one set of landmarks (k, d) to another; rows correspond."""
    effort = effort or LandmarkEffort()
    if segments < 2:
        raise InputError(f"segments must be at least 2, but {segments} was given.")
    x, y = _check_landmarks("start", start), _check_landmarks("end", end)
    if x.shape != y.shape:
        raise InputError(f"start and end must have equal shapes, but {tuple(x.shape)} and {tuple(y.shape)} were given.")
    guess = _initial_path(x, y, segments)
    smooth = _preconditioner(segments)

    def path_of(free: np.ndarray) -> Tensor:
        moved = torch.from_numpy(smooth @ free.reshape(segments - 1, -1)).reshape(segments - 1, *x.shape)
        return torch.cat([guess[:1], guess[1:-1] + moved, guess[-1:]])

    def action(free: np.ndarray) -> tuple[float, np.ndarray]:
        path = path_of(free).requires_grad_()
        value = _squared_efforts(path, effort).mean()
        (gradient,) = torch.autograd.grad(value, path)
        return value.item(), (smooth.T @ gradient[1:-1].reshape(segments - 1, -1).numpy()).ravel()

    options = {"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-9, "maxcor": 20}
    found = scipy.optimize.minimize(action, np.zeros(guess[1:-1].numel()), jac=True, method="L-BFGS-B", options=options)
    path = path_of(found.x)
    lengths = _squared_efforts(path, effort).clamp_min(0).sqrt() / segments
    gradient = np.abs(found.jac).max() / found.fun if found.fun > 0 else 0.0
    return Matching(path.numpy(), lengths.numpy(), float(gradient), effort)


def landmark_energies(sets: np.ndarray, effort: LandmarkEffort | None = None, segments: int = 16) -> np.ndarray:
    """E between all ordered pairs of landmark sets (m, k, d): (m, m)."""
    energies = np.zeros((len(sets), len(sets)))
    for i, j in np.argwhere(~np.eye(len(sets), dtype=bool)):
        energies[i, j] = match_landmarks(sets[i], sets[j], effort, segments).energy
    return energies


def _squared_efforts(path: Tensor, effort: LandmarkEffort) -> Tensor:
    """L² of each segment of a path of duration 1."""
    segments = len(path) - 1
    return effort.squared((path[1:] + path[:-1]) / 2, path.diff(dim=0) * segments)


def _initial_path(x: Tensor, y: Tensor, segments: int) -> Tensor:
    t = torch.linspace(0, 1, segments + 1, dtype=torch.float64)[:, None, None]
    step = y - x
    left = torch.zeros_like(step)
    if step.shape[1] > 1:
        left[:, 0] = -step[:, 1]
        left[:, 1] = step[:, 0]
    return x + t * step + BOW * torch.sin(math.pi * t) * left


def _preconditioner(segments: int) -> np.ndarray:
    """The map from unknowns to interior points in which the action of a single landmark is a sum of squares."""
    bend = 2 * np.eye(segments - 1) - np.eye(segments - 1, k=1) - np.eye(segments - 1, k=-1)
    return np.linalg.inv(np.linalg.cholesky(segments * bend)).T


def _check_landmarks(name: str, given: np.ndarray) -> Tensor:
    points = np.asarray(given, dtype=np.float64)
    if points.ndim != 2 or len(points) == 0:
        raise InputError(f"{name} must be (count, dimensions), but its shape is {points.shape}.")
    if not np.isfinite(points).all():
        raise InputError(f"{name} must be finite, but it holds NaN or infinite values.")
    if len(np.unique(points, axis=0)) < len(points):
        raise InputError(f"{name} has two equal landmarks, which no smooth field can merge or separate.")
    return torch.from_numpy(points)
