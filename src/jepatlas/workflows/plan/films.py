"""Episodes as films: what a report shows of them.

A latent cannot be drawn. What is imagined is shown as the known frame whose latent is nearest to it, from a library of
frames: those that were held out, or of states from all over the world that is driven in. So a film of imagination is as
sharp as the library is dense.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.linear import subsample
from jepatlas.core.seeding import numpy_generator
from jepatlas.data import rows_of_episodes
from jepatlas.planning import nearest_rows
from jepatlas.workflows.plan.agents import PlanningAgent
from jepatlas.workflows.plan.driving import Drive
from jepatlas.workflows.plan.models import TrainedModel
from jepatlas.worlds import ActionWorld

__all__ = ["Films", "driven_films", "film_rows", "imagined_films"]

MOST = 40  # frames of a film; of longer episodes every second or third is shown
LIBRARY = 2000  # frames that imagined ones are looked up in

STRIPS = {"driven": "driven", "foreseen": "imagined", "goal": "goal"}  # what arrays are called, and what they show
ROWS = {"driven": "driven", "foreseen": "imagined: same start, same actions"}  # of a film as a file

Films = tuple[dict[str, np.ndarray], dict[str, Any]]
"""Arrays of frames by name, and the figure that shows them."""


def driven_films(
    world: ActionWorld, drive: Drive, count: int, agent: PlanningAgent | None = None, seed: int = 0
) -> Films:
    """Some episodes, those that failed among them, each beside its goal; none where observations are no pictures.

    With the agent that drove, each is also shown as it imagines it, from the start and the actions that it took.
    """
    arrays, panels = {}, []
    count = count if world.observe(drive.tasks.goals[:1]).ndim == 4 else 0
    known = _all_over(world, agent, seed) if agent is not None and count else None
    for number in _telling(drive.reached, count):
        steps = int(drive.steps[number])
        times = subsample(np.arange(steps + 1), MOST)
        driven = arrays[f"driven-{number}"] = world.observe(drive.states[number, times])
        if agent is not None and known is not None:
            h = _foreseen(agent, driven[:1], drive.actions[number, :steps])[times // agent.stride]
            arrays[f"foreseen-{number}"] = np.concatenate([driven[:1], known.pictures(h)[1:]])  # the start is seen
        arrays[f"goal-{number}"] = world.observe(drive.tasks.goals[number][None])
        names = {name: f"{what}-{number}" for what, name in STRIPS.items()}
        strips = [{"name": name, "frames": frames} for name, frames in names.items() if frames in arrays]
        panels.append({"title": f"Task {number + 1}: {_outcome(drive, number)}", "strips": strips})
    note = "Imagined from the start and the actions taken; each latent is shown as the nearest known frame."
    figure = {"kind": "film", "title": "Episodes, as they were driven", "panels": panels}
    return arrays, figure if known is None else figure | {"note": note}


def film_rows(arrays: Mapping[str, np.ndarray]) -> tuple[dict[str, list[np.ndarray]], list[np.ndarray]]:
    """What `write_film` takes, from the arrays of `driven_films`: rows of episodes by name, and the goal of each."""
    numbers = [name.removeprefix("driven-") for name in arrays if name.startswith("driven-")]
    rows = {name: [arrays[f"{what}-{n}"] for n in numbers if f"{what}-{n}" in arrays] for what, name in ROWS.items()}
    return {name: films for name, films in rows.items() if films}, [arrays[f"goal-{n}"] for n in numbers]


def _outcome(drive: Drive, number: int) -> str:
    steps = f"{drive.steps[number]} step{'' if drive.steps[number] == 1 else 's'}"
    if drive.reached[number]:
        return f"reached after {steps}" if drive.steps[number] else "reached at the start"
    return f"not reached in {steps}" + (", and held to be out of reach" if drive.out_of_reach[number] else "")


def _telling(reached: np.ndarray, count: int) -> list[int]:
    """Tasks to show: failures and successes by turns, as far as there are."""
    kinds = [np.flatnonzero(reached).tolist(), np.flatnonzero(~reached).tolist()]
    chosen: list[int] = []
    while len(chosen) < min(count, len(reached)):
        for kind in kinds:
            if kind and len(chosen) < count:
                chosen.append(kind.pop(0))
    return sorted(chosen)


def imagined_films(model: TrainedModel, agent: PlanningAgent, count: int, steps: int = 16) -> Films:
    """Held-out episodes as they were, and as the dynamics imagine them from the first frame and the actions alone."""
    data, stride = model.data, agent.stride
    count = count if len(data.shape) == 3 else 0  # pictures, or there is nothing to show
    long = [i for i in data.held if data.episodes.lengths[i] > steps * stride][:count]
    known = _held_out(model, agent) if long else None
    arrays, panels = {}, []
    for episode in long:
        assert known is not None
        first = data.episodes.offsets[episode]
        real = data.observations(first + stride * np.arange(steps + 1))
        done = data.episodes.rows(data.u, first + np.arange(steps * stride))
        arrays[f"real-{episode}"] = real
        arrays[f"imagined-{episode}"] = known.pictures(_foreseen(agent, real[:1], done))
        strips = [{"name": name, "frames": f"{name}-{episode}"} for name in ("real", "imagined")]
        panels.append({"title": f"Episode {episode}", "strips": strips})
    title = "Held-out episodes, as they were and as they are imagined"
    note = "Imagined from the first frame and the actions; each latent is shown as the nearest frame of a library."
    return arrays, {"kind": "film", "title": title, "note": note, "panels": panels}


@torch.no_grad()
def _foreseen(agent: PlanningAgent, start: np.ndarray, actions: np.ndarray) -> Tensor:
    """Latents from the start on, one for each action of the agent: (1, …), (t, a) → (⌈t / stride⌉ + 1, d)."""
    whole = -(-len(actions) // agent.stride)
    h = agent.see(start)
    if not whole:
        return h
    padded = np.pad(actions, ((0, whole * agent.stride - len(actions)), (0, 0))).reshape(1, whole, -1)
    return torch.cat([h, agent.dynamics.rollout(h, torch.as_tensor(padded).to(h))[0]])


@dataclass(frozen=True, eq=False)
class _Library:
    frames: np.ndarray  # (n, height, width, 3)
    latents: Tensor  # (n, d)

    def pictures(self, h: Tensor) -> np.ndarray:
        return self.frames[nearest_rows(h, self.latents).numpy()]


def _held_out(model: TrainedModel, agent: PlanningAgent) -> _Library:
    """Frames of the held-out episodes."""
    data = model.data
    rows = rows_of_episodes(data.episodes, data.held)
    rows = rows[:: max(1, len(rows) // LIBRARY)]
    return _Library(data.observations(rows), agent.see(data.observations(rows, agent.history, agent.stride)))


def _all_over(world: ActionWorld, agent: PlanningAgent, seed: int) -> _Library:
    """Frames of states from everywhere, each as if it had been there all the time."""
    frames = world.observe(world.states(LIBRARY, numpy_generator(seed, "library")))
    return _Library(frames, agent.see(frames))
