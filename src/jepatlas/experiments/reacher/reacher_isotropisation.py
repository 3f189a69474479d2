"""Reacher from pixels: a dose–response curve from goal-directed trajectories toward isotropic exploration.

Pairs of a scripted controller's frames are drawn with weights that bring the true angles toward an isotropic Gaussian
(the best case; an agent would have to estimate them), and LeJEPA is trained on these. It is scored without weights, on
held-out episodes of the controller and on Gaussian poses. Frames are consecutive, or so far apart that their
correlation is that of the Gaussian motion: weights change where the arm is, but not how it moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import CurvePanel, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial
from jepatlas.experiments.engine.rules import (
    Criterion,
    as_verdicts,
    count_met,
    exact_verdicts,
    outcome_of_criteria,
    point_estimates,
)
from jepatlas.experiments.engine.run_tables import run_table
from jepatlas.experiments.engine.seed_tables import cell, curve, horizontal, mean_and_range, mean_and_range_of
from jepatlas.experiments.reacher.reacher_encoders import BUDGETS, probe_model, reacher_of, reacher_recipe, train_model
from jepatlas.experiments.reacher.reacher_exploration import APART, gaussian_trial
from jepatlas.experiments.reacher.reacher_probes import PLACES
from jepatlas.experiments.reacher.weighted_pairs import WeightedPairs, isotropised, training_windows
from jepatlas.identifiability import Isotropised
from jepatlas.recipes import WorldModelRecipe, gather_episodes
from jepatlas.worlds import ScriptedMotion

__all__ = ["EXPERIMENT", "run"]

DOSES = (0.0, 0.25, 0.5, 0.75, 1.0)
STRIDES = {1: "next to each other", APART: f"{APART} apart"}
SCORES = {"own": "own episodes", "gaussian": "Gaussian poses"}
GAIN = 0.05
SCALES = {"tiny": (1, (0.0, 1.0)), "small": (3, DOSES), "paper": (5, DOSES)}
"""Seeds and doses."""

CLAIM = Claim(
    statement="Isotropising the goal-directed trajectories of an arm recovers a part of what isotropic exploration "
    "identifies.",
    source="When Does LeJEPA Learn a World Model?, asked for by its readers; the paper advises isotropic exploration "
    "and measures only the two ends",
    measured="the two ends only: R² .95 and at most .50",
)

Place = tuple[int, str]  # stride, and distribution that is scored


def trials(scale: Scale, seed: int) -> list[Trial]:
    """The Gaussian motion gives the upper end; its trials are shared with `reacher-exploration`."""
    seeds, doses = SCALES[scale]
    trials = []
    for s in range(seed, seed + seeds):
        for stride, dose in product(STRIDES, doses):
            recipe = reacher_recipe(scale, s, ScriptedMotion(), stride=stride)
            settings = {"recipe": to_plain(recipe), "poses": BUDGETS[scale].poses, "dose": dose}
            trials.append(Trial({"stride": stride, "dose": dose, "seed": s}, run, settings))
        trials.append(gaussian_trial(scale, s))
    return trials


def run(settings: Plain, folder: str) -> Plain:
    recipe = from_plain(WorldModelRecipe, settings["recipe"])
    with reacher_of(recipe):
        data = gather_episodes(recipe.source, recipe.seed)
        windows = training_windows(recipe, data)
        found = isotropised(windows, settings["dose"])
        record, model = train_model(recipe, Path(folder), data, WeightedPairs(windows, found.weights))
        if model is None:
            return record
        return record | {"verdicts": probe_model(model, settings["poses"]) + _weight_measures(found)}


def _weight_measures(found: Isotropised) -> list[Plain]:
    n = len(found.weights)
    share = exact_verdicts({"share": found.ess / n}, n, "effective share of the pairs")
    return share + as_verdicts(point_estimates({"distance": found.distance}, n), "from the Gaussian", "lower")


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """Runs that were stopped count as R² = 0."""
    _, doses = SCALES[scale]
    places = list(product(STRIDES, PLACES))
    curves: dict[Place, list[Estimate]] = {}
    for stride, place in places:
        runs = [_dosed(results, stride, dose) for dose in doses]
        curves[stride, place] = [mean_and_range(found, _r2(place), stopped=0.0) for found in runs]
    gains = {place: _gain(results, doses, place) for place in places}
    gaussian = [result for result in results if "dose" not in result.at]
    ends = {place: mean_and_range(gaussian, _r2(place), stopped=0.0) for place in PLACES}
    criteria = []
    for place, gain in gains.items():
        criteria.append(Criterion(f"gain of R², {_title(place)}", cell(gain), f"≥ {GAIN}", gain.value >= GAIN))
    return Finding(
        outcome_of_criteria(criteria),
        f"R² gains at least {GAIN} in {count_met([criterion.met for criterion in criteria])} settings.",
        criteria=tuple(criteria),
        verdicts=tuple(_verdict(place, gain) for place, gain in gains.items()),
        figures=(_figure(doses, curves, ends),),
        tables=(_table(results), _curve_table(results, doses, curves, ends)),
    )


def _r2(place: str) -> str:
    return f"angles_{place}_{place}"


def _title(place: Place) -> str:
    return f"frames {STRIDES[place[0]]}, {SCORES[place[1]]}"


def _dosed(results: Sequence[Result], stride: int, dose: float) -> list[Result]:
    return [r for r in results if (r.at.get("stride"), r.at.get("dose")) == (stride, dose)]


def _gain(results: Sequence[Result], doses: Sequence[float], place: Place) -> Estimate:
    """Gain from the first dose to the last, paired by seed; limits: range over seeds."""
    stride = place[0]
    name = _r2(place[1])
    first = _r2_by_seed(_dosed(results, stride, doses[0]), name)
    last = _r2_by_seed(_dosed(results, stride, doses[-1]), name)
    gains = [last[seed] - first[seed] for seed in first if seed in last]
    finite = [gain for gain in gains if np.isfinite(gain)]
    return mean_and_range_of(finite) if finite else Estimate.undefined(0)


def _r2_by_seed(runs: Sequence[Result], name: str) -> dict[int, float]:
    return {run.at["seed"]: mean_and_range([run], name, stopped=0.0).value for run in runs}


def _verdict(place: Place, gain: Estimate) -> Verdict:
    return Verdict.judge(
        f"gain_{place[1]}_stride_{place[0]}",
        gain,
        direction="higher",
        threshold=GAIN,
        null=0.0,
        good=f"Isotropising improves recovery: {_title(place)} (limits: range over seeds).",
        bad=f"Isotropising does not gain that much at every seed: {_title(place)} (limits: range over seeds).",
    )


def _figure(doses: Sequence[float], curves: Mapping[Place, list[Estimate]], ends: Mapping[str, Estimate]) -> Curves:
    panels = []
    for place in PLACES:
        series = [curve(f"frames {title}", doses, curves[stride, place]) for stride, title in STRIDES.items()]
        series.append(horizontal("Gaussian exploration", doses, ends[place].value))
        panels.append(CurvePanel(series, f"scored on {SCORES[place]}"))
    return Curves(
        title="Recovery against the dose",
        x_label="dose",
        y_label="held-out R²",
        panels=panels,
        note="Bands: range over seeds.",
    )


def _curve_table(
    results: Sequence[Result],
    doses: Sequence[float],
    curves: Mapping[Place, list[Estimate]],
    ends: Mapping[str, Estimate],
) -> Table:
    rows = []
    for (stride, place), found in curves.items():
        means = [f"{one.value:z.3f}" for one in found]
        share = mean_and_range(_dosed(results, stride, doses[-1]), "share").value
        rows.append([_title((stride, place)), *means, f"{ends[place].value:z.3f}", f"{100 * share:.0f}%"])
    columns = ["setting", *(f"dose {dose:g}" for dose in doses), "Gaussian exploration", "pairs left at the full dose"]
    return Table("Mean R² of the angles over seeds, stopped runs as 0", columns, rows)


def _table(results: Sequence[Result]) -> Table:
    places = {
        "stride": lambda result: result.at.get("stride", "Gaussian motion"),
        "dose": lambda result: result.at.get("dose", "–"),
        "seed": "seed",
    }
    measured = {
        **{f"R², {SCORES[place]}": _r2(place) for place in PLACES},
        "R² of sines and cosines, own episodes": "circle_own_own",
        "linear share of variance": "degree_1",
        "correlation of a pair": lambda result: f"{result.value('correlation'):.3f}",
        "effective share of the pairs": lambda result: f"{result.value('share'):.2f}",
        "distance from the Gaussian": lambda result: f"{result.value('distance'):.3f}",
    }
    return run_table("All runs, with 95% intervals", results, places, measured)


EXPERIMENT = Experiment(
    "reacher-isotropisation", "Reacher from pixels: from goal-directed to isotropic", CLAIM, trials, conclude
)
