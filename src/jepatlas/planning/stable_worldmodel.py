"""Costs for stable-worldmodel's solvers, which ask a model for `get_cost(info_dict, action_candidates)`.

Their candidates are ours, (b, k, t, a), and so are the costs, (b, k). Their `info_dict` has an axis for candidates
after the first one, along which nothing differs, in tensors and in arrays alike. It holds what the environment says;
`encode` makes the latents "start" and "goal" of it. Solvers there cannot take +∞ (MPPI would make NaN of it), so it
becomes a large number. Nothing of that package is imported: the protocol is two methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.contracts import Cost
from jepatlas.core.errors import InputError

__all__ = ["CostModel", "as_cost_model"]

Encode = Callable[[dict[str, Any]], Mapping[str, Tensor]]


@dataclass(frozen=True, eq=False)
class CostModel:
    """What `stable_worldmodel` calls a `Costable`."""

    cost: Cost
    encode: Encode
    ceiling: float

    def get_cost(self, info_dict: Mapping[str, Any], action_candidates: Tensor) -> Tensor:
        latents = self.encode(first_candidate(info_dict, action_candidates.shape[1]))
        found = self.cost(latents, action_candidates.to(latents["start"])).to(action_candidates)
        return torch.where(found.isfinite(), found, self.ceiling)

    def criterion(self, info_dict: Mapping[str, Any], action_candidates: Tensor) -> Tensor:
        """The same: here the rollout and the judgement of it are one."""
        return self.get_cost(info_dict, action_candidates)


def as_cost_model(cost: Cost, encode: Encode = dict, ceiling: float = 1e9) -> CostModel:
    """A model for `CEMSolver(model=...)` and its siblings; `encode` where info does not hold latents itself."""
    return CostModel(cost, encode, ceiling)


def first_candidate(info_dict: Mapping[str, Any], candidates: int) -> dict[str, Any]:
    """Their info without the axis of candidates, arrays as tensors: (b, k, ...) → (b, ...)."""
    found = {}
    for name, value in info_dict.items():
        if not isinstance(value, Tensor | np.ndarray):
            found[name] = value  # lists and the like are passed on as they are
        elif value.ndim < 2 or value.shape[1] != candidates:
            raise InputError(
                f"info['{name}'] has shape {tuple(value.shape)}, but solvers give (b, k, ...) with k = {candidates} "
                "candidates on the second axis."
            )
        else:
            first = value[:, 0]
            numeric = isinstance(first, np.ndarray) and first.dtype.kind in "biuf"
            found[name] = torch.as_tensor(first) if numeric else first
    return found
