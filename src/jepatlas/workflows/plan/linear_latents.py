"""LQR in a latent: what moves it as matrices, and what is paid as a quadratic form.

    h' = A h + B u + c        J = Σ_{s=1..t} (w ‖h_s − g‖² + r ‖u_s‖²) + W ‖h_t − g‖²

The matrices of linear dynamics are read off. For all others they are fitted, by least squares, to the latents and
actions of the episodes that were learned from. Held-out episodes say how far to believe them: R² of the next latent,
beside that of "nothing moves", which is high where steps are short.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import r2
from jepatlas.core.linear_system import LinearSystem, fit_linear_system
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.nn import LinearDynamics
from jepatlas.planning import LatentCostConfig, Quadratic, QuadraticCost
from jepatlas.workflows.plan.models import LatentEpisodes, TrainedModel, latent_episodes

__all__ = ["LinearLatent", "linear_latent", "quadratic_cost"]

MOST = 20_000  # pairs of frames that matrices are fitted to, and scored on
FREE = 1e-3  # r where actions cost nothing: without any weight there is no optimum


@dataclass(frozen=True, eq=False)
class LinearLatent:
    """Matrices that latents move by, where they come from, and how well they foretell held-out episodes."""

    system: LinearSystem
    fitted: bool
    score: Estimate
    still: float  # R² of the next latent if nothing moves

    @property
    def said(self) -> str:
        origin = "fitted to its latents" if self.fitted else "read off its dynamics"
        return (
            f"LQR had A and B {origin}: held-out R² of the next latent {self.score.value:.3f} "
            f"({self.still:.3f} if nothing moves)."
        )

    def verdict(self) -> Verdict:
        return Verdict.judge(
            "linear_system",
            self.score,
            direction="higher",
            null=self.still,
            good="R² of the next latent by the linear system that LQR plans with, on held-out episodes; its null is "
            "that nothing moves.",
        )


def linear_latent(model: TrainedModel) -> LinearLatent:
    dynamics = model.objective.dynamics
    if linear := isinstance(dynamics, LinearDynamics):
        system = dynamics.system()
    else:
        learnt = latent_episodes(model, held=False, most=MOST)
        system = fit_linear_system(learnt.h, learnt.u, learnt.h_next)
    held = latent_episodes(model, most=MOST)
    foretold = system.step(held.h, held.u)
    return LinearLatent(system, not linear, _score(held, foretold, model.recipe.seed), r2(held.h_next, held.h))


def _score(held: LatentEpisodes, foretold: np.ndarray, seed: int) -> Estimate:
    """R² of the next latents; rows of an episode are alike, so that one episode alone gives no interval."""
    if len(np.unique(held.episode)) < 2:
        found = r2(held.h_next, foretold)
        return Estimate(found, found, found, len(foretold))
    rng = numpy_generator(seed, "linear latent")
    return bootstrap(lambda w: {"r2": r2(held.h_next, foretold, w)}, len(foretold), rng, groups=held.episode)["r2"]


def quadratic_cost(linear: LinearLatent | None, config: LatentCostConfig) -> QuadraticCost:
    """What `LatentCost` asks for by the squared distance to the goal, but for a constant: w ‖h_0 − g‖²."""
    if linear is None:
        raise InputError("LQR plans with matrices, and this agent has none: agent_of(model, planner) finds them.")
    if config.discount != 1:
        raise InputError(f"LQR weighs all times alike, but the discount is {config.discount}. Leave it at 1.")
    d, a = linear.system.b_da.shape
    weights = Quadratic.isotropic(
        d, a, state=config.stage, action=config.action_penalty or FREE, final=config.stage + config.terminal
    )
    return QuadraticCost(linear.system, weights)
