"""Theorem 4: in coordinates that are a rotation of the state, the best plan is the best plan in the state.

The cost must be invariant under the rotation, or be conjugated by it. Plans must differ in two controls: a cost that
weighs directions unequally and is not conjugated, and coordinates that are linear in the state but no rotation.
`planning-cost` tests trained encoders, which are approximate rotations.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import torch

from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Criterion, as_verdicts, outcome_in_stages
from jepatlas.experiments.engine.seed_tables import finished_only, median_and_range_of
from jepatlas.experiments.planning.linear_coordinates import coordinates, fitted_system, gaps
from jepatlas.worlds import LinearQuadratic

__all__ = ["EXPERIMENT", "run"]

SAME = 1e-6  # largest relative difference of equal plans
DIFFERENT = 1e-2  # least relative difference of actions in the controls
KEPT = ("invariant", "conjugated")
CONTROLS = ("unconjugated", "sheared")
MEASURES = {"actions": "actions", "value": "value", "lost": "cost lost in truth"}
PROBLEMS = {"lqr": "LQR", "goal": "goal-reaching"}
CASES = {
    "invariant": "rotated, cost invariant",
    "conjugated": "rotated, cost conjugated",
    "unconjugated": "rotated, cost neither",
    "sheared": "not orthogonal, cost invariant",
}

CLAIM = Claim(
    statement="Planning in a latent that is a rotation of the state gives the same value and the same actions as "
    "planning in the state, if the cost is invariant under rotations.",
    source="When Does LeJEPA Learn a World Model?, Theorem 4",
    proven="for every finite horizon and every cost that is invariant under rotations of state and goal; for LQR the "
    "gain K becomes KQᵀ",
    assumed="that trajectories in the latent have the law of the rotated ones, an axiom in the Lean proof; and that "
    "the dynamics in the latent are known",
)


SCALES = {
    "tiny": ((2,), 1, {"tasks": 4, "horizon": 6, "samples": 16}),
    "small": ((2, 4, 8, 16), 5, {"tasks": 50, "horizon": 20, "samples": 256}),
    "paper": ((2, 4, 8, 16, 32, 64), 10, {"tasks": 200, "horizon": 50, "samples": 1024}),
}
"""Dimensions, number of seeds, and settings of a trial."""


def trials(scale: Scale, seed: int) -> list[Trial]:
    dims, seeds, settings = SCALES[scale]
    return [Trial(at, run, at | settings) for at in grid(dim=dims, seed=range(seed, seed + seeds))]


def run(settings: Plain, folder: str) -> Plain:
    """Compare plans in the latent with plans in the state."""
    del folder
    dim = settings["dim"]
    world = LinearQuadratic(dim=dim, actions=dim // 2, seed=settings["seed"])
    rng = numpy_generator(settings["seed"], "optimal planning", dim)
    ends = {name: torch.tensor(rng.standard_normal((settings["tasks"], dim))) for name in ("start", "goal")}
    found = {}
    for (name, case), problem in product(coordinates(dim, rng).items(), PROBLEMS):
        latent = fitted_system(world, case.chart, rng)
        for what, gap in gaps(problem, (world.system, latent), case, ends, settings).items():
            found[f"{problem}_{name}_{what}"] = Estimate.exact(gap, settings["tasks"])
    meaning = "of plans in the latent, relative to those in the state"
    return {"status": "finished", "verdicts": as_verdicts(found, meaning, "lower")}


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if both criteria are met, and in part if the first one is."""
    del scale
    ended = finished_only(results)
    actions = max(_values(ended, KEPT, "actions"))
    values = max(_values(ended, KEPT, "value"))
    smallest = min(_values(ended, CONTROLS, "actions"))
    equal = max(actions, values) <= SAME
    different = smallest >= DIFFERENT
    return Finding(
        outcome_in_stages(equal, different),
        f"Actions in the latent and in the state differ by at most {actions:.0e}, in the controls by at least "
        f"{smallest:.2g}.",
        criteria=(
            Criterion(
                "invariant or conjugated cost: largest difference of actions; of values",
                f"{actions:.1e}; {values:.1e}",
                f"≤ {SAME:g}",
                equal,
            ),
            Criterion("controls: smallest difference of actions", f"{smallest:.2g}", f"≥ {DIFFERENT:g}", different),
        ),
        verdicts=(_verdict(ended), _control_verdict(ended)),
        figures=(_figure(ended),),
        tables=(_table(results), _loss_table(ended)),
    )


def _values(results: Sequence[Result], cases: Sequence[str], what: str) -> list[float]:
    return [result.value(f"{problem}_{case}_{what}") for result in results for problem in PROBLEMS for case in cases]


def _verdict(results: Sequence[Result]) -> Verdict:
    return Verdict.judge(
        "same_actions",
        median_and_range_of(_values(results, KEPT, "actions")),
        direction="lower",
        threshold=SAME,
        null=float(np.median(_values(results, CONTROLS, "actions"))),
        good="Plans in the rotated latent equal the plans in the state (limits: range over worlds).",
        bad="Plans in the rotated latent differ from those in the state (limits: range over worlds).",
    )


def _control_verdict(results: Sequence[Result]) -> Verdict:
    return Verdict.judge(
        "controls_differ",
        median_and_range_of(_values(results, CONTROLS, "actions")),
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
    for result, (problem, title), (case, name) in product(results, PROBLEMS.items(), CASES.items()):
        cells = [f"{result.value(f'{problem}_{case}_{what}'):.1e}" for what in MEASURES]
        rows.append([result.at["dim"], result.at["seed"], result.status, title, name, *cells])
    columns = ["dimensions", "seed", "status", "problem", "latent", *MEASURES.values()]
    return Table("Largest relative differences, and cost lost", columns, rows)


EXPERIMENT = Experiment("optimal-planning", "Plans in a rotated latent", CLAIM, trials, conclude)
