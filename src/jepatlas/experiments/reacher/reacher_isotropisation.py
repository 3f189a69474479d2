"""Reacher from pixels: the dose–response curve from goal-directed trajectories toward isotropic exploration.

Pairs of a scripted controller's frames are drawn with weights that bring the true angles toward an isotropic Gaussian
(the best case: an agent of its own would have to estimate them), and LeJEPA learns from what is drawn. It is scored on
rows without weights: held-out episodes of the controller, and Gaussian poses. Frames are next to each other, or so far
apart that their correlation is that of the Gaussian motion beside: weights change where the arm is, not how it moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_range
from jepatlas.experiments.reacher.reacher_agents import BUDGETS, reacher_recipe
from jepatlas.experiments.reacher.reacher_exploration import APART, gaussian_trial
from jepatlas.experiments.reacher.reacher_isotropisation_runs import run
from jepatlas.experiments.reacher.reacher_probes import PLACES
from jepatlas.worlds import ScriptedMotion

__all__ = ["EXPERIMENT"]

DOSES = (0.0, 0.25, 0.5, 0.75, 1.0)
STRIDES = {1: "next to each other", APART: f"{APART} apart"}
SCORES = {"own": "own episodes", "gaussian": "Gaussian poses"}
GAIN = 0.05
SCALES = {"tiny": (1, (0.0, 1.0)), "small": (3, DOSES), "paper": (5, DOSES)}

CLAIM = Claim(
    statement="Isotropising the goal-directed trajectories of an arm brings back a part of what isotropic exploration "
    "identifies.",
    source="asked for by readers of When Does LeJEPA Learn a World Model?, which advises isotropic exploration and "
    "measures the two ends only",
    measured="the two ends only: R² .95 and at most .50",
)

Place = tuple[int, str]  # stride, and where it is scored


def trials(scale: Scale, seed: int) -> list[Trial]:
    """With the Gaussian motion as what there is to gain: it is a trial of `reacher-exploration`, too."""
    seeds, doses = SCALES[scale]
    every = []
    for s in range(seed, seed + seeds):
        for stride, dose in product(STRIDES, doses):
            recipe = reacher_recipe(scale, s, ScriptedMotion(), stride=stride)
            settings = {"recipe": to_plain(recipe), "poses": BUDGETS[scale].poses, "dose": dose}
            every.append(Trial({"stride": stride, "dose": dose, "seed": s}, run, settings))
        every.append(gaussian_trial(scale, s))
    return every


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """Runs that were stopped count as R² 0."""
    doses, places = SCALES[scale][1], list(product(STRIDES, PLACES))
    curves = {
        (k, p): [mean_and_range(_dosed(results, k, dose), _r2(p), stopped=0.0) for dose in doses] for k, p in places
    }
    gains = {place: _gain(results, doses, place) for place in places}
    ends = {p: mean_and_range([r for r in results if "dose" not in r.at], _r2(p), stopped=0.0) for p in PLACES}
    helped = [place for place in places if gains[place].value >= GAIN]
    left = {k: mean_and_range(_dosed(results, k, doses[-1]), "share").value for k in STRIDES}
    return Finding(
        "holds" if len(helped) == len(places) else "holds in part" if helped else "does not hold",
        f"Mean R² of the angles, stopped runs as 0, at doses {', '.join(f'{dose:g}' for dose in doses)}: "
        + "; ".join(f"{_title(place)} {', '.join(f'{e.value:z.3f}' for e in found)}" for place, found in curves.items())
        + ". From no dose to the full one, seed by seed: "
        + "; ".join(f"{_title(p)} {cell(gain)}{_closed(curves[p], ends[p[1]])}" for p, gain in gains.items())
        + f". A gain of {GAIN} was asked for. Gaussian exploration at ρ = .9 has "
        + " and ".join(f"{ends[p].value:z.3f} on {SCORES[p]}" for p in PLACES)
        + f". The full dose leaves {' and '.join(f'{100 * left[k]:.0f}%' for k in STRIDES)} of the pairs.",
        short=f"gain ≥ {GAIN} in {len(helped)} of {len(places)} settings",
        verdicts=tuple(_verdict(place, gain) for place, gain in gains.items()),
        figures=(_figure(doses, curves, ends),),
        tables=(_table(results),),
    )


def _r2(place: str) -> str:
    return f"angles_{place}_{place}"


def _title(place: Place) -> str:
    return f"frames {STRIDES[place[0]]}, {SCORES[place[1]]}"


def _dosed(results: Sequence[Result], stride: int, dose: float) -> list[Result]:
    return [r for r in results if (r.at.get("stride"), r.at.get("dose")) == (stride, dose)]


def _gain(results: Sequence[Result], doses: Sequence[float], place: Place) -> Estimate:
    """From the first dose to the last with the same episodes; limits: the extremes over seeds."""
    ends, name = (_dosed(results, place[0], doses[end]) for end in (0, -1)), _r2(place[1])
    first, last = ({r.at["seed"]: mean_and_range([r], name, stopped=0.0).value for r in runs} for runs in ends)
    gains = np.array([last[seed] - first[seed] for seed in first if seed in last])
    gains = gains[np.isfinite(gains)]
    if not len(gains):
        return Estimate(np.nan, np.nan, np.nan, 0)
    return Estimate(float(gains.mean()), float(gains.min()), float(gains.max()), len(gains))


def _closed(found: Sequence[Estimate], end: Estimate) -> str:
    """The share of the way to what the Gaussian motion gives, where something was gained on it."""
    way, gone = end.value - found[0].value, found[-1].value - found[0].value
    return f" ({gone / way:.0%} of the way to Gaussian exploration)" if way > 0 and gone > 0 else ""


def _verdict(place: Place, gain: Estimate) -> Verdict:
    return Verdict.judge(
        f"gain_{place[1]}_stride_{place[0]}",
        gain,
        direction="higher",
        threshold=GAIN,
        null=0.0,
        good=f"Isotropising brings recovery back: {_title(place)} (limits: the extremes over seeds).",
        bad=f"Isotropising does not gain that much for every seed: {_title(place)} (limits: the extremes over seeds).",
    )


def _figure(
    doses: Sequence[float], curves: Mapping[Place, list[Estimate]], ends: Mapping[str, Estimate]
) -> dict[str, Any]:
    panels = [
        {
            "title": f"scored on {SCORES[p]}",
            "series": [
                *(curve(f"frames {title}", doses, curves[k, p]) for k, title in STRIDES.items()),
                {"name": "Gaussian exploration", "x": list(doses), "y": [ends[p].value] * len(doses), "dash": True},
            ],
        }
        for p in PLACES
    ]
    return {
        "kind": "curves",
        "title": "Recovery against the dose",
        "x_label": "dose",
        "y_label": "held-out R²",
        "panels": panels,
        "note": "Bands: the extremes over seeds.",
    }


def _table(results: Sequence[Result]) -> dict[str, Any]:
    rows = [
        [
            r.at.get("stride", "Gaussian motion"),
            r.at.get("dose", "–"),
            r.at["seed"],
            r.status,
            *(cell(r.estimate(_r2(p))) for p in PLACES),
            cell(r.estimate("circle_own_own")),
            cell(r.estimate("degree_1")),
            f"{r.value('correlation'):.3f}",
            f"{r.value('share'):.2f}",
            f"{r.value('distance'):.3f}",
        ]
        for r in results
    ]
    columns = [
        "stride",
        "dose",
        "seed",
        "status",
        *(f"R², {SCORES[p]}" for p in PLACES),
        "R² of sines and cosines, own episodes",
        "linear share of variance",
        "correlation of a pair",
        "effective share of the pairs",
        "distance from the Gaussian",
    ]
    return {"title": "Every run, with 95% intervals", "columns": columns, "rows": rows}


EXPERIMENT = Experiment(
    "reacher-isotropisation", "Reacher from pixels: from goal-directed to isotropic", CLAIM, trials, conclude
)
