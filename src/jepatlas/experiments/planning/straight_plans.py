"""Straight lines in the latent as plans: how straight they are in truth.

A path that is looked up in a library is ragged by itself, the more so the smaller the library is. So a latent is held
against the best one there is, the state itself in other coordinates, with the same library; and beside it lines are
followed through dynamics, without any library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import recipe_for
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_range, select
from jepatlas.experiments.planning.straight_plans_runs import LATENTS, WAYS, run
from jepatlas.worlds import AnyMixing, Coupling, LatentWorld, OrnsteinUhlenbeck, Spiral

__all__ = ["EXPERIMENT"]

STRAIGHT = 1.1  # times as long as in the state itself: up to there a path counts as straight
ARRIVES = 0.2  # share of the way that may be left where a plan ends
MIXINGS: tuple[AnyMixing, ...] = (Spiral(), Coupling(seed=1))

CLAIM = Claim(
    statement="Straight lines in a well-identified latent are nearly straight in the state; in another one they curve.",
    source="When Does LeJEPA Learn a World Model?, the planning experiment",
    proven="for exact rotations only",
    measured="shown as pictures on Reacher, with paths looked up in a library of 10,000 states",
)


@dataclass(frozen=True)
class Plan:
    steps: int
    seeds: int
    tasks: int
    libraries: tuple[int, ...]


SCALES = {
    "tiny": Plan(40, 1, 6, (100, 1000)),
    "small": Plan(6000, 3, 200, (100, 1000, 10_000, 100_000)),
    "paper": Plan(20_000, 5, 1000, (100, 1000, 10_000, 100_000, 1_000_000)),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan, law = SCALES[scale], OrnsteinUhlenbeck(dim=2, rho=0.95)
    return [
        Trial(
            {"mixing": mixing.kind, "seed": s},
            run,
            {
                "recipe": to_plain(recipe_for(scale, LatentWorld(law, mixing), steps=plan.steps, seed=s)),
                "tasks": plan.tasks,
                "libraries": list(plan.libraries),
            },
        )
        for mixing in MIXINGS
        for s in range(seed, seed + plan.seeds)
    ]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if lines in every trained latent are straight both ways, and lines in what is observed are neither."""
    finished, largest = [r for r in results if r.status == "finished"], SCALES[scale].libraries[-1]
    ways = ("dynamics", f"neighbours_{largest}")
    straight = {way: [_straight(r, "trained", way) for r in finished] for way in ways}
    curved = {way: [not _straight(r, "observed", way) for r in finished] for way in ways}
    holds = [all(straight[way]) and all(curved[way]) for way in ways]
    first, last = (mean_and_range(finished, f"rotated_neighbours_{m}_detour").value for m in _ends(scale))
    return Finding(
        "holds" if all(holds) else "holds in part" if any(holds) else "does not hold",
        f"Paths at most {STRAIGHT} times as long as in the state itself, that end within {ARRIVES:.0%} of the way from "
        f"the goal, in LeJEPA's latents and in what is observed: through learned dynamics in {sum(straight[ways[0]])} "
        f"and {len(finished) - sum(curved[ways[0]])} of {len(finished)} worlds, by neighbours among {largest:,} in "
        f"{sum(straight[ways[1]])} and {len(finished) - sum(curved[ways[1]])}. Mean detour through dynamics: "
        f"{_each(finished, 'dynamics')}; by neighbours: {_each(finished, ways[1])}. The library alone makes paths of "
        f"the true state {first:.2f} times as long as straight with {_ends(scale)[0]:,} states, {last:.2f} with "
        f"{largest:,}.",
        short=f"detour by dynamics: {_each(finished, 'dynamics')}",
        verdicts=tuple(_verdict(finished, way) for way in ways),
        figures=(_figure(finished, scale),),
        tables=(_table(results, scale),),
    )


def _ends(scale: Scale) -> tuple[int, int]:
    libraries = SCALES[scale].libraries
    return libraries[0], libraries[-1]


def _relative(result: Result, latent: str, way: str) -> float:
    """Times as long as in the state itself, followed in the same way."""
    return result.value(f"{latent}_{way}_detour") / result.value(f"rotated_{way}_detour")


def _straight(result: Result, latent: str, way: str) -> bool:
    return _relative(result, latent, way) <= STRAIGHT and result.value(f"{latent}_{way}_miss") <= ARRIVES


def _each(results: Sequence[Result], way: str) -> str:
    return ", ".join(
        f"{said} {mean_and_range(results, f'{name}_{way}_detour').value:.2f}" for name, said in LATENTS.items()
    )


def _verdict(results: Sequence[Result], way: str) -> Verdict:
    ratios = [_relative(result, "trained", way) for result in results]
    found = Estimate(float(np.mean(ratios)), min(ratios), max(ratios), len(ratios))
    return Verdict.judge(
        f"detour_{way}",
        found,
        direction="lower",
        threshold=STRAIGHT,
        null=float(np.mean([_relative(result, "observed", way) for result in results])),
        good="Straight lines in the latent are as straight as those of the state (limits: the extremes over worlds).",
        bad="Straight lines in the latent are longer in truth than those of the state (limits: the extremes).",
    )


def _figure(results: Sequence[Result], scale: Scale) -> dict[str, Any]:
    sizes, panels = SCALES[scale].libraries, []
    for mixing in dict.fromkeys(result.at["mixing"] for result in results):
        chosen, series = select(results, mixing=mixing), []
        for name, said in LATENTS.items():
            looked_up = [mean_and_range(chosen, f"{name}_neighbours_{size}_detour") for size in sizes]
            planned = mean_and_range(chosen, f"{name}_dynamics_detour").value
            series.append(curve(f"{said}, neighbours", sizes, looked_up))
            series.append({"name": f"{said}, dynamics", "x": list(sizes), "y": [planned] * len(sizes), "dash": True})
        panels.append({"title": mixing, "series": series})
    return {
        "kind": "curves",
        "title": "Straight lines in the latent: how long they are in truth",
        "x_label": "states in the library",
        "y_label": "length / straight way",
        "log_x": True,
        "log_y": True,
        "panels": panels,
    }


def _table(results: Sequence[Result], scale: Scale) -> dict[str, Any]:
    sized = [(way, size) for way in ("neighbours", "actions") for size in SCALES[scale].libraries]
    ways = {"dynamics": WAYS["dynamics"]} | {f"{way}_{size}": f"{WAYS[way]}, {size:,}" for way, size in sized}
    rows = [
        [
            mixing,
            said,
            cell(mean_and_range(chosen, f"{name}_r2")),
            title,
            *(cell(mean_and_range(chosen, f"{name}_{way}_{what}")) for what in ("detour", "miss")),
        ]
        for mixing in dict.fromkeys(r.at["mixing"] for r in results)
        for chosen in [select(results, mixing=mixing)]
        for name, said in LATENTS.items()
        for way, title in ways.items()
    ]
    columns = ["mixing", "latent", "R²", "followed by", "length / straight way", "left to the goal / way"]
    return {"title": "Medians over tasks, mean over seeds [extremes]", "columns": columns, "rows": rows}


EXPERIMENT = Experiment("straight-plans", "Straight lines in the latent", CLAIM, trials, conclude)
