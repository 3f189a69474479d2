"""Rollouts through torch.compile: the loop over time becomes one kernel after another, with nothing of Python between.

Compiling takes seconds, once for each horizon; worth it where one network is planned with many times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from jepatlas.core.contracts import Dynamics

__all__ = ["CompiledDynamics", "compiled"]


@dataclass(frozen=True, eq=False)
class CompiledDynamics:
    """`Dynamics` whose rollout is the compiled one of others."""

    original: Dynamics
    compiled_rollout: Callable[[Tensor, Tensor], Tensor]

    def rollout(self, h: Tensor, actions: Tensor) -> Tensor:
        return self.compiled_rollout(h, actions)


def compiled(dynamics: Dynamics, backend: str = "inductor") -> CompiledDynamics:
    """The same dynamics, faster after the first call; `backend` is torch.compile's."""
    rollout = torch.compile(dynamics.rollout, backend=backend)
    return CompiledDynamics(dynamics, cast(Callable[[Tensor, Tensor], Tensor], rollout))
