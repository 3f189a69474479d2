"""Adapters: a `Cost` for stable-worldmodel's solvers, and an `Energy` as an objective for its world models.

The solvers call `get_cost(info_dict, action_candidates)`. Version 0.1.1 names the cost `CEMSolver(model=...)`, later
ones `CEMSolver(cost=...)`; both were run with this adapter. Later ones also have objectives, which score what a world
model has predicted.

Candidates (b, k, t, a) and costs (b, k) have the same shapes there and here. Tensors and arrays in `info_dict` have an
extra candidate axis after the batch axis, along which they are constant. `info_dict` holds observations; `encode`
turns them into the latents "start" and "goal". Those solvers cannot take +∞ (MPPI would return NaN), so infinite costs
become a large number. The adapters do not import stable-worldmodel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jepatlas.core.contracts import Cost, Energy
from jepatlas.core.errors import InputError
from jepatlas.core.lazy import lazy_import

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    Encode = Callable[[dict[str, Any]], Mapping[str, Tensor]]
else:
    torch = lazy_import("torch")

__all__ = ["CostModel", "EnergyObjective", "as_cost_model", "as_objective"]


@dataclass(frozen=True, eq=False)
class CostModel:
    """Implements stable-worldmodel's `Costable` protocol."""

    cost: Cost
    encode: Encode
    ceiling: float

    def get_cost(self, info_dict: Mapping[str, Any], action_candidates: Tensor) -> Tensor:
        latents = self.encode(_without_candidate_axis(info_dict, action_candidates.shape[1]))
        costs = self.cost(latents, action_candidates.to(latents["start"])).to(action_candidates)
        return torch.where(costs.isfinite(), costs, self.ceiling)

    def criterion(self, info_dict: Mapping[str, Any], action_candidates: Tensor) -> Tensor:
        """Same as `get_cost`: the cost includes the rollout."""
        return self.get_cost(info_dict, action_candidates)


def as_cost_model(cost: Cost, encode: Encode = dict, ceiling: float = 1e9) -> CostModel:
    """What `CEMSolver(model=...)`, or since July 2026 `CEMSolver(cost=...)`, and similar solvers take.

    Pass `encode` unless info_dict already holds the latents "start" and "goal". Costs that are not finite become
    `ceiling`.
    """
    return CostModel(cost, encode, ceiling)


@dataclass(frozen=True, eq=False)
class EnergyObjective:
    """Implements stable-worldmodel's `Objective` protocol: E(last predicted latent, goal) of each candidate."""

    energy: Energy
    ceiling: float

    def __call__(self, info_dict: Mapping[str, Any]) -> Tensor:
        """Latents `predicted_emb` (b, k, t, ...) and `goal_emb` (b, t, ...) → (b, k)"""
        last = info_dict["predicted_emb"][:, :, -1]
        goal = info_dict["goal_emb"][:, None, -1].expand_as(last)
        costs = self.energy(last.flatten(2), goal.flatten(2))
        return torch.where(costs.isfinite(), costs, self.ceiling)


def as_objective(energy: Energy, ceiling: float = 1e9) -> EnergyObjective:
    """An objective for `ShootingCostEvaluator(world_model, objective)`: plan on an energy of that model's latents."""
    return EnergyObjective(energy, ceiling)


def _without_candidate_axis(info_dict: Mapping[str, Any], candidates: int) -> dict[str, Any]:
    """Drop the candidate axis, (b, k, ...) → (b, ...), and convert numeric arrays to tensors."""
    info = {}
    for name, value in info_dict.items():
        if not isinstance(value, torch.Tensor | np.ndarray):
            info[name] = value
            continue
        if value.ndim < 2 or value.shape[1] != candidates:
            raise InputError(
                f"info['{name}'] has shape {tuple(value.shape)}, but solvers pass (b, k, ...) with k = {candidates} "
                "candidates on the second axis."
            )
        first = value[:, 0]
        numeric = isinstance(first, np.ndarray) and first.dtype.kind in "biuf"
        info[name] = torch.as_tensor(first) if numeric else first
    return info
