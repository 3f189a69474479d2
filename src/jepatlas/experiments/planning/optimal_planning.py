"""Theorem 4: in coordinates that are a rotation of the state, the best plan is the best plan in the state.

The cost must be invariant under the rotation, or be conjugated by it. Plans must differ in two controls: a cost that
weighs directions unequally and is not conjugated, and coordinates that are linear in the state but no rotation. The
latent is h = M z, with dynamics fitted to steps in the latent. Actions are those of LQR, which is exact, and of a
search (MPPI, with the same noise in both) for the sequence that ends nearest to a goal. `planning-cost` tests trained
encoders, which are approximate rotations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.contracts import Cost
from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.linear_system import LinearSystem, fit_linear_system
from jepatlas.core.records import Estimate, Plan, Verdict
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.experiments.alignment.latent_pairs import random_chart
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Criterion, Outcome, as_verdicts, point_estimates
from jepatlas.experiments.engine.seed_tables import finished_only
from jepatlas.planning import ActionBox, LatentCost, LQRConfig, MPPIConfig, Quadratic, QuadraticCost
from jepatlas.worlds import LinearQuadratic
from jepatlas.worlds.random_matrices import semi_orthogonal

__all__ = ["EXPERIMENT", "run"]

SAME, DIFFERENT = 1e-6, 1e-2
KEPT, CONTROLS = ("invariant", "conjugated"), ("unconjugated", "sheared")
MEASURES = {"actions": "actions", "value": "value", "lost": "cost lost in truth"}
PROBLEMS = {"lqr": "LQR", "goal": "goal-reaching"}
CASES = {
    "invariant": "rotated, cost invariant",
    "conjugated": "rotated, cost conjugated",
    "unconjugated": "rotated, cost neither",
    "sheared": "not orthogonal, cost invariant",
}
STEPS = 2000  # used to fit the dynamics
FREE = 1e3  # limit of actions, never reached by LQR
UNEVEN = 5.0  # weights of directions range from 1 / UNEVEN to UNEVEN
SHEAR = 3.0  # condition number of the map that is not a rotation

CLAIM = Claim(
    statement="Planning in a latent that is a rotation of the state gives the same value and the same actions as "
    "planning in the state, if the cost is invariant under rotations.",
    source="When Does LeJEPA Learn a World Model?, Theorem 4",
    proven="for every finite horizon and every cost that is invariant under rotations of state and goal; for LQR the "
    "gain K becomes KQᵀ",
    assumed="that trajectories in the latent have the law of the rotated ones, an axiom in the Lean proof; and that "
    "the dynamics in the latent are known",
)


@dataclass(frozen=True)
class Sizes:
    dims: tuple[int, ...]
    seeds: int
    tasks: int
    horizon: int
    samples: int


SCALES = {
    "tiny": Sizes((2,), 1, 4, 6, 16),
    "small": Sizes((2, 4, 8, 16), 5, 50, 20, 256),
    "paper": Sizes((2, 4, 8, 16, 32, 64), 10, 200, 50, 1024),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    return [
        Trial(
            {"dim": dim, "seed": s},
            run,
            {"dim": dim, "seed": s, "tasks": plan.tasks, "horizon": plan.horizon, "samples": plan.samples},
        )
        for dim in plan.dims
        for s in range(seed, seed + plan.seeds)
    ]


@dataclass(frozen=True)
class Case:
    """Coordinates h = M z, and the weights of the cost in the latent and in the state."""

    chart: np.ndarray
    inside: Quadratic
    true: Quadratic


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Compare plans in the latent with plans in the state."""
    del folder
    dim, seed, tasks = settings["dim"], settings["seed"], settings["tasks"]
    world = LinearQuadratic(dim=dim, actions=dim // 2, seed=seed)
    rng = numpy_generator(seed, "optimal planning", dim)
    ends = {name: torch.tensor(rng.standard_normal((tasks, dim))) for name in ("start", "goal")}
    found = {}
    for name, case in _cases(dim, rng).items():
        for problem in PROBLEMS:
            latent = _fitted(world, case.chart, rng)
            gaps = _gaps(problem, (world.system, latent), case, ends, settings)
            found |= point_estimates({f"{problem}_{name}_{what}": gap for what, gap in gaps.items()}, tasks)
    return {
        "status": "finished",
        "verdicts": as_verdicts(found, "of plans in the latent, relative to those in the state", "lower"),
    }


def _cases(dim: int, rng: np.random.Generator) -> dict[str, Case]:
    turn, shear = semi_orthogonal(dim, dim, rng), random_chart(dim, SHEAR, rng)
    even = Quadratic.isotropic(dim, dim // 2, state=1.0, action=0.1, final=1.0)
    spread = np.diag(np.geomspace(1 / UNEVEN, UNEVEN, dim))
    uneven = Quadratic(spread, even.action_aa, spread)
    return {
        "invariant": Case(turn, even, even),
        "conjugated": Case(turn, uneven.conjugate(turn), uneven),
        "unconjugated": Case(turn, uneven, uneven),
        "sheared": Case(shear, even, even),
    }


def _gaps(
    problem: str,
    systems: tuple[LinearSystem, LinearSystem],
    case: Case,
    ends: Mapping[str, Tensor],
    settings: Mapping[str, Any],
) -> dict[str, float]:
    """Largest relative differences of actions and values, and the relative true cost lost by plans in the latent."""
    true_cost, inside_cost = (_cost(problem, *of) for of in zip(systems, (case.true, case.inside), strict=True))
    seen = {name: rows @ torch.tensor(case.chart.T) for name, rows in ends.items()}
    true = _plan(problem, true_cost, ends, settings)
    inside = _plan(problem, inside_cost, seen, settings)
    paid = true_cost(ends, inside.actions[:, None])[:, 0]
    return {
        "actions": _gap(inside.actions, true.actions),
        "value": _gap(inside.cost, true.cost),
        "lost": float(paid.sum() / true.cost.sum() - 1),
    }


def _fitted(world: LinearQuadratic, chart: np.ndarray, rng: np.random.Generator) -> LinearSystem:
    """The dynamics of h = M z, fitted to steps in h."""
    z, u = world.states(STEPS, rng), rng.standard_normal((STEPS, world.action_dim))
    return fit_linear_system(z @ chart.T, u, world.step(z, u) @ chart.T)


def _cost(problem: str, system: LinearSystem, weights: Quadratic) -> Cost:
    if problem == "lqr":
        return QuadraticCost(system, weights)
    root = torch.tensor(np.linalg.cholesky(weights.final_dd))

    def distance(h: Tensor, goal: Tensor) -> Tensor:
        return ((h - goal) @ root).norm(dim=-1)

    return LatentCost(system, distance)


def _plan(problem: str, cost: Cost, ends: Mapping[str, Tensor], settings: Mapping[str, Any]) -> Plan:
    horizon, actions = settings["horizon"], settings["dim"] // 2
    if problem == "lqr":
        planner: Any = LQRConfig(horizon).build(ActionBox.symmetric(FREE, actions))
    else:
        config = MPPIConfig(horizon, samples=settings["samples"], iterations=4)
        planner = config.build(ActionBox.symmetric(1.0, actions))
    return planner(cost, ends, torch_generator(settings["seed"], "plan"))


def _gap(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max() / other.square().mean().sqrt())


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if both criteria are met, and in part if the first one is."""
    del scale
    finished = finished_only(results)
    differences = {what: max(_values(finished, KEPT, what)) for what in ("actions", "value")}
    largest = max(differences.values())
    smallest = min(_values(finished, CONTROLS, "actions"))
    criteria = (
        Criterion(
            "invariant or conjugated cost: largest difference of actions; of values",
            f"{differences['actions']:.1e}; {differences['value']:.1e}",
            f"≤ {SAME:g}",
            largest <= SAME,
        ),
        Criterion(
            "controls: smallest difference of actions", f"{smallest:.2g}", f"≥ {DIFFERENT:g}", smallest >= DIFFERENT
        ),
    )
    outcome: Outcome = "does not hold"
    if criteria[0].met:
        outcome = "holds" if criteria[1].met else "holds in part"
    return Finding(
        outcome,
        f"Actions in the latent and in the state differ by at most {differences['actions']:.0e}, in the controls by at "
        f"least {smallest:.2g}.",
        criteria=criteria,
        verdicts=(_verdict(finished), _control_verdict(finished)),
        figures=(_figure(finished),),
        tables=(_table(results), _loss_table(finished)),
    )


def _values(results: Sequence[Result], cases: Sequence[str], what: str) -> list[float]:
    return [result.value(f"{problem}_{case}_{what}") for result in results for problem in PROBLEMS for case in cases]


def _median_and_range(values: Sequence[float]) -> Estimate:
    return Estimate(float(np.median(values)), min(values), max(values), len(values))


def _verdict(results: Sequence[Result]) -> Verdict:
    return Verdict.judge(
        "same_actions",
        _median_and_range(_values(results, KEPT, "actions")),
        direction="lower",
        threshold=SAME,
        null=float(np.median(_values(results, CONTROLS, "actions"))),
        good="Plans in the rotated latent equal the plans in the state (limits: range over worlds).",
        bad="Plans in the rotated latent differ from those in the state (limits: range over worlds).",
    )


def _control_verdict(results: Sequence[Result]) -> Verdict:
    return Verdict.judge(
        "controls_differ",
        _median_and_range(_values(results, CONTROLS, "actions")),
        direction="higher",
        threshold=DIFFERENT,
        good="Plans differ if the cost is not invariant (limits: range over worlds).",
        bad="Plans do not always differ if the cost is not invariant, so the control shows nothing.",
    )


def _figure(results: Sequence[Result]) -> Curves:
    dims = [result.at["dim"] for result in results]
    panels = []
    for problem, title in PROBLEMS.items():
        series = []
        for case, name in CASES.items():
            gaps = [max(result.value(f"{problem}_{case}_actions"), 1e-17) for result in results]
            series.append(Curve(name, dims, gaps, points=True))
        panels.append(CurvePanel(series, title))
    return Curves(
        title="Plans in the latent against plans in the state, all worlds",
        x_label="dimensions",
        y_label="largest difference of an action, relative",
        log_x=True,
        log_y=True,
        panels=panels,
    )


def _loss_table(results: Sequence[Result]) -> Table:
    rows = []
    for case in CONTROLS:
        rows.append([CASES[case], f"{np.mean([result.value(f'lqr_{case}_lost') for result in results]):.1%}"])
    return Table("Mean true cost that plans of LQR lose in the controls", ["latent", "cost lost"], rows)


def _table(results: Sequence[Result]) -> Table:
    rows = []
    for result in results:
        for problem, title in PROBLEMS.items():
            for case, name in CASES.items():
                cells = [f"{result.value(f'{problem}_{case}_{what}'):.1e}" for what in MEASURES]
                rows.append([result.at["dim"], result.at["seed"], result.status, title, name, *cells])
    columns = ["dimensions", "seed", "status", "problem", "latent", *MEASURES.values()]
    return Table("Largest relative differences, and cost lost", columns, rows)


EXPERIMENT = Experiment("optimal-planning", "Plans in a rotated latent", CLAIM, trials, conclude)
