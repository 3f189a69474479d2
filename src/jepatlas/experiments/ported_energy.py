"""An energy learned on one agent's latents, used on another's: E₂(x, y) = E₁(Mx, My), with M a map between the two.

The axioms survive any M. Accuracy survives where the agents differ by what M can undo: for LeJEPA agents of a Gaussian
world, a rotation. The control is M fitted on shuffled pairs, a rotation, too, but of nothing in particular. The map has
an error of its own, and an energy says nothing of latents that it has not seen: so it is learned once more with noise
of the map's size on the latents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jepatlas.base.config import to_plain
from jepatlas.base.records import Estimate, Verdict
from jepatlas.experiments.agents import two_recipes
from jepatlas.experiments.energy_runs import BUDGETS, energy_recipe, quasimetric
from jepatlas.experiments.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.ported_energy_runs import run
from jepatlas.experiments.tables import cell, over_seeds
from jepatlas.recipes import StepFile, WalkConfig
from jepatlas.worlds import OneWayGrid

__all__ = ["EXPERIMENT"]

NEAR = 0.02
ENERGIES = {"own": "agent 1", "ported": "agent 2, ported", "shuffled": "agent 2, shuffled pairs"}
NOISY = {"noise_own": "agent 1, learned with noise", "noise_ported": "agent 2, ported, learned with noise"}

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
    return [
        Trial({"seed": s}, run,
              {"recipes": two_recipes(scale, 2, plan.steps, s), "energy": _energy(scale, s), "seed": s,
               "grid": to_plain(OneWayGrid()), "walk": to_plain(BUDGETS[scale].walk), "pairs": plan.pairs,
               "shuffles": plan.shuffles})
        for s in range(seed, seed + plan.seeds)
    ]  # fmt: skip


def _energy(scale: Scale, seed: int) -> dict[str, Any]:
    """The recipe but for the file, which the trial writes."""
    return to_plain(energy_recipe(scale, seed, source=StepFile(), walk=WalkConfig()))


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    finished = [r for r in results if r.status == "finished"]
    kept = [quasimetric(r, name) for r in finished for name in ("ported", "noise_ported")]
    near, near_noise = ([_lost(r, "ported", prefix) <= NEAR for r in finished] for prefix in ("", "noise_"))
    far = [_lost(r, "shuffled") > NEAR for r in finished]
    rules = [all(kept), all(near) and all(far)]
    order = {name: over_seeds(finished, f"{name}_spearman") for name in ENERGIES | NOISY}
    auc = {name: over_seeds(finished, f"{name}_reachability_auc") for name in ENERGIES}
    return Finding(
        "holds" if all(rules) else "holds in part" if rules[0] else "does not hold",
        f"The ported energy breaks no axiom in {sum(kept)} of {len(kept)} cases. Spearman against the exact "
        f"energies is {cell(order['own'])} on agent 1 and {cell(order['ported'])} on agent 2 (within {NEAR} in "
        f"{sum(near)} of {len(near)} pairs of agents); learned with noise of the map's size "
        f"{cell(order['noise_own'])} and {cell(order['noise_ported'])} (within {NEAR} in {sum(near_noise)}); through "
        f"maps between shuffled pairs {cell(order['shuffled'])} (further off in {sum(far)}). AUC of unreachable pairs: "
        f"{', '.join(f'{ENERGIES[name]} {cell(auc[name])}' for name in auc)}.",
        short=f"Spearman {order['own'].value:.3f}, ported {order['ported'].value:.3f} "
        f"(noise: {order['noise_ported'].value:.3f}); shuffled {order['shuffled'].value:.2f}",
        verdicts=(_verdict(finished),),
        figures=(_figure(finished),),
        tables=(_table(results),),
    )


def _lost(result: Result, name: str, prefix: str = "") -> float:
    """Spearman that is lost on the way; what is shuffled counts by the mean over shuffles."""
    return result.value(f"{prefix}own_spearman") - result.value(f"{prefix}{name}_spearman")


def _verdict(results: Sequence[Result]) -> Verdict:
    lost = [_lost(r, "ported") for r in results]
    found = Estimate(float(np.mean(lost)), float(np.min(lost)), float(np.max(lost)), len(lost))
    return Verdict.judge(
        "lost_spearman", found, direction="lower", threshold=NEAR,
        null=float(np.mean([_lost(r, "shuffled") for r in results])),
        good="An energy can be carried to another agent.", bad="On the way to the other agent accuracy is lost.",
    )  # fmt: skip


def _figure(results: Sequence[Result]) -> dict[str, Any]:
    series = [
        {"name": title, "x": [r.value(f"{name}_spearman") for r in results],
         "y": [r.value(f"{name}_reachability_auc") for r in results], "points": True}
        for name, title in (ENERGIES | NOISY).items()
    ]  # fmt: skip
    return {"kind": "curves", "title": "An energy on its own agent and on another: every pair of agents",
            "x_label": "Spearman, reachable pairs", "y_label": "AUC, unreachable pairs", "series": series,
            "note": "Shuffled: the mean over shuffles."}  # fmt: skip


def _table(results: Sequence[Result]) -> dict[str, Any]:
    rows = [
        [r.at["seed"], r.status, cell(r.estimate("map_r2")),
         *(cell(r.estimate(f"{name}_{measure}")) for measure in ("spearman", "reachability_auc")
           for name in ENERGIES | NOISY),
         cell(r.estimate("ported_triangle"), 6)]
        for r in results
    ]  # fmt: skip
    columns = ["seed", "status", "R² of the map", *(f"{what}, {title}" for what in ("Spearman", "AUC")
               for title in (ENERGIES | NOISY).values()), "triangle gap, ported"]  # fmt: skip
    return {"title": "Two agents and one energy; shuffled: mean [lowest, highest] over shuffles", "columns": columns,
            "rows": rows}  # fmt: skip


EXPERIMENT = Experiment("ported-energy", "An energy carried to another agent", CLAIM, trials, conclude)
