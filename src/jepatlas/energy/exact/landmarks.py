"""Registration in the plane: points that a smooth velocity field carries from one place to another.

Of all fields that move landmarks q at velocities q̇, the smallest in the norm of a Gaussian kernel k is
v(x) = Σᵢ k(x, qᵢ)pᵢ with p = K(q)⁻¹q̇. The local effort is

    L(q, q̇)² = q̇ᵀK(q)⁻¹q̇ + mean_j [ a·(div v(qⱼ))⁺² + b·(div v(qⱼ))⁻² ]

which is homogeneous of degree one, at least ‖v‖, and the same in both directions only where a = b. E is the length of
the best path that was found: an upper bound, second order in the number of segments. The path minimises ∫L², whose
minimiser is the shortest path at constant effort, while ∫L itself does not mind how time runs and has no one minimiser.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when they are asked for
import torch
from torch import Tensor

from jepatlas.core.errors import InputError

__all__ = ["LandmarkEffort", "Matching", "landmark_energies", "match_landmarks"]

BOW = 0.05  # how far the first guess is bent to the left: on straight lines landmarks may meet, and no field does that
JITTER = 1e-10  # on the diagonal of K, which nearly meeting landmarks make singular


@dataclass(frozen=True)
class LandmarkEffort:
    """How stiff the field is, and what expanding and contracting it costs on top."""

    width: float = 1.0
    """Standard deviation of the kernel: how far the field carries its surroundings along."""
    expand: float = 0.0
    """The weight a of divergence above 0, at the landmarks."""
    contract: float = 0.0
    """The weight b of divergence below 0."""

    def __post_init__(self) -> None:
        if not 0 < self.width < math.inf:
            raise InputError(f"width is {self.width}, but it must be positive and finite.")
        for name, value in (("expand", self.expand), ("contract", self.contract)):
            if not 0 <= value < math.inf:
                raise InputError(f"{name} is {value}, but it must be at least 0 and finite.")

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
    """A path of landmarks and what it takes: E is the sum of the lengths of its segments."""

    path: np.ndarray  # (segments + 1, k, d)
    lengths: np.ndarray  # (segments,)
    slope: float
    """The largest slope that was left of the action, relative to it: near 0 where the path is stationary."""
    effort: LandmarkEffort

    @property
    def energy(self) -> float:
        return float(self.lengths.sum())

    def warp(self, points: np.ndarray) -> np.ndarray:
        """Where the fields along the path carry other points (n, d), a drawn grid for example: (segments + 1, n, d)."""
        path, x = torch.from_numpy(self.path), torch.as_tensor(points, dtype=torch.float64)
        middle, moved = (path[1:] + path[:-1]) / 2, path.diff(dim=0)
        way = [x]
        for q, p in zip(middle, self.effort.momenta(middle, moved), strict=True):
            half = x + self.effort.kernel(x, q) @ p / 2
            x = x + self.effort.kernel(half, q) @ p
            way.append(x)
        return torch.stack(way).numpy()


def match_landmarks(
    start: np.ndarray, end: np.ndarray, effort: LandmarkEffort | None = None, segments: int = 16
) -> Matching:
    """The path of least action from one set of landmarks (k, d) to another, row to row."""
    effort = effort or LandmarkEffort()
    if segments < 2:
        raise InputError(f"segments is {segments}, but a path that can bend has at least 2.")
    x, y = _checked("start", start), _checked("end", end)
    if x.shape != y.shape:
        raise InputError(f"start has the shape {tuple(x.shape)} and end {tuple(y.shape)}. Landmarks go in pairs.")
    guess, smooth = _guess(x, y, segments), _smooth(segments)

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
    slope = np.abs(found.jac).max() / found.fun if found.fun > 0 else 0.0
    return Matching(path.numpy(), lengths.numpy(), float(slope), effort)


def landmark_energies(sets: np.ndarray, effort: LandmarkEffort | None = None, segments: int = 16) -> np.ndarray:
    """E between all ordered pairs of landmark sets (m, k, d): (m, m)."""
    energies = np.zeros((len(sets), len(sets)))
    for i, j in np.argwhere(~np.eye(len(sets), dtype=bool)):
        energies[i, j] = match_landmarks(sets[i], sets[j], effort, segments).energy
    return energies


def _squared_efforts(path: Tensor, effort: LandmarkEffort) -> Tensor:
    """L² of each segment, for a path that takes one unit of time."""
    segments = len(path) - 1
    return effort.squared((path[1:] + path[:-1]) / 2, path.diff(dim=0) * segments)


def _guess(x: Tensor, y: Tensor, segments: int) -> Tensor:
    t = torch.linspace(0, 1, segments + 1, dtype=torch.float64)[:, None, None]
    way = y - x
    left = torch.zeros_like(way)
    if way.shape[1] > 1:
        left[:, 0], left[:, 1] = -way[:, 1], way[:, 0]
    return x + t * way + BOW * torch.sin(math.pi * t) * left


def _smooth(segments: int) -> np.ndarray:
    """From unknowns to paths, so that a single landmark's action is their sum of squares: far fewer steps."""
    bend = 2 * np.eye(segments - 1) - np.eye(segments - 1, k=1) - np.eye(segments - 1, k=-1)
    return np.linalg.inv(np.linalg.cholesky(segments * bend)).T


def _checked(name: str, given: np.ndarray) -> Tensor:
    points = np.asarray(given, dtype=np.float64)
    if points.ndim != 2 or len(points) == 0:
        raise InputError(f"{name} has the shape {points.shape}, but landmarks are (count, dimensions).")
    if not np.isfinite(points).all():
        raise InputError(f"{name} holds NaN or infinite numbers. Give finite ones.")
    if len(np.unique(points, axis=0)) < len(points):
        raise InputError(f"{name} has two landmarks in one place, which no smooth field can bring together or part.")
    return torch.from_numpy(points)
