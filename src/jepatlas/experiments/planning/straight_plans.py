"""Straight lines in the latent as plans, and their length in the true state.

A line is followed in three ways. By *dynamics* fitted in the latent: actions are planned for it and executed in the
true world. By *neighbours*: each of its points is looked up in a library of latents, and the states of these are the
path. By *actions* of that library: the actions of the steps most similar to those of the line are executed.

A path looked up in a library is ragged, the more so the smaller the library. So a latent is compared with the best
possible one, the state itself in rotated coordinates, with the same library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.figures import CurvePanel, Curves, Table
from jepatlas.core.records import Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import r2_of_state, recipe_for
from jepatlas.experiments.engine.rules import Criterion, as_verdicts, count_met, outcome_of_criteria
from jepatlas.experiments.engine.seed_tables import (
    finished_only,
    grouped,
    horizontal,
    mean_and_range,
    mean_and_range_of,
    mean_cells,
    mean_curve,
)
from jepatlas.experiments.planning.controlled_world import sample_steps, world_encoder
from jepatlas.experiments.planning.line_following import distant_ends, follow_lines, path_lengths
from jepatlas.workflows.runs import load_objective, train_job
from jepatlas.worlds import AnyMixing, Coupling, LatentWorld, OrnsteinUhlenbeck, Spiral
from jepatlas.worlds.random_matrices import semi_orthogonal

__all__ = ["EXPERIMENT", "run"]

STRAIGHT = 1.1  # length relative to that in the state itself, up to which a path counts as straight
ARRIVES = 0.2  # largest final distance from the goal, as a share of the way
MIXINGS: tuple[AnyMixing, ...] = (Spiral(), Coupling(seed=1))
LATENTS = {"rotated": "the state, rotated", "trained": "LeJEPA", "observed": "what is observed"}
WAYS = {"dynamics": "learned dynamics", "neighbours": "neighbours", "actions": "actions of neighbours"}
ROWS = 20_000  # steps used to fit the dynamics

CLAIM = Claim(
    statement="Straight lines in a well-identified latent are nearly straight in the state; in others they curve.",
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
    plan = SCALES[scale]
    law = OrnsteinUhlenbeck(dim=2, rho=0.95)
    sizes = {"tasks": plan.tasks, "libraries": list(plan.libraries)}
    every = []
    for mixing, s in product(MIXINGS, range(seed, seed + plan.seeds)):
        recipe = recipe_for(scale, LatentWorld(law, mixing), steps=plan.steps, seed=s)
        every.append(Trial({"mixing": mixing.kind, "seed": s}, run, {"recipe": to_plain(recipe)} | sizes))
    return every


def run(settings: Plain, folder: str) -> Plain:
    """Train or resume, then follow lines between the same states in all latents, with the same libraries."""
    record = train_job(settings["recipe"], folder)
    if record["status"] != "finished":
        return record
    recipe, objective = load_objective(Path(folder))
    world = recipe.world
    seed = recipe.seed
    turn = semi_orthogonal(world.dim, world.dim, numpy_generator(seed, "turn"))
    encoders = {
        "rotated": lambda z: z @ turn.T,
        "trained": world_encoder(world, objective),
        "observed": world_encoder(world, None),
    }
    ends = distant_ends(world.dim, settings["tasks"], seed)
    found = {}
    for name, encode in encoders.items():
        steps = sample_steps(world, encode, max(ROWS, *settings["libraries"]), numpy_generator(seed, "library"))
        found[f"{name}_r2"] = r2_of_state(steps.h[:ROWS], steps.z[:ROWS], seed)
        for way, path in follow_lines(world, encode, steps, ends, settings).items():
            for measure, estimate in path_lengths(path, ends["goal"], seed).items():
                found[f"{name}_{way}_{measure}"] = estimate
    return record | {"verdicts": as_verdicts(found, "median over tasks", "lower")}


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if lines in every trained latent are straight both ways, and lines in the observation are neither."""
    ended = finished_only(results)
    largest = SCALES[scale].libraries[-1]
    ways = {"dynamics": "dynamics", f"neighbours_{largest}": f"neighbours among {largest:,}"}
    criteria = []
    for way, title in ways.items():
        trained = [_straight(r, "trained", way) for r in ended]
        observed = [_straight(r, "observed", way) for r in ended]
        name = f"worlds with straight paths by {title}: LeJEPA; observation"
        found = f"{sum(trained)}; {count_met(observed)}"
        criteria.append(Criterion(name, found, "all; none", all(trained) and not any(observed)))
    detours = {name: mean_and_range(ended, f"{name}_dynamics_detour").value for name in LATENTS}
    return Finding(
        outcome_of_criteria(criteria),
        f"Detour of straight lines, followed by dynamics: {detours['trained']:.2f} in LeJEPA's latents, "
        f"{detours['rotated']:.2f} in the rotated state, {detours['observed']:.2f} in the observation.",
        criteria=tuple(criteria),
        verdicts=tuple(_verdict(ended, way) for way in ways),
        figures=(_figure(ended, scale),),
        tables=(_table(results, scale),),
    )


def _relative(result: Result, latent: str, way: str) -> float:
    """Length relative to that in the state itself, followed in the same way."""
    return result.value(f"{latent}_{way}_detour") / result.value(f"rotated_{way}_detour")


def _straight(result: Result, latent: str, way: str) -> bool:
    return _relative(result, latent, way) <= STRAIGHT and result.value(f"{latent}_{way}_miss") <= ARRIVES


def _verdict(results: Sequence[Result], way: str) -> Verdict:
    return Verdict.judge(
        f"detour_{way}",
        mean_and_range_of([_relative(result, "trained", way) for result in results]),
        direction="lower",
        threshold=STRAIGHT,
        null=float(np.mean([_relative(result, "observed", way) for result in results])),
        good="Straight lines in the latent are as straight as those in the state (limits: range over worlds).",
        bad="Straight lines in the latent are longer than those in the state (limits: range over worlds).",
    )


def _figure(results: Sequence[Result], scale: Scale) -> Curves:
    sizes = SCALES[scale].libraries
    panels = []
    for (mixing,), runs in grouped(results, "mixing").items():
        series = []
        for name, title in LATENTS.items():
            names = {size: f"{name}_neighbours_{size}_detour" for size in sizes}
            series.append(mean_curve(f"{title}, neighbours", runs, names))
            planned = mean_and_range(runs, f"{name}_dynamics_detour").value
            series.append(horizontal(f"{title}, dynamics", sizes, planned))
        panels.append(CurvePanel(series, mixing))
    return Curves(
        title="True length of straight lines in the latent",
        x_label="states in the library",
        y_label="length / straight way",
        log_x=True,
        log_y=True,
        panels=panels,
    )


def _table(results: Sequence[Result], scale: Scale) -> Table:
    ways = {"dynamics": WAYS["dynamics"]}
    for way in ("neighbours", "actions"):
        ways |= {f"{way}_{size}": f"{WAYS[way]}, {size:,}" for size in SCALES[scale].libraries}
    rows = []
    for (mixing,), chosen in grouped(results, "mixing").items():
        for name, title in LATENTS.items():
            for way, followed_by in ways.items():
                r2, *lengths = mean_cells(chosen, [f"{name}_r2", f"{name}_{way}_detour", f"{name}_{way}_miss"])
                rows.append([mixing, title, r2, followed_by, *lengths])
    columns = ["mixing", "latent", "R²", "followed by", "length / straight way", "left to the goal / way"]
    return Table("Medians over tasks, mean over seeds [range]", columns, rows)


EXPERIMENT = Experiment("straight-plans", "Straight lines in the latent", CLAIM, trials, conclude)
