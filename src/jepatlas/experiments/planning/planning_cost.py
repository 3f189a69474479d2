"""Cost of plans in a trained latent, against its distance from a rotation of the state.

Theorem 4 (`optimal-planning`) says that nothing is lost if h = Qz. Encoders are trained for different times and with
different weights of SIGReg, so that R² varies; the observation itself, taken as the latent, is the other extreme.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import spearman
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import recipe_for
from jepatlas.experiments.engine.rules import Criterion, combined, count_met, decide
from jepatlas.experiments.engine.seed_tables import (
    cell,
    finished_only,
    grouped,
    mean_and_range,
    mean_cells,
    median_and_range_of,
    plain,
    select,
)
from jepatlas.experiments.planning.closed_loop_costs import PROBLEMS, run, run_observed
from jepatlas.worlds import AnyMixing, Coupling, LatentWorld, OrnsteinUhlenbeck, Spiral

__all__ = ["EXPERIMENT"]

IDENTIFIED = 0.98  # least R² of an identified latent
WITHIN = 0.05  # largest relative loss of a plan near the optimum
MONOTONE = 0.8  # rank correlation required of cost and 1 − R²
JUDGED = ("regulate", "reach")
OBSERVED = "observed"
MIXINGS: tuple[AnyMixing, ...] = (Spiral(), Coupling(seed=1))

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
    sizes: dict[str, int]


WEIGHT = 0.01
SCALES = {
    "tiny": Plan((5, 30), (), 30, 1, {"rows": 500, "tasks": 20}),
    "small": Plan((200, 500, 1000, 2000, 6000), (0.001, 0.1), 2000, 3, {"rows": 20_000, "tasks": 500}),
    "paper": Plan((500, 1000, 2000, 5000, 20_000), (1e-4, 1e-3, 0.1), 20_000, 5, {"rows": 100_000, "tasks": 2000}),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    law = OrnsteinUhlenbeck(dim=2, rho=0.95)
    arms = [*((steps, WEIGHT) for steps in plan.steps), *((plan.middle, weight) for weight in plan.weights)]
    every = []
    for mixing, s in product(MIXINGS, range(seed, seed + plan.seeds)):
        world = LatentWorld(law, mixing)
        at = {"mixing": mixing.kind, "seed": s}
        for steps, weight in arms:
            recipe = recipe_for(scale, world, steps=steps, seed=s, weight=weight)
            every.append(Trial(at | {"latent": f"{steps}-{weight:g}"}, run, {"recipe": to_plain(recipe)} | plan.sizes))
        every.append(Trial(at | {"latent": OBSERVED}, run_observed, {"world": to_plain(world), "seed": s} | plan.sizes))
    return every


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """Two parts: identified latents plan within WITHIN of the optimum, and cost and 1 − R² rise together.

    Each number decides by its interval. The first part holds if all identified latents are near the optimum in both
    problems, and in part if some are.
    """
    del scale
    ended = finished_only(results)
    good = [result for result in ended if result.value("r2") >= IDENTIFIED]
    ranks = {problem: _rank_with_error(ended, problem) for problem in JUDGED}
    worst = {problem: max((result.estimate(problem).high for result in good), default=np.nan) for problem in JUDGED}
    largest = "; ".join(f"{PROBLEMS[problem]} {cost:.3f}" for problem, cost in worst.items())
    correlations = "; ".join(f"{PROBLEMS[problem]} {cell(rank)}" for problem, rank in ranks.items())
    near = [all(_near(result, problem) for problem in JUDGED) for result in good]
    costs = [result.estimate(problem) for result, problem in product(good, JUDGED)]
    near_optimum = decide(costs, threshold=1 + WITHIN, direction="lower")
    rising = decide(list(ranks.values()), threshold=MONOTONE)
    sentence = f"No latent has R² ≥ {IDENTIFIED}."
    if good:
        sentence = (
            f"{count_met(near)} latents with R² ≥ {IDENTIFIED} plan within {WITHIN:.0%} of the optimum; "
            f"the worst costs {max(worst.values()):.3f} times the optimum."
        )
    monotone = all(rank.low > MONOTONE for rank in ranks.values())
    return Finding(
        combined([near_optimum, rising]),
        sentence,
        criteria=(
            Criterion(
                f"latents with R² ≥ {IDENTIFIED} within {WITHIN:.0%} of the optimum",
                f"{count_met(near)}; largest cost: {largest}",
                "all",
                bool(good) and all(near),
            ),
            Criterion("rank correlation of cost and 1 − R²", correlations, f"> {MONOTONE}", monotone),
        ),
        verdicts=(
            *(_loss_verdict(good, problem) for problem in JUDGED),
            *(_rank_verdict(problem, rank) for problem, rank in ranks.items()),
        ),
        figures=(_figure(ended),),
        tables=(_table(results), _summary_table(ended, good)),
    )


def _near(result: Result, problem: str) -> bool:
    return result.estimate(problem).high <= 1 + WITHIN


def _rank_with_error(results: Sequence[Result], problem: str) -> Estimate:
    errors = np.array([1 - result.value("r2") for result in results])
    return spearman(errors, np.array([result.value(problem) for result in results]))


def _summary_table(ended: Sequence[Result], good: Sequence[Result]) -> Table:
    over = [r.value("r2") for r in ended if not all(_near(r, problem) for problem in JUDGED)]
    slope = mean_and_range(good, "slope_at_origin")
    slopes = f"{plain(slope.low, '.2f')} to {plain(slope.high, '.2f')}"
    rows = [
        [f"highest R² of a latent more than {WITHIN:.0%} above the optimum", plain(max(over, default=np.nan))],
        ["identified latents: error of the slope at the origin", slopes],
    ]
    for problem in ("reach_conjugated", "reach_unconjugated"):
        median = float(np.median([r.value(problem) for r in good])) if good else np.nan
        rows.append([f"identified latents: median cost / optimum, {PROBLEMS[problem]}", plain(median)])
    return Table("Summary", ["quantity", "value"], rows)


def _loss_verdict(good: Sequence[Result], problem: str) -> Verdict:
    costs = [result.estimate(problem).high - 1 for result in good]
    return Verdict.judge(
        f"loss_where_identified_{problem}",
        median_and_range_of(costs) if good else Estimate.undefined(0),
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
        for (mixing,), runs in grouped(results, "mixing").items():
            trained = [result for result in runs if result.at["latent"] != OBSERVED]
            observed = select(runs, latent=OBSERVED)
            for name, chosen in (("LeJEPA", trained), ("observed", observed)):
                if chosen:
                    errors = [1 - result.value("r2") for result in chosen]
                    losses = [result.value(problem) - 1 for result in chosen]
                    series.append(Curve(f"{mixing}, {name}", errors, losses, points=True))
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
        finished = count_met([result.status == "finished" for result in chosen])
        rows.append([mixing, latent, finished, *mean_cells(chosen, columns.values())])
    title = "Cost as a multiple of the optimum, mean over seeds [range]"
    return Table(title, ["mixing", "steps-λ", "finished", *columns], rows)


EXPERIMENT = Experiment("planning-cost", "Planning cost against identification", CLAIM, trials, conclude)
