"""An agent that plans: what it sees becomes a latent, dynamics imagine, and an energy says how far it is.

Any of the three may come from elsewhere. A planner is *ported* to another model's camera where that model's latents
are carried into this one's by a map between the two: dynamics and energy are used as they are, with no training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.contracts import Dynamics
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.objectives import WorldModel
from jepatlas.planning import LQRConfig, PlannerConfig
from jepatlas.workflows.plan.linear_latents import LinearLatent, linear_latent
from jepatlas.workflows.plan.models import TrainedModel

__all__ = ["PlanningAgent", "agent_of", "euclidean", "ported"]

Energy = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class PlanningAgent:
    see: Callable[[np.ndarray], Tensor]  # (b, …) → (b, d): a frame alone, or as many together as `history` says
    dynamics: Dynamics
    energy: Energy  # (…, d), (…, d) → (…)
    action_dim: int  # of one step of the world
    stride: int = 1  # steps of the world that are planned as one
    history: int = 1  # frames that are seen together, as `stack_history` puts them
    linear: LinearLatent | None = None  # what moves its latents as matrices, for LQR


def euclidean(h: Tensor, goal: Tensor) -> Tensor:
    """‖h − g‖: what distances are where no energy was learned."""
    return (h - goal).norm(dim=-1)


def agent_of(model: TrainedModel, planner: PlannerConfig | None = None) -> PlanningAgent:
    """The agent that a run has trained, with its own energy where one was learned, and with what the planner needs."""
    objective = model.objective
    if not isinstance(objective, WorldModel):
        raise InputError(
            "This run has an encoder, but no dynamics to imagine with. Train one with --model predictive, on episodes "
            "with actions."
        )
    energy: Any = objective.energy or euclidean
    dynamics = cast(Dynamics, objective.dynamics)
    linear, recipe = linear_latent(model) if isinstance(planner, LQRConfig) else None, model.recipe
    return PlanningAgent(model.encode, dynamics, energy, model.data.action_dim, recipe.stride, recipe.history, linear)


def ported(
    agent: PlanningAgent, see: Callable[[np.ndarray], Tensor], into: LinearMap, history: int | None = None
) -> PlanningAgent:
    """The agent behind another model's encoder: h₁ = M h₂, and all that follows is the agent's own.

    `history` is how many frames the encoder sees together; by default as many as the agent's own.
    """

    @torch.no_grad()
    def translated(observations: np.ndarray) -> Tensor:
        h = see(observations)
        return torch.as_tensor(into.apply(h.double().numpy())).to(h)

    return replace(agent, see=translated, history=history or agent.history)
