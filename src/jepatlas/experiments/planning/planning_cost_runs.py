"""What one trial of `planning-cost` does: train an encoder, plan by LQR in its latents, and act in the true world.

At every step the world is observed, the observation is encoded, and the feedback that is optimal for the dynamics that
were fitted in the latent says what to do, within the bounds that the optimum keeps: or a loop that leaves the states
which the encoder knows would be judged by how fast it does. What it costs in truth stands beside the true optimum, for
the same starts and goals; and so does what it costs to do nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.linear import distance_from_identity, procrustes
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.experiments.energy.learned_energies import exactly
from jepatlas.experiments.engine.experiment import Scale, Trial, as_verdicts
from jepatlas.experiments.engine.latent_trials import r2_of_state, recipe_for
from jepatlas.experiments.planning.ou_actions import Loop, See, Walked, eyes, true_system, walked
from jepatlas.identifiability import certify_dynamics
from jepatlas.planning import Quadratic
from jepatlas.workflows.runs import load_objective, train_job
from jepatlas.worlds import AnyMixing, Coupling, LatentWorld, OrnsteinUhlenbeck, Spiral

__all__ = ["OBSERVED", "PROBLEMS", "run", "run_observed", "trials"]

PROBLEMS = {
    "regulate": "to the origin",
    "reach": "to a goal",
    "reach_conjugated": "to a goal, uneven cost, conjugated",
    "reach_unconjugated": "to a goal, uneven cost, as it is",
}
OBSERVED = "observed"
MIXINGS: tuple[AnyMixing, ...] = (Spiral(), Coupling(seed=1))
ACTION = 0.1  # weight of actions, where that of the state is 1
UNEVEN = (0.2, 5.0)  # weights of the state's first and last axis, where they are not equal
DYNAMICS = ("linear_dynamics", "persistent_excitation", "conjugacy_a", "conjugacy_b", "conjugacy_scale")


@dataclass(frozen=True)
class Plan:
    steps: tuple[int, ...]  # of training, with the weight WEIGHT
    weights: tuple[float, ...]  # other weights
    middle: int  # steps with other weights
    seeds: int
    rows: int
    tasks: int


WEIGHT = 0.01
SCALES = {
    "tiny": Plan((5, 30), (), 30, 1, 500, 20),
    "small": Plan((200, 500, 1000, 2000, 6000), (0.001, 0.1), 2000, 3, 20_000, 500),
    "paper": Plan((500, 1000, 2000, 5000, 20_000), (1e-4, 1e-3, 0.1), 20_000, 5, 100_000, 2000),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan, law, every = SCALES[scale], OrnsteinUhlenbeck(dim=2, rho=0.95), []
    arms = [*((steps, WEIGHT) for steps in plan.steps), *((plan.middle, weight) for weight in plan.weights)]
    sizes = {"rows": plan.rows, "tasks": plan.tasks}
    for world in (LatentWorld(law, mixing) for mixing in MIXINGS):
        for s in range(seed, seed + plan.seeds):
            place = {"mixing": world.mixing.kind, "seed": s}
            for steps, weight in arms:
                recipe = to_plain(recipe_for(scale, world, steps=steps, seed=s, weight=weight))
                every.append(Trial(place | {"latent": f"{steps}-{weight:g}"}, run, {"recipe": recipe} | sizes))
            plain = {"world": to_plain(world), "seed": s}
            every.append(Trial(place | {"latent": OBSERVED}, run_observed, plain | sizes))
    return every


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train (or go on), then plan in the latents of a finished run."""
    record = train_job(settings["recipe"], folder)
    if record["status"] != "finished":
        return record
    recipe, objective = load_objective(Path(folder))
    return record | {"verdicts": _measure(recipe.world, eyes(recipe.world, objective), settings, recipe.seed)}


def run_observed(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """The control: plan in what is observed, as if that were the latent."""
    del folder
    world = from_plain(LatentWorld, settings["world"])
    return {"status": "finished", "verdicts": _measure(world, eyes(world, None), settings, settings["seed"])}


def _measure(world: LatentWorld, see: See, settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    rng, true = numpy_generator(seed, "planning cost"), true_system(world)
    rows = walked(world, see, settings["rows"], rng)
    judged = certify_dynamics(
        rows.h, rows.u, rows.h_next, rows.z, truth=(true.a_dd, true.b_da), seed=seed, replicates=100
    )
    told = {verdict.name: verdict for verdict in judged}
    found = {name: Estimate(told[name].value, told[name].low, told[name].high, told[name].n) for name in DYNAMICS}
    found |= {"r2": r2_of_state(rows.h, rows.z, seed)} | _costs(world, see, rows, settings["tasks"], rng)
    return as_verdicts(found, "of this latent")


def _costs(world: LatentWorld, see: See, rows: Walked, tasks: int, rng: np.random.Generator) -> dict[str, Estimate]:
    """Costs as multiples of the optimum, of each problem."""
    dim, true = world.dim, true_system(world)
    starts, goals = rng.standard_normal((2, tasks, dim))
    even = Quadratic.isotropic(dim, dim, state=1.0, action=ACTION, final=1.0)
    spread = np.diag(np.geomspace(*UNEVEN, dim))
    uneven = Quadratic(spread, even.action_aa, spread)
    turn = procrustes(rows.z, rows.h).weight
    found = {"slope_at_origin": exactly(_slope_error(see, turn), 1)}
    for problem, (ends, inside, weights) in {
        "regulate": (np.zeros_like(goals), even, even),
        "reach": (goals, even, even),
        "reach_conjugated": (goals, uneven.conjugate(turn), uneven),
        "reach_unconjugated": (goals, uneven, uneven),
    }.items():
        best, largest = Loop(true, lambda z: z, true, weights)(starts, ends, weights)
        for name, system in ((problem, rows.system), (f"{problem}_idle", None)):
            paid, _ = Loop(true, see, system, inside, largest)(starts, ends, weights)
            found[name] = _ratio(paid, best, rng)
    return found


def _slope_error(see: See, turn: np.ndarray, reach: float = 0.01) -> float:
    """‖QᵀJ − I‖_F / ‖I‖_F of the slope J of z → h at the origin: R² is a mean, feedback to one point lives on it."""
    ends = reach * np.eye(turn.shape[1])
    slope = (see(ends) - see(-ends)).T / (2 * reach)
    return distance_from_identity(turn.T @ slope)


def _ratio(paid: np.ndarray, best: np.ndarray, rng: np.random.Generator) -> Estimate:
    """Σ paid / Σ best over tasks."""

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {"ratio": float(weights @ paid / (weights @ best))}

    return bootstrap(statistic, len(paid), rng, replicates=200)["ratio"]
