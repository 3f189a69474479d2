"""Straight lines in the latent as plans, and their length in the true state.

A line is followed in three ways. By *dynamics* fitted in the latent: actions are planned for it and executed in the
true world. By *neighbours*: each of its points is looked up in a library of latents, and the states of these are the
path. By *actions* of that library: the actions of the steps most similar to those of the line are executed.

A path looked up in a library is ragged, the more so the smaller the library. So a latent is compared with the best
possible one, the state itself in rotated coordinates, with the same library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.config import to_plain
from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.core.stats import bootstrap
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import r2_of_state, recipe_for
from jepatlas.experiments.engine.rules import Criterion, as_verdicts, outcome_of_criteria
from jepatlas.experiments.engine.seed_tables import cell, curve, finished_only, grouped, mean_and_range, select
from jepatlas.experiments.planning.controlled_world import Encode, LatentSteps, sample_steps, true_system, world_encoder
from jepatlas.planning import (
    ActionBox,
    LatentCost,
    Library,
    LibraryLine,
    StraightLineConfig,
    detour,
    nearest_rows,
    waypoints,
)
from jepatlas.workflows.runs import load_objective, train_job
from jepatlas.worlds import AnyMixing, Coupling, LatentWorld, OrnsteinUhlenbeck, Spiral
from jepatlas.worlds.random_matrices import semi_orthogonal

__all__ = ["EXPERIMENT", "run"]

STRAIGHT = 1.1  # length relative to that in the state itself, up to which a path counts as straight
ARRIVES = 0.2  # largest final distance from the goal, as a share of the way
MIXINGS: tuple[AnyMixing, ...] = (Spiral(), Coupling(seed=1))
LATENTS = {"rotated": "the state, rotated", "trained": "LeJEPA", "observed": "what is observed"}
WAYS = {"dynamics": "learned dynamics", "neighbours": "neighbours", "actions": "actions of neighbours"}
PIECES = 16  # segments of a line, and actions of a plan
APART = 1.0  # least distance of a goal; shorter ways would show only the resolution of the library
BOX = 3.0  # largest action; the noise of the law has standard deviation 1
ROWS = 20_000  # steps used to fit the dynamics

Ends = Mapping[str, Tensor]

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


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train or resume, then follow lines between the same states in all latents, with the same libraries."""
    record = train_job(settings["recipe"], folder)
    if record["status"] != "finished":
        return record
    recipe, objective = load_objective(Path(folder))
    world, seed = recipe.world, recipe.seed
    turn = semi_orthogonal(world.dim, world.dim, numpy_generator(seed, "turn"))
    sees = {
        "rotated": lambda z: z @ turn.T,
        "trained": world_encoder(world, objective),
        "observed": world_encoder(world, None),
    }
    ends = _ends(world.dim, settings["tasks"], seed)
    found = {}
    for name, see in sees.items():
        rows = sample_steps(world, see, max(ROWS, *settings["libraries"]), numpy_generator(seed, "library"))
        found[f"{name}_r2"] = r2_of_state(rows.h[:ROWS], rows.z[:ROWS], seed)
        for way, path in follow_lines(world, see, rows, ends, settings).items():
            found |= {f"{name}_{way}_{what}": estimate for what, estimate in _judged(path, ends["goal"], seed).items()}
    return record | {"verdicts": as_verdicts(found, "median over tasks", "lower")}


def _ends(dim: int, tasks: int, seed: int) -> Ends:
    rng = numpy_generator(seed, "ends")
    starts, goals = rng.standard_normal((2, 20 * tasks, dim))
    far = np.flatnonzero(np.linalg.norm(goals - starts, axis=1) >= APART)[:tasks]
    return {"start": torch.tensor(starts[far]), "goal": torch.tensor(goals[far])}


def follow_lines(
    world: LatentWorld, see: Encode, rows: LatentSteps, ends: Ends, settings: Mapping[str, Any]
) -> dict[str, Tensor]:
    """True paths (b, t + 1, n) for each way to follow a line, and each size of the library."""
    seen = {name: torch.as_tensor(see(z.numpy())) for name, z in ends.items()}
    line, box = waypoints(seen["start"], seen["goal"], PIECES), ActionBox.symmetric(BOX, world.dim)
    cost = LatentCost(rows.system, lambda h, goal: (h - goal).norm(dim=-1))
    planners: dict[str, Any] = {"dynamics": StraightLineConfig(PIECES).build(box)}
    h, u, h_next, z = (torch.as_tensor(part) for part in (rows.h, rows.u, rows.h_next, rows.z))
    paths = {}
    for size in settings["libraries"]:
        planners[f"actions_{size}"] = LibraryLine(Library(h[:size], u[:size], h_next[:size]), box, PIECES)
        between = z[nearest_rows(line[:, 1:-1], h[:size])]
        paths[f"neighbours_{size}"] = torch.cat([ends["start"][:, None], between, ends["goal"][:, None]], 1)
    for way, planner in planners.items():
        plan = planner(cost, seen, torch_generator(settings["recipe"]["seed"], "line"))
        walk = true_system(world).rollout(ends["start"], plan.actions)
        paths[way] = torch.cat([ends["start"][:, None], walk], 1)
    return paths


def _judged(path: Tensor, goal: Tensor, seed: int) -> dict[str, Estimate]:
    """Length of a path relative to the straight way, and its final distance from the goal as a share of the way."""
    way = (goal - path[:, 0]).norm(dim=-1)
    numbers = {"detour": detour(path), "miss": (path[:, -1] - goal).norm(dim=-1) / way}
    columns = {name: values.numpy() for name, values in numbers.items()}

    def medians(weights: np.ndarray) -> dict[str, float]:
        times = weights.round().astype(int)
        return {name: float(np.median(np.repeat(values, times))) for name, values in columns.items()}

    return bootstrap(medians, len(path), numpy_generator(seed, "tasks"), replicates=200)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if lines in every trained latent are straight both ways, and lines in the observation are neither."""
    finished, largest = finished_only(results), SCALES[scale].libraries[-1]
    criteria = []
    for way, title in (("dynamics", "dynamics"), (f"neighbours_{largest}", f"neighbours among {largest:,}")):
        straight = [_straight(r, "trained", way) for r in finished]
        curved = [not _straight(r, "observed", way) for r in finished]
        criteria.append(
            Criterion(
                f"worlds with straight paths by {title}: LeJEPA; observation",
                f"{sum(straight)}; {len(curved) - sum(curved)} of {len(finished)}",
                "all; none",
                all(straight) and all(curved),
            )
        )
    detours = {name: mean_and_range(finished, f"{name}_dynamics_detour").value for name in LATENTS}
    return Finding(
        outcome_of_criteria(criteria),
        f"Detour of straight lines, followed by dynamics: {detours['trained']:.2f} in LeJEPA's latents, "
        f"{detours['rotated']:.2f} in the rotated state, {detours['observed']:.2f} in the observation.",
        criteria=tuple(criteria),
        verdicts=tuple(_verdict(finished, way) for way in ("dynamics", f"neighbours_{largest}")),
        figures=(_figure(finished, scale),),
        tables=(_table(results, scale),),
    )


def _relative(result: Result, latent: str, way: str) -> float:
    """Length relative to that in the state itself, followed in the same way."""
    return result.value(f"{latent}_{way}_detour") / result.value(f"rotated_{way}_detour")


def _straight(result: Result, latent: str, way: str) -> bool:
    return _relative(result, latent, way) <= STRAIGHT and result.value(f"{latent}_{way}_miss") <= ARRIVES


def _verdict(results: Sequence[Result], way: str) -> Verdict:
    ratios = [_relative(result, "trained", way) for result in results]
    return Verdict.judge(
        f"detour_{way}",
        Estimate(float(np.mean(ratios)), min(ratios), max(ratios), len(ratios)),
        direction="lower",
        threshold=STRAIGHT,
        null=float(np.mean([_relative(result, "observed", way) for result in results])),
        good="Straight lines in the latent are as straight as those in the state (limits: range over worlds).",
        bad="Straight lines in the latent are longer than those in the state (limits: range over worlds).",
    )


def _figure(results: Sequence[Result], scale: Scale) -> Curves:
    sizes, panels = SCALES[scale].libraries, []
    for mixing in dict.fromkeys(result.at["mixing"] for result in results):
        chosen, series = select(results, mixing=mixing), []
        for name, title in LATENTS.items():
            looked_up = [mean_and_range(chosen, f"{name}_neighbours_{size}_detour") for size in sizes]
            planned = mean_and_range(chosen, f"{name}_dynamics_detour").value
            series.append(curve(f"{title}, neighbours", sizes, looked_up))
            series.append(Curve(f"{title}, dynamics", list(sizes), [planned] * len(sizes), dash=True))
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
                cells = [cell(mean_and_range(chosen, f"{name}_{way}_{what}")) for what in ("detour", "miss")]
                rows.append([mixing, title, cell(mean_and_range(chosen, f"{name}_r2")), followed_by, *cells])
    columns = ["mixing", "latent", "R²", "followed by", "length / straight way", "left to the goal / way"]
    return Table("Medians over tasks, mean over seeds [range]", columns, rows)


EXPERIMENT = Experiment("straight-plans", "Straight lines in the latent", CLAIM, trials, conclude)
