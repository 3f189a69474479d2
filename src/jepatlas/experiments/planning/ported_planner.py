"""A planner carried to another camera: dynamics and energy of one agent drive what another one sees.

Two world models are trained apart, one on rooms as they are, one on the same rooms mirrored, turned and in other
colours. A map from the second's latents to the first's is fitted on states that both are shown, and nothing is trained.
Beside the ported planner stands the second agent's own, and the same planner through a map between shuffled pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from jepatlas.core.config import to_plain
from jepatlas.core.records import Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_range
from jepatlas.experiments.planning.planning_outcomes import by_seed, difference, points, share
from jepatlas.experiments.planning.planning_runs import WORLDS, driving, model_recipe
from jepatlas.experiments.planning.ported_planner_runs import MAPS, run, through
from jepatlas.recipes import WalkedWorld, WorldModelRecipe
from jepatlas.worlds import Camera

__all__ = ["EXPERIMENT"]

NEAR = 0.1
WORLD = "small rooms"
SECOND = Camera(angle=90.0, mirror=True, palette="night")

CLAIM = Claim(
    statement="A planner can be carried to another agent's camera through a linear map of latents, with no training: "
    "it reaches about as many goals as that agent's own.",
    source="our reading of W = Q₂Q₁ᵀ in When Does LeJEPA Learn a World Model?, for dynamics and energies",
    assumed="that both latents are the world's own coordinates up to a rotation; these rooms are not Gaussian, and the "
    "latents are wider than the state, so that nothing of it is proven here",
)


@dataclass(frozen=True)
class Plan:
    steps: int  # of training
    tasks: int
    states: tuple[int, ...]  # that are shared
    seeds: int


SCALES = {
    "tiny": Plan(3, 4, (40,), 1),
    "small": Plan(1000, 100, (50, 200, 1000), 3),
    "paper": Plan(20_000, 200, (20, 50, 100, 200, 500, 1000, 5000), 5),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    common = {"driving": to_plain(driving(scale, WORLD)), "tasks": plan.tasks, "states": list(plan.states)}
    return [
        Trial({"seed": s}, run, common | {"recipes": [to_plain(one) for one in _recipes(scale, s)], "seed": s})
        for s in range(seed, seed + plan.seeds)
    ]


def _recipes(scale: Scale, seed: int) -> tuple[WorldModelRecipe, WorldModelRecipe]:
    """Two agents with episodes, weights and a camera of their own."""
    steps = SCALES[scale].steps
    first, second = (model_recipe(scale, 2 * seed + number, WORLD, "IE-JEPA", steps) for number in range(2))
    assert isinstance(second.source, WalkedWorld)
    world = replace(WORLDS[WORLD].world, camera=SECOND)
    return first, replace(second, source=replace(second.source, world=world))


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if the planner through the ridge map of most states is shown to lose at most NEAR against the agent's
    own, and shuffled pairs are behind; in part if it is ahead of shuffled pairs."""
    states = SCALES[scale].states
    best = through("ridge", states[-1])
    lost = difference(results, results, ("own", best))
    gained = difference(results, results, (best, "shuffled"))
    near, ahead = lost.high <= NEAR, gained.low > 0
    said = {name: cell(share(results, name), 2) for name in ("own", best, "shuffled", "chance", "home")}
    return Finding(
        "holds" if near and ahead else "holds in part" if ahead else "does not hold",
        f"On the second camera the ported planner reaches {said[best]} of the goals and the agent's own {said['own']}: "
        f"points lost {points(lost)}, on the same tasks. Through shuffled pairs {said['shuffled']}, by random actions "
        f"{said['chance']}; at home, on its own camera, the planner reaches {said['home']}, and on the way it loses "
        f"{points(difference(results, results, ('home', best)))} points. The ridge map of "
        f"{states[-1]} states has an R² of {cell(mean_and_range(results, f'{best}_r2'))}. "
        f"By {_sweep(results, states)}.",
        short=f"{share(results, best).value:.2f} ported, {share(results, 'own').value:.2f} own",
        verdicts=(
            Verdict.judge(
                "lost",
                lost,
                direction="lower",
                threshold=NEAR,
                good="The ported planner is near the agent's own.",
                bad="The ported planner is not shown to be near the agent's own.",
            ),
            Verdict.judge(
                "beyond_shuffled",
                gained,
                direction="higher",
                threshold=0.0,
                good="What is carried is in the pairing of the states.",
                bad="Shuffled pairs do as well, so nothing is carried.",
            ),
        ),
        figures=(_figure(results, states),),
        tables=(_table(results, states),),
    )


def _sweep(results: Sequence[Result], states: Sequence[int]) -> str:
    return "; by ".join(
        f"{kind} " + ", ".join(f"{share(results, through(kind, n)).value:.2f} from {n} states" for n in states)
        for kind in MAPS
    )


def _figure(results: Sequence[Result], states: Sequence[int]) -> dict[str, Any]:
    flat = {"the agent's own": "own", "shuffled pairs": "shuffled", "random actions": "chance"}
    success = [curve(kind, states, [share(results, through(kind, n)) for n in states]) for kind in MAPS]
    success += [
        {"name": title, "x": list(states), "y": [share(results, name).value] * len(states), "dash": True}
        for title, name in flat.items()
    ]
    fits = [curve(kind, states, [mean_and_range(results, f"{through(kind, n)}_r2") for n in states]) for kind in MAPS]
    return {
        "kind": "curves",
        "title": "A planner on another camera",
        "x_label": "shared states",
        "y_label": "",
        "log_x": True,
        "panels": [
            {"title": "share of goals reached [95%]", "series": success},
            {"title": "R² of the map [extremes]", "series": fits},
        ],
    }


def _table(results: Sequence[Result], states: Sequence[int]) -> dict[str, Any]:
    maps = {f"ported, {kind}, {n} states": through(kind, n) for kind in MAPS for n in states}
    who = (
        {"agent 2's own planner": "own"}
        | maps
        | {"ported, shuffled pairs": "shuffled", "random actions": "chance", "agent 1's planner at home": "home"}
    )
    rows = [
        [
            title,
            cell(share(results, name), 2),
            by_seed(results, name),
            share(results, name).n,
            points(difference(results, results, (name, "own"))),
            cell(mean_and_range(results, f"{name}_r2")),
        ]
        for title, name in who.items()
    ]
    columns = [
        "who drives",
        "goals reached [95%]",
        "of each seed",
        "tasks",
        "points beside agent 2's own",
        "R² of the map, mean over seeds [extremes]",
    ]
    return {"title": "Agent 1's planner on agent 2's camera", "columns": columns, "rows": rows}


EXPERIMENT = Experiment("ported-planner", "A planner carried to another camera", CLAIM, trials, conclude)
