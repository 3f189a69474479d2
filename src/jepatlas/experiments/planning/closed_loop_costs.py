"""Costs of closed loops in a latent of the controlled world, as multiples of the optimum.

At every step the world is observed and encoded, and the action is the optimal feedback for the dynamics fitted in the
latent, within the bounds that the optimum keeps. (Without bounds, a loop that leaves the known states would be judged
by its speed of divergence.) The true cost is compared with the true optimum for the same starts and goals, and with
the cost of doing nothing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jepatlas.core.config import from_plain
from jepatlas.core.linear import distance_from_identity, procrustes
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.experiments.engine.experiment import Plain
from jepatlas.experiments.engine.latent_trials import r2_of_state
from jepatlas.experiments.engine.rules import as_verdicts, point_estimates
from jepatlas.experiments.planning.controlled_world import (
    Encode,
    LatentSteps,
    Loop,
    sample_steps,
    true_system,
    world_encoder,
)
from jepatlas.identifiability import certify_dynamics
from jepatlas.planning import Quadratic
from jepatlas.workflows.runs import load_objective, train_job
from jepatlas.worlds import LatentWorld

__all__ = ["PROBLEMS", "planning_costs", "run", "run_observed"]

DYNAMICS = ("linear_dynamics", "persistent_excitation", "conjugacy_a", "conjugacy_b", "conjugacy_scale")
PROBLEMS = {
    "regulate": "to the origin",
    "reach": "to a goal",
    "reach_conjugated": "to a goal, uneven cost, conjugated",
    "reach_unconjugated": "to a goal, uneven cost, unchanged",
}
ACTION = 0.1  # weight of actions; that of the state is 1
UNEVEN = (0.2, 5.0)  # weights of the state's first and last axis in an uneven cost


def run(settings: Plain, folder: str) -> Plain:
    """Train or resume, then plan in the latents of a finished run."""
    record = train_job(settings["recipe"], folder)
    if record["status"] != "finished":
        return record
    recipe, objective = load_objective(Path(folder))
    return record | {"verdicts": _measure(recipe.world, world_encoder(recipe.world, objective), settings, recipe.seed)}


def run_observed(settings: Plain, folder: str) -> Plain:
    """The control: plan in the observation, taken as the latent."""
    del folder
    world = from_plain(LatentWorld, settings["world"])
    return {"status": "finished", "verdicts": _measure(world, world_encoder(world, None), settings, settings["seed"])}


def _measure(world: LatentWorld, encode: Encode, settings: Plain, seed: int) -> list[Plain]:
    rng = numpy_generator(seed, "planning cost")
    true = true_system(world)
    steps = sample_steps(world, encode, settings["rows"], rng)
    truth = (true.a_dd, true.b_da)
    judged = certify_dynamics(steps.h, steps.u, steps.h_next, steps.z, truth=truth, seed=seed, replicates=100)
    verdicts = {verdict.name: verdict for verdict in judged}
    found = {name: verdicts[name].estimate for name in DYNAMICS}
    found["r2"] = r2_of_state(steps.h, steps.z, seed)
    found |= planning_costs(world, encode, steps, settings["tasks"], rng)
    return as_verdicts(found, "of this latent")


def planning_costs(
    world: LatentWorld, encode: Encode, rows: LatentSteps, tasks: int, rng: np.random.Generator
) -> dict[str, Estimate]:
    """Costs of each problem as multiples of the optimum."""
    dim = world.dim
    true = true_system(world)
    starts, goals = rng.standard_normal((2, tasks, dim))
    even = Quadratic.isotropic(dim, dim, state=1.0, action=ACTION, final=1.0)
    spread = np.diag(np.geomspace(*UNEVEN, dim))
    uneven = Quadratic(spread, even.action_aa, spread)
    turn = procrustes(rows.z, rows.h).weight
    found = point_estimates({"slope_at_origin": _slope_error(encode, turn)}, 1)
    problems = {
        "regulate": (np.zeros_like(goals), even, even),
        "reach": (goals, even, even),
        "reach_conjugated": (goals, uneven.conjugate(turn), uneven),
        "reach_unconjugated": (goals, uneven, uneven),
    }
    for problem, (ends, inside, weights) in problems.items():
        best, largest = Loop(true, lambda z: z, true, weights)(starts, ends, weights)
        for name, system in ((problem, rows.system), (f"{problem}_idle", None)):
            paid, _ = Loop(true, encode, system, inside, largest)(starts, ends, weights)
            found[name] = _ratio(paid, best, rng)
    return found


def _slope_error(encode: Encode, turn: np.ndarray, step: float = 0.01) -> float:
    """‖QᵀJ − I‖_F / ‖I‖_F of the Jacobian J of z → h at the origin.

    R² is a mean over states, but feedback to one point depends on the slope there.
    """
    ends = step * np.eye(turn.shape[1])
    slope = (encode(ends) - encode(-ends)).T / (2 * step)
    return distance_from_identity(turn.T @ slope)


def _ratio(paid: np.ndarray, best: np.ndarray, rng: np.random.Generator) -> Estimate:
    """Σ paid / Σ best over tasks."""

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {"ratio": float(weights @ paid / (weights @ best))}

    return bootstrap(statistic, len(paid), rng, replicates=200)["ratio"]
