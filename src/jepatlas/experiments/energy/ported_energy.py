"""An energy learned on one agent's latents, used on another's: E₂(x, y) = E₁(Mx, My), with M a map between the two.

The axioms hold for any M. Accuracy is preserved if the agents differ by what M can undo: for LeJEPA agents of a
Gaussian world, a rotation. The error of the map matters more on a finer grid, so grids of several sizes fill the same
square. An energy is not defined away from its training latents, so it is learned on each grid without and with a jitter
of up to JITTER of a cell. The control is M fitted on shuffled pairs, also a rotation.

The agents are trained apart on the open plane, each through its own mixing. The grid lies in that plane, and the map is
fitted on states of the open plane: the second agent observes nothing of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.records import Verdict
from jepatlas.experiments.alignment.latent_pairs import paired_recipes
from jepatlas.experiments.energy.learned_energies import BUDGETS, energy_recipe, quasimetric
from jepatlas.experiments.energy.porting_trial import run
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Criterion, count_met, outcome_in_stages
from jepatlas.experiments.engine.seed_tables import cell, finished_only, mean_and_range_of, mean_cells, span
from jepatlas.recipes import StepFile, WalkConfig
from jepatlas.worlds import OneWayGrid

__all__ = ["EXPERIMENT"]


NEAR = 0.02  # loss of Spearman's correlation that counts as small
SIZES = (8, 12)  # cells along a side of a grid
JITTER = 0.3  # of a cell
PLAIN = ""  # suffix of arms without jitter
MOVED = "-jitter"
ARMS = tuple(f"{size}{how}" for how in (PLAIN, MOVED) for size in SIZES)
ENERGIES = {"own": "agent 1", "ported": "agent 2, ported", "shuffled": "agent 2, shuffled pairs"}

CLAIM = Claim(
    statement="An energy carried to another agent through an invertible map of latents remains a quasimetric; between "
    "identified agents it loses hardly any accuracy.",
    source="The first part follows from Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric "
    "Spaces, Definition 1; the second is our reading of W = Q₂Q₁ᵀ in When Does LeJEPA Learn a World Model?",
    proven="the first part, for every map",
    assumed="for the second that both agents are at LeJEPA's optimum in a Gaussian world",
)


SCALES = {
    "tiny": (40, 1, {"pairs": 200, "shuffles": 2}),
    "small": (6000, 3, {"pairs": 2000, "shuffles": 20}),
    "paper": (20_000, 5, {"pairs": 20_000, "shuffles": 100}),
}
"""Steps of the agents, number of seeds, and settings: pairs that the map is fitted on, and shuffles of the control."""


def trials(scale: Scale, seed: int) -> list[Trial]:
    steps, seeds, settings = SCALES[scale]
    arms = []
    for how, size in product((PLAIN, MOVED), SIZES):
        world = to_plain(OneWayGrid(size, size, size // 2))
        arms.append({"name": f"{size}{how}", "grid": world, "jitter": JITTER if how else 0.0})
    common = settings | {"arms": arms, "walk": to_plain(BUDGETS[scale].walk)}
    every = []
    for s in range(seed, seed + seeds):
        energy = energy_recipe(scale, s, source=StepFile(), walk=WalkConfig())  # the trial adds the file
        recipes = {"recipes": paired_recipes(scale, 2, steps, s), "energy": to_plain(energy)}
        every.append(Trial({"seed": s}, run, common | recipes | {"seed": s}))
    return every


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if all criteria are met, and in part if the axioms hold."""
    del scale
    ended = finished_only(results)
    cases = list(product(ended, ARMS))
    kept = [quasimetric(r, f"{arm}_ported") for r, arm in cases]
    near = [_lost(r, arm, "ported") <= NEAR for r, arm in cases]
    far = [_lost(r, arm, "shuffled") > NEAR for r, arm in cases]
    lost = [mean_and_range_of([_lost(r, arm, "ported") for r in ended]).value for arm in ARMS]
    return Finding(
        outcome_in_stages(all(kept), all(near) and all(far)),
        f"Porting loses {span(lost)} of Spearman's correlation; {count_met(kept)} ported energies are quasimetrics.",
        criteria=(
            Criterion.for_all("ported energies without a broken axiom", kept),
            Criterion.for_all(f"Spearman lost by porting ≤ {NEAR}", near),
            Criterion.for_all(f"Spearman lost with shuffled pairs > {NEAR}", far),
        ),
        verdicts=tuple(_verdict(ended, arm) for arm in ARMS),
        figures=(_figure(ended),),
        tables=(_table(results), _arm_table(ended)),
    )


def _title(arm: str) -> str:
    size = arm.removesuffix(MOVED)
    return f"{size}×{size}" + (" with jitter" if arm.endswith(MOVED) else "")


def _lost(result: Result, arm: str, name: str) -> float:
    """Loss of Spearman's correlation by porting; for shuffled pairs the mean over shuffles."""
    return result.value(f"{arm}_own_spearman") - result.value(f"{arm}_{name}_spearman")


def _verdict(results: Sequence[Result], arm: str) -> Verdict:
    return Verdict.judge(
        f"lost_{arm}",
        mean_and_range_of([_lost(r, arm, "ported") for r in results]),
        direction="lower",
        threshold=NEAR,
        null=float(np.mean([_lost(r, arm, "shuffled") for r in results])),
        good="The energy keeps its accuracy on the other agent.",
        bad="The energy loses accuracy on the other agent.",
    )


def _figure(results: Sequence[Result]) -> Curves:
    panels = []
    for how in (PLAIN, MOVED):
        series = []
        for name, title in ENERGIES.items():
            x = [size for size in SIZES for _ in results]
            y = [r.value(f"{size}{how}_{name}_spearman") for size in SIZES for r in results]
            series.append(Curve(title, x, y, points=True))
        panels.append(CurvePanel(series, "with jitter" if how else "without jitter"))
    return Curves(
        title="An energy on its own agent and on another, all pairs of agents",
        x_label="cells along a side",
        y_label="Spearman, reachable pairs",
        panels=panels,
        note="Shuffled: mean over shuffles.",
    )


def _arm_table(results: Sequence[Result]) -> Table:
    rows = []
    for arm in ARMS:
        own, ported, auc = mean_cells(
            results, [f"{arm}_own_spearman", f"{arm}_ported_spearman", f"{arm}_ported_one_way_auc"]
        )
        near = [_lost(r, arm, "ported") <= NEAR for r in results]
        rows.append([_title(arm), own, ported, count_met(near), auc])
    columns = ["grid", "Spearman, own", "Spearman, ported", f"lost ≤ {NEAR}", "one-way AUC, ported"]
    return Table("Means over pairs of agents [range]", columns, rows)


def _table(results: Sequence[Result]) -> Table:
    measures = {"spearman": "Spearman", "one_way_auc": "one-way AUC"}
    rows = []
    for r, arm in product(results, ARMS):
        cells = [cell(r.estimate(f"{arm}_{name}_{measure}")) for measure in measures for name in ENERGIES]
        gap = cell(r.estimate(f"{arm}_ported_triangle"), 6)
        rows.append([r.at["seed"], r.status, _title(arm), cell(r.estimate("map_r2")), *cells, gap])
    columns = [f"{measure}, {title}" for measure in measures.values() for title in ENERGIES.values()]
    title = "Two agents and one energy; shuffled: mean [range] over shuffles"
    return Table(title, ["seed", "status", "grid", "R² of the map", *columns, "triangle gap, ported"], rows)


EXPERIMENT = Experiment("ported-energy", "An energy ported to another agent", CLAIM, trials, conclude)
