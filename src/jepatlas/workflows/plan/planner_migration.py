"""Port a planner to another camera: A's dynamics and energy with B's encoder, through a map and without training.

    h_A ≈ M h_B,  fitted on latents of the same states:  energy E(M f_B(x), M f_B(g)),  dynamics of A

All losses are those of M; its R² is measured on other states. The controls are B's own planner, and A's planner through
a map fitted on shuffled pairs, which preserves only the distribution of A's latents.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jepatlas.alignment.paired import PairedLatents
from jepatlas.core.errors import InputError, check_count
from jepatlas.core.linear import r2
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate, Record, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap, paired_difference
from jepatlas.recipes import AnyActionWorld
from jepatlas.workflows.align import MapKind, fit_map
from jepatlas.workflows.plan.driving import DrivingConfig, drive, drive_at_random
from jepatlas.workflows.plan.planning_agent import agent_of, ported
from jepatlas.workflows.plan.planning_results import planning_record
from jepatlas.workflows.plan.planning_tasks import check_observations, draw_tasks
from jepatlas.workflows.plan.trained_world_model import TrainedModel

__all__ = ["fit_port", "port_planner", "same_world", "shared_latents", "shuffled_pairs"]

SCORE_STATES = 1000  # additional states on which maps are scored
MARGIN = 0.1  # largest acceptable loss of a ported planner, as a share of the tasks


def same_world(a: TrainedModel, b: TrainedModel) -> AnyActionWorld:
    """B's world; raises InputError unless it is A's world up to the camera."""
    if a.world is None or b.world is None:
        raise InputError(
            "Porting needs the world of both runs, to show both the same states. Train on a world of jepatlas, or on a "
            "file that records its world (written by jepatlas collect)."
        )
    camera: Any = getattr(a.world, "camera", None)
    b_world = b.world if camera is None else replace(b.world, camera=camera)  # pyright: ignore[reportCallIssue]
    if a.world != b_world:
        raise InputError(
            f"A planner can only be ported between cameras on the same world, but the runs were trained on "
            f"'{a.world.kind}' and '{b.world.kind}' with settings that differ in more than the camera."
        )
    if a.recipe.stride != b.recipe.stride:
        raise InputError(
            f"The runs have different strides, {a.recipe.stride} (A) and {b.recipe.stride} (B). Train both with the "
            "same --stride."
        )
    check_observations(a, a.world)  # a file may have been trained on another column
    check_observations(b, b.world)
    return b.world


def shared_latents(a: TrainedModel, b: TrainedModel, count: int, seed: int) -> PairedLatents:
    """Latents of both models for `count` random states of their world."""
    states = same_world(a, b).states(count, numpy_generator(seed, "shared states"))
    latents = []
    for model in (a, b):
        assert model.world is not None
        latents.append(model.encode(model.world.observe(states)).double().numpy())
    return PairedLatents.of(*latents)


def shuffled_pairs(pairs: PairedLatents, rng: np.random.Generator) -> PairedLatents:
    """The same latents in wrong pairs."""
    return PairedLatents.of(pairs.a.h, pairs.b.h[rng.permutation(len(pairs))])


def fit_port(kind: MapKind, pairs: PairedLatents, held_out: PairedLatents, seed: int) -> tuple[LinearMap, Estimate]:
    """The map from B's latents to A's, and its R² on held-out pairs."""
    fitted = fit_map(kind, pairs.b.h, pairs.a.h).map_
    predicted = fitted.apply(held_out.b.h)
    rng = numpy_generator(seed, "map")
    score = bootstrap(lambda w: {"r2": r2(held_out.a.h, predicted, w)}, len(predicted), rng)
    return fitted, score["r2"]


def port_planner(
    a: TrainedModel,
    b: TrainedModel,
    *,
    kind: MapKind = "ridge",
    states: int = 1000,
    tasks: int = 50,
    driving: DrivingConfig | None = None,
    names: tuple[str, str] = ("A", "B"),
    seed: int = 0,
) -> tuple[LinearMap, Record]:
    """Drive with B's camera by A's planner, by B's own, and through shuffled pairs; returns the map and the record."""
    check_count("states", states, minimum=2)
    config, world = driving or DrivingConfig(), same_world(a, b)
    own, other = agent_of(b, config.planner), agent_of(a, config.planner)
    shared = shared_latents(a, b, states + SCORE_STATES, seed)
    pairs, held_out = shared.rows(np.arange(states)), shared.rows(np.arange(states, len(shared)))
    fitted, score = fit_port(kind, pairs, held_out, seed)
    shuffled, _ = fit_port(kind, shuffled_pairs(pairs, numpy_generator(seed, "shuffled pairs")), held_out, seed)
    agent = ported(other, b.encode, fitted, own.history)
    agents = {
        f"{names[0]}'s planner": agent,
        f"{names[1]}'s own planner": own,
        "shuffled pairs": ported(other, b.encode, shuffled, own.history),
    }
    drawn = draw_tasks(world, tasks, seed)
    drives = {name: drive(world, each, drawn, config, seed) for name, each in agents.items()}
    record = planning_record(
        f"The planner of {names[0]}, ported to {names[1]}",
        world,
        drives,
        drive_at_random(world, drawn, config.steps, seed, b.explored),
        seed=seed,
        agent=agent,
        explored=b.explored,
        about={"map": kind, "shared states": states, "planner": config.planner.kind},
    )
    ported_drive, own_drive, _ = drives.values()
    loss = Verdict.judge(
        "lost",
        paired_difference(own_drive.reached, ported_drive.reached),
        direction="lower",
        threshold=MARGIN,
        good="The ported planner reaches about as many goals as the model's own planner.",
        bad="The ported planner is not shown to match the model's own. Fit the map on more states (--states) or with "
        "another method (--fit) if its R² is low, or drive more tasks (--tasks).",
    )
    quality = Verdict.judge("map_r2", score, direction="higher", good="R² of the map on held-out states.")
    return fitted, replace(record, verdicts=(*record.verdicts, loss, quality))
