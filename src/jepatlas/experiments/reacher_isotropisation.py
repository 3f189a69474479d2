"""Reacher from pixels: the dose–response curve from goal-directed trajectories toward isotropic exploration.

Pairs of a scripted controller's frames are drawn with weights that bring the true angles toward an isotropic Gaussian
(the best case: an agent of its own would have to estimate them), and LeJEPA learns from what is drawn. Scored is on
rows that were not weighted: held-out episodes of the controller, and Gaussian poses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.base.config import to_plain
from jepatlas.base.records import Estimate, Verdict
from jepatlas.experiments.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.reacher_agents import BUDGETS, reacher_recipe
from jepatlas.experiments.reacher_exploration import gaussian_trial
from jepatlas.experiments.reacher_isotropisation_runs import run
from jepatlas.experiments.reacher_probes import PLACES
from jepatlas.experiments.tables import cell, curve, over_seeds
from jepatlas.worlds import ScriptedMotion

__all__ = ["EXPERIMENT"]

DOSES = (0.0, 0.25, 0.5, 0.75, 1.0)
GAIN = 0.05
SCALES = {"tiny": (1, (0.0, 1.0)), "small": (3, DOSES), "paper": (5, DOSES)}
SCORES = {"own": "its own held-out episodes", "gaussian": "Gaussian poses"}

CLAIM = Claim(
    statement="Isotropising goal-directed trajectories of a real arm brings back a part of what isotropic exploration "
    "identifies.",
    source="asked for by readers of When Does LeJEPA Learn a World Model?, which advises isotropic exploration and "
    "measures the two ends only",
    measured="the two ends only: R² .95 and at most .50",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    """With the Gaussian motion as what there is to gain: it is a trial of `reacher-exploration`, too."""
    seeds, doses = SCALES[scale]
    every = []
    for s in range(seed, seed + seeds):
        settings = {"recipe": to_plain(reacher_recipe(scale, s, ScriptedMotion())), "poses": BUDGETS[scale].poses}
        every += [Trial({"dose": dose, "seed": s}, run, settings | {"dose": dose}) for dose in doses]
        every.append(gaussian_trial(scale, s))
    return every


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    doses = SCALES[scale][1]
    curves = {place: [over_seeds(_dosed(results, dose), _r2(place)) for dose in doses] for place in PLACES}
    gains = {place: _gain(results, doses, place) for place in PLACES}
    ends = {place: over_seeds([r for r in results if "dose" not in r.at], _r2(place)) for place in PLACES}
    helped = [place for place in PLACES if gains[place].value >= GAIN]
    left = over_seeds(_dosed(results, doses[-1]), "share").value
    return Finding(
        "holds" if len(helped) == len(PLACES) else "holds in part" if helped else "does not hold",
        f"Mean R² of the angles at doses {', '.join(f'{dose:g}' for dose in doses)}: "
        + "; ".join(f"on {SCORES[place]} {', '.join(f'{e.value:.3f}' for e in curves[place])}" for place in PLACES)
        + f". From dose {doses[0]:g} to {doses[-1]:g}, seed by seed: "
        + "; ".join(f"{cell(gains[p])} on {SCORES[p]} ({_closed(curves[p], ends[p])})" for p in PLACES)
        + f". A gain of {GAIN} was asked for. The full dose leaves {100 * left:.0f}% of the pairs.",
        short=", ".join(f"{curves[p][0].value:.2f} → {curves[p][-1].value:.2f} on {p}" for p in PLACES) + " poses",
        verdicts=tuple(_verdict(place, gains[place]) for place in PLACES),
        figures=(_figure(doses, curves, ends),),
        tables=(_table(results),),
    )  # fmt: skip


def _r2(place: str) -> str:
    return f"angles_{place}_{place}"


def _dosed(results: Sequence[Result], dose: float) -> list[Result]:
    return [r for r in results if r.at.get("dose") == dose]


def _gain(results: Sequence[Result], doses: Sequence[float], place: str) -> Estimate:
    """From the first dose to the last with the same episodes; limits: the extremes over seeds."""
    first, last = ({r.at["seed"]: r.value(_r2(place)) for r in _dosed(results, doses[end])} for end in (0, -1))
    gains = np.array([last[seed] - first[seed] for seed in first if seed in last])
    gains = gains[np.isfinite(gains)]
    if not len(gains):
        return Estimate(np.nan, np.nan, np.nan, 0)
    return Estimate(float(gains.mean()), float(gains.min()), float(gains.max()), len(gains))


def _closed(found: Sequence[Estimate], end: Estimate) -> str:
    """The share of the way to what the Gaussian motion gives."""
    way = end.value - found[0].value
    share = f"{(found[-1].value - found[0].value) / way:.0%} of the way" if way > 0 else "no way"
    return f"{share} to the {end.value:.3f} of Gaussian exploration"


def _verdict(place: str, gain: Estimate) -> Verdict:
    return Verdict.judge(
        f"gain_{place}", gain, direction="higher", threshold=GAIN, null=0.0,
        good=f"Isotropising brings recovery back, on {SCORES[place]} (limits: the extremes over seeds).",
        bad=f"Isotropising does not bring that much back for every seed, on {SCORES[place]} (limits: the extremes).",
    )  # fmt: skip


def _figure(doses: Sequence[float], curves: dict[str, list[Estimate]], ends: dict[str, Estimate]) -> dict[str, Any]:
    panels = [
        {"title": f"scored on {SCORES[place]}", "series": [
            curve("scripted, isotropised", doses, found),
            {"name": "Gaussian exploration", "x": list(doses), "y": [ends[place].value] * len(doses), "dash": True}]}
        for place, found in curves.items()
    ]  # fmt: skip
    return {"kind": "curves", "title": "Recovery against the dose", "x_label": "dose", "y_label": "held-out R²",
            "panels": panels, "note": "Bands: the extremes over seeds."}  # fmt: skip


def _table(results: Sequence[Result]) -> dict[str, Any]:
    rows = [
        [r.at.get("dose", "Gaussian motion"), r.at["seed"], r.status, *(cell(r.estimate(_r2(p))) for p in PLACES),
         cell(r.estimate("circle_own_own")), cell(r.estimate("degree_1")),
         f"{r.value('share'):.2f}", f"{r.value('distance'):.3f}"]
        for r in results
    ]  # fmt: skip
    columns = ["dose", "seed", "status", *(f"R² on {SCORES[place]}" for place in PLACES),
               "R² of sines and cosines, own", "linear share of variance", "effective share of the pairs",
               "distance from the Gaussian"]  # fmt: skip
    return {"title": "Every run, with 95% intervals", "columns": columns, "rows": rows}


EXPERIMENT = Experiment(
    "reacher-isotropisation", "Reacher from pixels: from goal-directed to isotropic", CLAIM, trials, conclude
)
