"""How a map h(z) stretches space: Jacobians, Dirichlet energy, singular values, distance from an isometry.

    E‖Dh‖²_F = lim_{ρ→1} L / (2(1−ρ))          Dirichlet energy; Σ_d d·v_d in the Hermite basis
    E‖Dh‖²_F ≥ n exp((2/n) E log|det Dh|)      = n where h keeps the Gaussian measure; equal only for isometries

A map that keeps the measure keeps volumes on average (E log|det Dh| = 0), so it can neither stretch nor compress any
direction anywhere without paying for it; what is left is an isometry, hence affine (Mazur–Ulam).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate
from jepatlas.core.stats import bootstrap

__all__ = ["dirichlet_floor", "jacobian_geometry", "jacobians", "singular_values"]


def jacobians(function: Callable[[Tensor], Tensor], z: Tensor, *, batch: int = 256) -> Tensor:
    """Dh at each row of z (b, n), as (b, d, n), for a function of rows (b, n) → (b, d), in batches.

    Each row is sent alone, so a module that mixes rows (batch normalisation in training mode) must be in `eval` mode.

    >>> jacobians(lambda z: 2 * z[:, :1] * z[:, 1:], torch.tensor([[3.0, 5.0]]))
    tensor([[[10.,  6.]]])
    """
    if z.ndim != 2 or 0 in z.shape:
        raise InputError(f"'z' must have rows and columns, but its shape is {tuple(z.shape)}.")
    if not z.is_floating_point():
        raise InputError(f"'z' must hold floating-point numbers, but it holds {z.dtype}.")
    shape = tuple(function(z[:1]).shape)
    if len(shape) != 2 or shape[0] != 1:
        raise InputError(f"The function must map rows to rows, (1, {z.shape[1]}) to (1, d), but it gave {shape}.")
    rowwise = torch.func.vmap(torch.func.jacrev(lambda row: function(row[None])[0]))
    return torch.cat([rowwise(rows).detach() for rows in z.detach().split(batch)])


def singular_values(jacobian: Tensor) -> Tensor:
    """σ_1 ≥ … ≥ σ_n of each Jacobian (b, d, n), in float64; zeros where d < n drops a direction."""
    found = torch.linalg.svdvals(jacobian.double())
    return torch.nn.functional.pad(found, (0, jacobian.shape[2] - found.shape[1]))


def jacobian_geometry(
    jacobian: Tensor, rng: np.random.Generator, *, groups: np.ndarray | None = None, replicates: int = 500
) -> dict[str, Estimate]:
    """Estimates over the rows of (b, d, n), with group-bootstrap intervals:

    dirichlet          E‖Dh‖²_F; n for an isometry
    log_volume         E Σ log σ_i, E log|det Dh| where d = n; −inf where a direction is dropped
    isometry_defect    E Σ (σ_i − 1)² / n; zero only for an isometry, one for a constant
    sigma_largest      mean over rows of the largest singular value
    sigma_smallest     mean over rows of the smallest
    """
    if jacobian.ndim != 3 or 0 in jacobian.shape:
        raise InputError(f"Jacobians must have shape (b, d, n), but it is {tuple(jacobian.shape)}.")
    if bad := int((~torch.isfinite(jacobian)).flatten(1).any(1).sum()):
        raise InputError(f"{bad} of the {len(jacobian)} Jacobians are not finite: h has no derivative there.")
    sigma = singular_values(jacobian).cpu().numpy()
    per_row = {
        "dirichlet": np.square(sigma).sum(1),
        "isometry_defect": np.square(sigma - 1).mean(1),
        "sigma_largest": sigma[:, 0],
        "sigma_smallest": sigma[:, -1],
    }
    if sigma.all():
        per_row["log_volume"] = np.log(sigma).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {name: float(weights @ row / weights.sum()) for name, row in per_row.items()}

    found = bootstrap(statistic, len(sigma), rng, groups=groups, replicates=replicates)
    return {"log_volume": Estimate(-np.inf, -np.inf, -np.inf, len(sigma))} | found


def dirichlet_floor(log_volume: float, n: int) -> float:
    """n exp((2/n) E log|det Dh|): the least Dirichlet energy that a map with these volumes can have.

    >>> dirichlet_floor(0.0, 3)
    3.0
    """
    return float(n * np.exp(2 / n * log_volume))
