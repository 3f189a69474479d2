"""A planner carried to another camera: A's dynamics and energy drive what B sees, through a map and with no training.

    h_A ≈ M h_B,  fitted on latents of states that both have seen:  E(M f_B(x), M f_B(g)),  and dynamics as they are

What is lost is lost in M: its R² is measured on other states. Beside the ported planner stand B's own, and the same
planner through a map that was fitted on shuffled pairs, which knows no more than where A's latents lie.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import r2
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate, Record, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap, paired_difference
from jepatlas.recipes import AnyActionWorld
from jepatlas.workflows.align import MapKind, fit_map
from jepatlas.workflows.plan.agents import agent_of, ported
from jepatlas.workflows.plan.driving import DrivingConfig, drive, drive_at_random
from jepatlas.workflows.plan.models import TrainedModel
from jepatlas.workflows.plan.record import planning_record
from jepatlas.workflows.plan.tasks import draw_tasks
from jepatlas.workflows.plan.where import refuse_other_sight

__all__ = ["MAP_STATES", "Shared", "fit_port", "port_planner", "same_world", "shared_latents"]

MAP_STATES = 1000  # further states that a map is scored on
NEAR = 0.1  # of the tasks: what a ported planner may lose


@dataclass(frozen=True)
class Shared:
    """Latents of both models for the same states."""

    a: np.ndarray  # (n, d)
    b: np.ndarray  # (n, e)

    def rows(self, which: slice | np.ndarray) -> Shared:
        return Shared(self.a[which], self.b[which])

    def shuffled(self, rng: np.random.Generator) -> Shared:
        """Pairs that do not belong together."""
        return Shared(self.a, self.b[rng.permutation(len(self.b))])


def same_world(a: TrainedModel, b: TrainedModel) -> AnyActionWorld:
    """B's world, which must be A's but for the camera."""
    if a.world is None or b.world is None:
        raise InputError(
            "Both runs must have been trained on one of our worlds, or on a file that says of which its episodes are: "
            "states of it are shown to both."
        )
    camera: Any = getattr(a.world, "camera", None)
    if a.world != (b.world if camera is None else replace(b.world, camera=camera)):  # pyright: ignore[reportCallIssue]
        raise InputError(
            f"A planner is carried between cameras on one world, but these are two: '{a.world.kind}' and "
            f"'{b.world.kind}', or the same with other settings than the camera's. Train both on the same world."
        )
    if a.recipe.stride != b.recipe.stride:
        raise InputError(
            f"A plans {a.recipe.stride} steps as one and B {b.recipe.stride}. Train both with the same --stride."
        )
    refuse_other_sight(a, a.world)  # from a file another column may be seen
    refuse_other_sight(b, b.world)
    return b.world


def shared_latents(a: TrainedModel, b: TrainedModel, count: int, seed: int) -> Shared:
    """What both see of so many states of their world, drawn evenly."""
    states = same_world(a, b).states(count, numpy_generator(seed, "shared states"))
    seen = (model.encode(model.world.observe(states)) for model in (a, b) if model.world is not None)
    return Shared(*(h.double().numpy() for h in seen))


def fit_port(kind: MapKind, pairs: Shared, apart: Shared, seed: int) -> tuple[LinearMap, Estimate]:
    """The map from B's latents to A's, and its R² on states that it was not fitted on."""
    fitted = fit_map(kind, pairs.b, pairs.a).map_
    predicted = fitted.apply(apart.b)
    score = bootstrap(lambda w: {"r2": r2(apart.a, predicted, w)}, len(predicted), numpy_generator(seed, "map"))
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
    """Drive B's camera by A's planner, by B's own, and through shuffled pairs; the map, and the record of all."""
    if states < 2:
        raise InputError(f"A map needs at least 2 shared states, but {states} were asked for.")
    config, world = driving or DrivingConfig(), same_world(a, b)
    own, other = (agent_of(model, config.planner) for model in (b, a))
    shared = shared_latents(a, b, states + MAP_STATES, seed)
    pairs, apart = shared.rows(slice(states)), shared.rows(slice(states, None))
    through, score = fit_port(kind, pairs, apart, seed)
    nothing, _ = fit_port(kind, pairs.shuffled(numpy_generator(seed, "shuffled pairs")), apart, seed)
    who = {
        f"{names[0]}'s planner": ported(other, b.encode, through, own.history),
        f"{names[1]}'s own planner": own,
        "shuffled pairs": ported(other, b.encode, nothing, own.history),
    }
    course = draw_tasks(world, tasks, seed)
    drives = {name: drive(world, agent, course, config, seed) for name, agent in who.items()}
    chance = drive_at_random(world, course, config.steps, seed, b.explored)
    about = {"map": kind, "shared states": states, "planner": config.planner.kind}
    title = f"The planner of {names[0]}, for {names[1]}"
    agent = next(iter(who.values()))
    record = planning_record(title, world, drives, chance, seed=seed, agent=agent, explored=b.explored, about=about)
    first, second, _ = drives.values()
    lost = paired_difference(second.reached, first.reached)
    return through, replace(record, verdicts=(*record.verdicts, _lost(lost), _map(score)))


def _lost(lost: Estimate) -> Verdict:
    return Verdict.judge(
        "lost",
        lost,
        direction="lower",
        threshold=NEAR,
        good="The ported planner reaches about as many goals as the model's own.",
        bad="The ported planner is not shown to come near the model's own: fit the map on more states, or look whether "
        "its R² is high enough (--fit, --states), or drive more tasks.",
    )


def _map(score: Estimate) -> Verdict:
    return Verdict.judge("map_r2", score, direction="higher", good="R² of the map, on states it was not fitted on.")
