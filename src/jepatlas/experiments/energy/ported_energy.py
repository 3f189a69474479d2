"""An energy learned on one agent's latents, used on another's: E₂(x, y) = E₁(Mx, My), with M a map between the two.

The axioms survive any M. Accuracy survives where the agents differ by what M can undo: for LeJEPA agents of a Gaussian
world, a rotation. The map has an error of its own, and a cell of a finer grid is smaller beside it: so grids of several
sizes fill the same square. An energy says nothing of latents that it has not seen: so it is learned on each grid as it
is, and with a jitter, from steps that are moved by up to JITTER of a cell. The control is M fitted on shuffled
pairs, a rotation, too, but of nothing in particular.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.alignment.latent_pairs import paired_recipes
from jepatlas.experiments.energy.energy_runs import BUDGETS, energy_recipe, quasimetric
from jepatlas.experiments.energy.ported_energy_runs import run
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, mean_and_range
from jepatlas.recipes import StepFile, WalkConfig
from jepatlas.worlds import OneWayGrid

__all__ = ["EXPERIMENT"]

NEAR = 0.02
SIZES = (8, 12)
JITTER = 0.3
PLAIN, MOVED = "", "-jitter"
ARMS = tuple(f"{size}{how}" for how in (PLAIN, MOVED) for size in SIZES)
ENERGIES = {"own": "agent 1", "ported": "agent 2, ported", "shuffled": "agent 2, shuffled pairs"}

CLAIM = Claim(
    statement="An energy carried to another agent through an invertible map of latents is still a quasimetric; between "
    "identified agents it loses hardly any accuracy.",
    source="The first part follows from Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric "
    "Spaces, Definition 1; the second is our reading of W = Q₂Q₁ᵀ in When Does LeJEPA Learn a World Model?",
    proven="the first part, for every map",
    assumed="for the second that both agents are at LeJEPA's optimum in a Gaussian world",
)


@dataclass(frozen=True)
class Plan:
    steps: int  # of the agents
    seeds: int
    pairs: int  # that the map is fitted on
    shuffles: int


SCALES = {"tiny": Plan(40, 1, 200, 2), "small": Plan(6000, 3, 2000, 20), "paper": Plan(20_000, 5, 20_000, 100)}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    arms = [
        {"name": f"{size}{how}", "grid": to_plain(OneWayGrid(size, size, size // 2)), "jitter": JITTER if how else 0.0}
        for how in (PLAIN, MOVED)
        for size in SIZES
    ]
    return [
        Trial(
            {"seed": s},
            run,
            {
                "recipes": paired_recipes(scale, 2, plan.steps, s),
                "energy": _energy(scale, s),
                "seed": s,
                "arms": arms,
                "walk": to_plain(BUDGETS[scale].walk),
                "pairs": plan.pairs,
                "shuffles": plan.shuffles,
            },
        )
        for s in range(seed, seed + plan.seeds)
    ]


def _energy(scale: Scale, seed: int) -> dict[str, Any]:
    """The recipe but for the file, which the trial writes."""
    return to_plain(energy_recipe(scale, seed, source=StepFile(), walk=WalkConfig()))


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if every pair of agents keeps it within NEAR on every grid, with a jitter and without, and shuffled ones
    do not; where the axioms alone are kept, in part."""
    del scale
    finished = [r for r in results if r.status == "finished"]
    kept = [quasimetric(r, f"{arm}_ported") for r in finished for arm in ARMS]
    near = {arm: sum(_lost(r, arm, "ported") <= NEAR for r in finished) for arm in ARMS}
    far = all(_lost(r, arm, "shuffled") > NEAR for r in finished for arm in ARMS)
    every = far and all(near[arm] == len(finished) for arm in ARMS)
    told = "; ".join(f"{_title(arm)} {_both(finished, arm)} (within {NEAR} in {near[arm]})" for arm in ARMS)
    return Finding(
        "holds" if all(kept) and every else "holds in part" if all(kept) else "does not hold",
        f"The ported energy breaks no axiom in {sum(kept)} of {len(kept)} cases. Spearman with the exact energies on "
        f"agent 1, and ported on agent 2, over {len(finished)} pairs of agents: {told}. AUC of one-way pairs on agent "
        f"2: {'; '.join(f'{_title(arm)} {cell(mean_and_range(finished, _auc(arm)))}' for arm in ARMS)}. Maps between "
        f"shuffled pairs {'always' if far else 'do not always'} lose more than {NEAR}.",
        short=", ".join(f"{_title(arm)}: {_mean_lost(finished, arm):.3f}" for arm in ARMS) + " of Spearman lost",
        verdicts=tuple(_verdict(finished, arm) for arm in ARMS),
        figures=(_figure(finished),),
        tables=(_table(results),),
    )


def _title(arm: str) -> str:
    size = arm.removesuffix(MOVED)
    return f"{size}×{size}" + (" with jitter" if arm.endswith(MOVED) else "")


def _auc(arm: str) -> str:
    return f"{arm}_ported_one_way_auc"


def _both(results: Sequence[Result], arm: str) -> str:
    return " and ".join(cell(mean_and_range(results, f"{arm}_{name}_spearman")) for name in ("own", "ported"))


def _lost(result: Result, arm: str, name: str) -> float:
    """Spearman that is lost on the way; what is shuffled counts by the mean over shuffles."""
    return result.value(f"{arm}_own_spearman") - result.value(f"{arm}_{name}_spearman")


def _mean_lost(results: Sequence[Result], arm: str) -> float:
    return float(np.mean([_lost(r, arm, "ported") for r in results]))


def _verdict(results: Sequence[Result], arm: str) -> Verdict:
    lost = [_lost(r, arm, "ported") for r in results]
    found = Estimate(float(np.mean(lost)), float(np.min(lost)), float(np.max(lost)), len(lost))
    return Verdict.judge(
        f"lost_{arm}",
        found,
        direction="lower",
        threshold=NEAR,
        null=float(np.mean([_lost(r, arm, "shuffled") for r in results])),
        good="An energy can be carried to another agent.",
        bad="On the way to the other agent accuracy is lost.",
    )


def _figure(results: Sequence[Result]) -> dict[str, Any]:
    panels = [
        {
            "title": "with jitter" if how else "learned as it is",
            "series": [
                {
                    "name": title,
                    "points": True,
                    "x": [size for size in SIZES for _ in results],
                    "y": [r.value(f"{size}{how}_{name}_spearman") for size in SIZES for r in results],
                }
                for name, title in ENERGIES.items()
            ],
        }
        for how in (PLAIN, MOVED)
    ]
    return {
        "kind": "curves",
        "title": "An energy on its own agent and on another: every pair of agents",
        "x_label": "cells along a side",
        "y_label": "Spearman, reachable pairs",
        "panels": panels,
        "note": "Shuffled: the mean over shuffles.",
    }


def _table(results: Sequence[Result]) -> dict[str, Any]:
    measures = {"spearman": "Spearman", "one_way_auc": "one-way AUC"}
    rows = [
        [
            r.at["seed"],
            r.status,
            _title(arm),
            cell(r.estimate("map_r2")),
            *(cell(r.estimate(f"{arm}_{name}_{measure}")) for measure in measures for name in ENERGIES),
            cell(r.estimate(f"{arm}_ported_triangle"), 6),
        ]
        for r in results
        for arm in ARMS
    ]
    columns = [
        "seed",
        "status",
        "grid",
        "R² of the map",
        *(f"{what}, {title}" for what in measures.values() for title in ENERGIES.values()),
        "triangle gap, ported",
    ]
    return {
        "title": "Two agents and one energy; shuffled: mean [lowest, highest] over shuffles",
        "columns": columns,
        "rows": rows,
    }


EXPERIMENT = Experiment("ported-energy", "An energy carried to another agent", CLAIM, trials, conclude)
