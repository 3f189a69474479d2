"""Planning agents: an encoder, latent dynamics and an energy; and the linear system that LQR needs.

Each of the three may come from another model. A planner is *ported* to another model's encoder by a map between the
latents of the two models: dynamics and energy are used as they are, without training.

LQR needs linear dynamics and a quadratic cost:

    h' = A h + B u + c        J = Σ_{s=1..t} (w ‖h_s − g‖² + r ‖u_s‖²) + W ‖h_t − g‖²

For `LinearDynamics` the matrices are those of the model. For other dynamics they are fitted by least squares to latents
and actions of the training episodes. The held-out R² of the next latent measures the fit. It should be compared with
the R² of no change, which is high where steps are short.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from jepatlas.core.contracts import Dynamics
from jepatlas.core.errors import InputError
from jepatlas.core.lazy import lazy_import
from jepatlas.core.linear import r2
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.linear_system import LinearSystem, fit_linear_system
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.nn import LinearDynamics
from jepatlas.objectives import WorldModel
from jepatlas.planning import LatentCostConfig, LQRConfig, PlannerConfig, Quadratic, QuadraticCost
from jepatlas.workflows.plan.trained_world_model import LatentEpisodes, TrainedModel, latent_episodes

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    Energy = Callable[[Tensor, Tensor], Tensor]
else:
    torch = lazy_import("torch")

__all__ = ["LinearLatent", "PlanningAgent", "agent_of", "euclidean", "linear_latent", "ported", "quadratic_cost"]

MAX_PAIRS = 20_000  # pairs of frames that the linear system is fitted to and scored on
MIN_ACTION_WEIGHT = 1e-3  # r if actions have no cost: with r = 0 there may be no optimum


@dataclass(frozen=True, eq=False)
class PlanningAgent:
    encode: Callable[[np.ndarray], Tensor]  # (b, …) → (b, d): single frames, or `history` frames stacked
    dynamics: Dynamics
    energy: Energy  # (…, d), (…, d) → (…)
    action_dim: int  # of one step of the world
    stride: int = 1  # steps of the world per action of a plan
    history: int = 1  # frames that are encoded together, as by `stack_history`
    linear: LinearLatent | None = None  # linear dynamics, for LQR


def euclidean(h: Tensor, goal: Tensor) -> Tensor:
    """‖h − g‖: the energy of models that have learned none."""
    return (h - goal).norm(dim=-1)


def agent_of(model: TrainedModel, planner: PlannerConfig | None = None) -> PlanningAgent:
    """The agent of a trained model: with its energy, if any, and with linear dynamics if the planner is LQR."""
    objective = model.objective
    if not isinstance(objective, WorldModel):
        raise InputError(
            "This run has an encoder but no dynamics, so it cannot plan. Train one with --model predictive on episodes "
            "with actions."
        )
    learned = euclidean if objective.energy is None else cast("Energy", objective.energy)
    return PlanningAgent(
        encode=model.encode,
        dynamics=cast(Dynamics, objective.dynamics),
        energy=learned if model.least_action is None else model.least_action,
        action_dim=model.data.action_dim,
        stride=model.recipe.stride,
        history=model.recipe.history,
        linear=linear_latent(model) if isinstance(planner, LQRConfig) else None,
    )


def ported(
    agent: PlanningAgent, encode: Callable[[np.ndarray], Tensor], into: LinearMap, history: int | None = None
) -> PlanningAgent:
    """The agent behind another model's encoder: h₁ = M h₂, and everything else as it is.

    `history` is the number of frames that the other encoder takes; by default that of the agent.
    """

    def translated(observations: np.ndarray) -> Tensor:
        with torch.no_grad():
            h = encode(observations)
            return torch.as_tensor(into.apply(h.double().numpy())).to(h)

    return replace(agent, encode=translated, history=history or agent.history)


@dataclass(frozen=True, eq=False)
class LinearLatent:
    """Linear dynamics of a model's latents, with their R² on held-out episodes."""

    system: LinearSystem
    fitted: bool  # by least squares, rather than taken from the model's linear dynamics
    score: Estimate
    no_change: float  # R² of the next latent if latents do not change

    @property
    def summary(self) -> str:
        origin = "fitted to its latents" if self.fitted else "of its linear dynamics"
        return (
            f"LQR uses A and B {origin}: held-out R² of the next latent {self.score.value:.3f} "
            f"({self.no_change:.3f} for no change)."
        )

    def verdict(self) -> Verdict:
        return Verdict.judge(
            "linear_system",
            self.score,
            direction="higher",
            null=self.no_change,
            good="Held-out R² of the next latent by the linear system that LQR uses. The null is no change.",
        )


def linear_latent(model: TrainedModel) -> LinearLatent:
    """The model's own matrices if its dynamics are linear, else fitted ones."""
    dynamics = model.objective.dynamics
    fitted = not isinstance(dynamics, LinearDynamics)
    if fitted:
        train = latent_episodes(model, held=False, most=MAX_PAIRS)
        system = fit_linear_system(train.h, train.u, train.h_next)
    else:
        system = dynamics.system()
    held = latent_episodes(model, most=MAX_PAIRS)
    score = _score(held, system.step(held.h, held.u), model.recipe.seed)
    return LinearLatent(system, fitted, score, r2(held.h_next, held.h))


def _score(held: LatentEpisodes, predicted: np.ndarray, seed: int) -> Estimate:
    """R² of the next latents; resamples episodes, so a single episode gives no interval."""
    if len(np.unique(held.episode)) < 2:
        value = r2(held.h_next, predicted)
        return Estimate.exact(value, len(predicted))
    rng = numpy_generator(seed, "linear latent")
    return bootstrap(lambda w: {"r2": r2(held.h_next, predicted, w)}, len(predicted), rng, groups=held.episode)["r2"]


def quadratic_cost(linear: LinearLatent | None, config: LatentCostConfig) -> QuadraticCost:
    """`LatentCost` with squared distances as energies, up to the constant w ‖h_0 − g‖²."""
    if linear is None:
        raise InputError("LQR needs an agent with linear dynamics. Create it with agent_of(model, planner).")
    if config.discount != 1:
        raise InputError(f"discount is {config.discount}, but LQR does not support discounts. Leave it at 1.")
    d, a = linear.system.b_da.shape
    weights = Quadratic.isotropic(
        d,
        a,
        state=config.stage,
        action=config.action_penalty or MIN_ACTION_WEIGHT,
        final=config.stage + config.terminal,
    )
    return QuadraticCost(linear.system, weights)
