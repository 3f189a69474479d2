"""Cost of plans in a trained latent, against its distance from a rotation of the state.

Theorem 4 (`optimal-planning`) says that nothing is lost if h = Qz. Encoders are trained for different times and with
different weights of SIGReg, so that R² varies; the observation itself, taken as the latent, is the other extreme.

At every step the world is observed and encoded, and the action is the optimal feedback for the dynamics fitted in the
latent, within the bounds that the optimum keeps. (Without bounds, a loop that leaves the known states would be judged
by its speed of divergence.) The true cost is compared with the true optimum for the same starts and goals, and with
the cost of doing nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.linear import distance_from_identity, procrustes
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap, spearman
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import r2_of_state, recipe_for
from jepatlas.experiments.engine.rules import Criterion, as_verdicts, outcome_of_criteria, point_estimates
from jepatlas.experiments.engine.seed_tables import cell, finished_only, grouped, mean_and_range, plain, select
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
from jepatlas.worlds import AnyMixing, Coupling, LatentWorld, OrnsteinUhlenbeck, Spiral

__all__ = ["EXPERIMENT", "planning_costs", "run", "run_observed"]

IDENTIFIED, WITHIN = 0.98, 0.05
MONOTONE = 0.8  # rank correlation required of cost and 1 − R²
JUDGED = ("regulate", "reach")
PROBLEMS = {
    "regulate": "to the origin",
    "reach": "to a goal",
    "reach_conjugated": "to a goal, uneven cost, conjugated",
    "reach_unconjugated": "to a goal, uneven cost, as it is",
}
OBSERVED = "observed"
MIXINGS: tuple[AnyMixing, ...] = (Spiral(), Coupling(seed=1))
ACTION = 0.1  # weight of actions; that of the state is 1
UNEVEN = (0.2, 5.0)  # weights of the state's first and last axis in an uneven cost
DYNAMICS = ("linear_dynamics", "persistent_excitation", "conjugacy_a", "conjugacy_b", "conjugacy_scale")

CLAIM = Claim(
    statement="The better a latent is identified, the less its plans cost: near the optimum if R² is near 1, and "
    "rising steadily as it falls.",
    source="When Does LeJEPA Learn a World Model?, Theorem 4 and the planning experiment",
    proven="for exact rotations only",
    measured="on Reacher, control cost follows R² monotonically across encoders (shown as a figure), and is that of "
    "the oracle where R² is highest; dynamics there are not learned",
)


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
    """Train or resume, then plan in the latents of a finished run."""
    record = train_job(settings["recipe"], folder)
    if record["status"] != "finished":
        return record
    recipe, objective = load_objective(Path(folder))
    return record | {"verdicts": _measure(recipe.world, world_encoder(recipe.world, objective), settings, recipe.seed)}


def run_observed(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """The control: plan in the observation, taken as the latent."""
    del folder
    world = from_plain(LatentWorld, settings["world"])
    return {"status": "finished", "verdicts": _measure(world, world_encoder(world, None), settings, settings["seed"])}


def _measure(world: LatentWorld, see: Encode, settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    rng, true = numpy_generator(seed, "planning cost"), true_system(world)
    rows = sample_steps(world, see, settings["rows"], rng)
    judged = certify_dynamics(
        rows.h, rows.u, rows.h_next, rows.z, truth=(true.a_dd, true.b_da), seed=seed, replicates=100
    )
    verdicts = {verdict.name: verdict for verdict in judged}
    found: dict[str, Estimate] = {}
    for name in DYNAMICS:
        one = verdicts[name]
        found[name] = Estimate(one.value, one.low, one.high, one.n)
    found |= {"r2": r2_of_state(rows.h, rows.z, seed)} | planning_costs(world, see, rows, settings["tasks"], rng)
    return as_verdicts(found, "of this latent")


def planning_costs(
    world: LatentWorld, see: Encode, rows: LatentSteps, tasks: int, rng: np.random.Generator
) -> dict[str, Estimate]:
    """Costs of each problem as multiples of the optimum."""
    dim, true = world.dim, true_system(world)
    starts, goals = rng.standard_normal((2, tasks, dim))
    even = Quadratic.isotropic(dim, dim, state=1.0, action=ACTION, final=1.0)
    spread = np.diag(np.geomspace(*UNEVEN, dim))
    uneven = Quadratic(spread, even.action_aa, spread)
    turn = procrustes(rows.z, rows.h).weight
    found = point_estimates({"slope_at_origin": _slope_error(see, turn)}, 1)
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


def _slope_error(see: Encode, turn: np.ndarray, step: float = 0.01) -> float:
    """‖QᵀJ − I‖_F / ‖I‖_F of the Jacobian J of z → h at the origin.

    R² is a mean over states, but feedback to one point depends on the slope there.
    """
    ends = step * np.eye(turn.shape[1])
    slope = (see(ends) - see(-ends)).T / (2 * step)
    return distance_from_identity(turn.T @ slope)


def _ratio(paid: np.ndarray, best: np.ndarray, rng: np.random.Generator) -> Estimate:
    """Σ paid / Σ best over tasks."""

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {"ratio": float(weights @ paid / (weights @ best))}

    return bootstrap(statistic, len(paid), rng, replicates=200)["ratio"]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if every identified latent plans within WITHIN of the optimum, and cost and 1 − R² rise together."""
    del scale
    finished = finished_only(results)
    good = [result for result in finished if result.value("r2") >= IDENTIFIED]
    ranks = {problem: _rank_with_error(finished, problem) for problem in JUDGED}
    worst = {problem: max((result.estimate(problem).high for result in good), default=np.nan) for problem in JUDGED}
    criteria = (
        Criterion(
            f"{len(good)} latents with R² ≥ {IDENTIFIED}: largest cost / optimum",
            "; ".join(f"{PROBLEMS[problem]} {worst[problem]:.3f}" for problem in JUDGED),
            f"≤ {1 + WITHIN}",
            bool(good) and all(_near(result, problem) for result in good for problem in JUDGED),
        ),
        Criterion(
            "rank correlation of cost and 1 − R²",
            "; ".join(f"{PROBLEMS[problem]} {cell(rank)}" for problem, rank in ranks.items()),
            f"≥ {MONOTONE}",
            all(rank.low >= MONOTONE for rank in ranks.values()),
        ),
    )
    sentence = f"No latent has R² ≥ {IDENTIFIED}."
    if good:
        sentence = f"Latents with R² ≥ {IDENTIFIED} cost up to {max(worst.values()):.3f} times the optimum."
    return Finding(
        outcome_of_criteria(criteria),
        sentence,
        criteria=criteria,
        verdicts=(
            *(_loss_verdict(good, problem) for problem in JUDGED),
            *(_rank_verdict(problem, rank) for problem, rank in ranks.items()),
        ),
        figures=(_figure(finished),),
        tables=(_table(results), _summary_table(finished, good)),
    )


def _near(result: Result, problem: str) -> bool:
    return result.estimate(problem).high <= 1 + WITHIN


def _rank_with_error(results: Sequence[Result], problem: str) -> Estimate:
    return spearman(*np.array([[1 - result.value("r2"), result.value(problem)] for result in results]).T)


def _summary_table(finished: Sequence[Result], good: Sequence[Result]) -> Table:
    over = [r.value("r2") for r in finished if not all(_near(r, problem) for problem in JUDGED)]
    slope = mean_and_range(good, "slope_at_origin")
    rows = [
        [f"highest R² of a latent more than {WITHIN:.0%} above the optimum", plain(max(over, default=np.nan))],
        [
            "identified latents: error of the slope at the origin",
            f"{plain(slope.low, '.2f')} to {plain(slope.high, '.2f')}",
        ],
    ]
    for problem in ("reach_conjugated", "reach_unconjugated"):
        median = float(np.median([r.value(problem) for r in good])) if good else np.nan
        rows.append([f"identified latents: median cost / optimum, {PROBLEMS[problem]}", plain(median)])
    return Table("Summary", ["quantity", "value"], rows)


def _loss_verdict(good: Sequence[Result], problem: str) -> Verdict:
    costs = [result.estimate(problem).high - 1 for result in good] or [np.nan]
    return Verdict.judge(
        f"loss_where_identified_{problem}",
        Estimate(float(np.median(costs)), min(costs), max(costs), len(good)),
        direction="lower",
        threshold=WITHIN,
        good="In identified latents plans are near the optimum (limits: range over latents).",
        bad="Some identified latent has worse plans, or no latent is identified (limits: range over latents).",
    )


def _rank_verdict(problem: str, rank: Estimate) -> Verdict:
    return Verdict.judge(
        f"cost_tracks_r2_{problem}",
        rank,
        direction="higher",
        threshold=MONOTONE,
        null=0.0,
        good="The less a latent is identified, the more its plans cost.",
        bad="It is not shown that the cost rises steadily as R² falls.",
    )


def _figure(results: Sequence[Result]) -> Curves:
    panels = []
    for problem, title in PROBLEMS.items():
        series = []
        for mixing in dict.fromkeys(r.at["mixing"] for r in results):
            for kind, is_observed in (("LeJEPA", False), ("observed", True)):
                chosen = [r for r in select(results, mixing=mixing) if (r.at["latent"] == OBSERVED) is is_observed]
                if chosen:
                    loss = [r.value(problem) - 1 for r in chosen]
                    series.append(Curve(f"{mixing}, {kind}", [1 - r.value("r2") for r in chosen], loss, points=True))
        panels.append(CurvePanel(series, title))
    return Curves(
        title="Loss of optimality against identification error, all latents",
        x_label="1 − held-out R²",
        y_label="cost / optimum − 1",
        log_x=True,
        log_y=True,
        panels=panels,
    )


def _table(results: Sequence[Result]) -> Table:
    columns = {
        "R²": "r2",
        "error of A": "conjugacy_a",
        "error of B": "conjugacy_b",
        "error of the slope at the origin": "slope_at_origin",
        **{f"cost, {title}": problem for problem, title in PROBLEMS.items()},
        "to a goal, doing nothing": "reach_idle",
    }
    rows = []
    for (mixing, latent), chosen in grouped(results, "mixing", "latent").items():
        finished = f"{sum(r.status == 'finished' for r in chosen)} of {len(chosen)}"
        rows.append([mixing, latent, finished, *(cell(mean_and_range(chosen, name)) for name in columns.values())])
    title = "Cost as a multiple of the optimum, mean over seeds [range]"
    return Table(title, ["mixing", "steps-λ", "finished", *columns], rows)


EXPERIMENT = Experiment("planning-cost", "Planning cost against identification", CLAIM, trials, conclude)
