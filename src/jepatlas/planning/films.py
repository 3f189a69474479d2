"""Episodes as films: what a report shows of them.

A latent cannot be drawn. What is imagined is shown as the observed frame whose latent is nearest to it, from a library
of frames that were held out: so a film of imagination is as sharp as the library is dense.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from jepatlas.plan import nearest_rows
from jepatlas.planning.agents import PlanningAgent
from jepatlas.planning.driving import Drive
from jepatlas.planning.models import TrainedModel
from jepatlas.views import rows_of_episodes
from jepatlas.worlds import ActionWorld

__all__ = ["Films", "driven_films", "imagined_films"]

MOST = 40  # frames of a film; of longer episodes every second or third is shown
LIBRARY = 2000  # frames that imagined ones are looked up in

Films = tuple[dict[str, np.ndarray], dict[str, Any]]
"""Arrays of frames by name, and the figure that shows them."""


def driven_films(world: ActionWorld, drive: Drive, count: int) -> Films:
    """Some episodes, those that failed among them, each beside its goal; none where observations are no pictures."""
    arrays, panels = {}, []
    count = count if world.observe(drive.tasks.goals[:1]).ndim == 4 else 0
    for number in _telling(drive.reached, count):
        steps = int(drive.steps[number])
        times = np.linspace(0, steps, min(steps + 1, MOST)).round().astype(int)
        arrays[f"driven-{number}"] = world.observe(drive.states[number, times])
        arrays[f"goal-{number}"] = world.observe(drive.tasks.goals[number][None])
        said = f"reached after {steps} steps" if drive.reached[number] else f"not reached in {steps} steps"
        strips = [{"name": "driven", "frames": f"driven-{number}"}, {"name": "goal", "frames": f"goal-{number}"}]
        panels.append({"title": f"Task {number + 1}: {said}", "strips": strips})
    return arrays, {"kind": "film", "title": "Episodes, as they were driven", "panels": panels}


def _telling(reached: np.ndarray, count: int) -> list[int]:
    """Tasks to show: failures and successes by turns, as far as there are."""
    kinds = [np.flatnonzero(reached).tolist(), np.flatnonzero(~reached).tolist()]
    chosen: list[int] = []
    while len(chosen) < min(count, len(reached)):
        for kind in kinds:
            if kind and len(chosen) < count:
                chosen.append(kind.pop(0))
    return sorted(chosen)


@torch.no_grad()
def imagined_films(model: TrainedModel, agent: PlanningAgent, count: int, steps: int = 16) -> Films:
    """Held-out episodes as they were, and as the dynamics imagine them from the first frame and the actions alone."""
    data, stride = model.data, agent.stride
    library = _library(model)
    latents = agent.see(library)
    count = count if len(data.shape) == 3 else 0  # pictures, or there is nothing to show
    long = [i for i in data.held if data.episodes.lengths[i] > steps * stride][:count]
    arrays, panels = {}, []
    for episode in long:
        first = data.episodes.offsets[episode]
        real = data.episodes.rows(data.x, first + stride * np.arange(steps + 1))
        done = data.episodes.rows(data.u, first + np.arange(steps * stride)).reshape(1, steps, -1)
        start = agent.see(real[:1])
        h = torch.cat([start[:, None], agent.dynamics.rollout(start, torch.as_tensor(done).to(start))], 1)[0]
        arrays[f"real-{episode}"] = real
        arrays[f"imagined-{episode}"] = library[nearest_rows(h, latents).numpy()]
        strips = [{"name": name, "frames": f"{name}-{episode}"} for name in ("real", "imagined")]
        panels.append({"title": f"Episode {episode}", "strips": strips})
    title = "Held-out episodes, as they were and as they are imagined"
    note = "Imagined from the first frame and the actions; each latent is shown as the nearest frame of a library."
    return arrays, {"kind": "film", "title": title, "note": note, "panels": panels}


def _library(model: TrainedModel) -> np.ndarray:
    data = model.data
    rows = rows_of_episodes(data.episodes, data.held)
    return data.episodes.rows(data.x, rows[:: max(1, len(rows) // LIBRARY)])
