"""Films of episodes: arrays and figures for a record, and GIF or MP4 files.

A latent cannot be decoded. An imagined latent is shown as the frame with the nearest latent in a library: the held-out
frames, or frames of random states of the world. A film of imagination is therefore as sharp as the library is dense.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.errors import InputError, require
from jepatlas.core.figures import Film, FilmPanel, FilmStrip
from jepatlas.core.files import write_bytes
from jepatlas.core.linear import subsample
from jepatlas.core.seeding import numpy_generator
from jepatlas.data import rows_of_episodes
from jepatlas.planning import nearest_rows
from jepatlas.workflows.plan.driving import Drive
from jepatlas.workflows.plan.planning_agent import PlanningAgent
from jepatlas.workflows.plan.trained_world_model import TrainedModel
from jepatlas.worlds import ActionWorld

__all__ = ["Films", "check_film", "driven_films", "film_rows", "imagined_films", "write_film"]

MAX_FRAMES = 40  # of a film in a record; longer episodes are subsampled
LIBRARY_SIZE = 2000  # frames of the library of imagined films

ZOOM = 3  # pixels of a film file per pixel of the world
FRAMES_PER_SECOND = 10
REST = 9  # additional frames for which the last one is shown
GOAL_OPACITY = 0.3
BAND = 14  # height of the title above each row, in pixels
ROW_COLOURS = ((0, 0, 0), (214, 120, 0), (0, 110, 170))

ROW_TITLES = {"driven": "driven", "foreseen": "imagined: same start, same actions"}

Films = tuple[dict[str, np.ndarray], Film]
"""Arrays of frames by name, and the figure that shows them."""


def driven_films(
    world: ActionWorld, drive: Drive, count: int, agent: PlanningAgent | None = None, seed: int = 0
) -> Films:
    """Some episodes, failures among them, each with its goal; no films if observations are not images.

    With the agent, each episode is also shown as imagined from its start and its actions.
    """
    if world.observe(drive.tasks.goals[:1]).ndim != 4:
        count = 0
    library = _world_library(world, agent, seed) if agent is not None and count else None
    arrays, panels = {}, []
    for number in _mixed_outcomes(drive.reached, count):
        steps = int(drive.steps[number])
        times = subsample(np.arange(steps + 1), MAX_FRAMES)
        driven = world.observe(drive.states[number, times])
        strips = [FilmStrip("driven", f"driven-{number}")]
        arrays[f"driven-{number}"] = driven
        if agent is not None and library is not None:
            h = _imagine(agent, driven[:1], drive.actions[number, :steps])[times // agent.stride]
            arrays[f"foreseen-{number}"] = np.concatenate([driven[:1], library.frames_of(h)[1:]])
            strips.append(FilmStrip("imagined", f"foreseen-{number}"))
        arrays[f"goal-{number}"] = world.observe(drive.tasks.goals[number][None])
        strips.append(FilmStrip("goal", f"goal-{number}"))
        panels.append(FilmPanel(strips, title=f"Task {number + 1}: {_outcome(drive, number)}"))
    note = None
    if library is not None:
        note = "Imagined from the start and the executed actions; each latent is shown as the nearest known frame."
    return arrays, Film(title="Driven episodes", note=note, panels=panels)


def film_rows(arrays: Mapping[str, np.ndarray]) -> tuple[dict[str, list[np.ndarray]], list[np.ndarray]]:
    """Arguments of `write_film` from the arrays of `driven_films`: rows of episodes by title, and the goals."""
    numbers = [name.removeprefix("driven-") for name in arrays if name.startswith("driven-")]
    rows = {}
    for kind, title in ROW_TITLES.items():
        films = [arrays[f"{kind}-{number}"] for number in numbers if f"{kind}-{number}" in arrays]
        if films:
            rows[title] = films
    return rows, [arrays[f"goal-{number}"] for number in numbers]


def _outcome(drive: Drive, number: int) -> str:
    steps = int(drive.steps[number])
    duration = f"{steps} step" if steps == 1 else f"{steps} steps"
    if drive.reached[number]:
        return f"reached after {duration}" if steps else "reached at the start"
    suffix = " (the agent's energy was +∞)" if drive.unreachable[number] else ""
    return f"not reached in {duration}{suffix}"


def _mixed_outcomes(reached: np.ndarray, count: int) -> list[int]:
    """Indices of tasks to show, alternating between successes and failures while both last."""
    remaining = [np.flatnonzero(reached).tolist(), np.flatnonzero(~reached).tolist()]
    chosen: list[int] = []
    while len(chosen) < min(count, len(reached)):
        for outcome in remaining:
            if outcome and len(chosen) < count:
                chosen.append(outcome.pop(0))
    return sorted(chosen)


def imagined_films(model: TrainedModel, agent: PlanningAgent, count: int, steps: int = 16) -> Films:
    """Held-out episodes, and the same as imagined from the first frame and the actions alone."""
    data, stride = model.data, agent.stride
    images = len(data.shape) == 3
    episodes = [i for i in data.held if data.episodes.lengths[i] > steps * stride][: count if images else 0]
    arrays, panels = {}, []
    library = _held_out_library(model, agent) if episodes else None
    for episode in episodes:
        assert library is not None
        first = data.episodes.offsets[episode]
        real = data.observations(first + stride * np.arange(steps + 1))
        actions = data.episodes.rows(data.u, first + np.arange(steps * stride))
        arrays[f"real-{episode}"] = real
        arrays[f"imagined-{episode}"] = library.frames_of(_imagine(agent, real[:1], actions))
        strips = [FilmStrip(name, f"{name}-{episode}") for name in ("real", "imagined")]
        panels.append(FilmPanel(strips, title=f"Episode {episode}"))
    note = "Imagined from the first frame and the actions; each latent is shown as the nearest held-out frame."
    return arrays, Film(title="Held-out episodes, real and imagined", note=note, panels=panels)


def _imagine(agent: PlanningAgent, start: np.ndarray, actions: np.ndarray) -> Tensor:
    """Latents from the start on, one per action of the agent: (1, …), (t, a) → (⌈t / stride⌉ + 1, d)."""
    count = -(-len(actions) // agent.stride)
    with torch.no_grad():
        h = agent.encode(start)
        if not count:
            return h
        padding = count * agent.stride - len(actions)
        padded = np.pad(actions, ((0, padding), (0, 0))).reshape(1, count, -1)
        return torch.cat([h, agent.dynamics.rollout(h, torch.as_tensor(padded).to(h))[0]])


@dataclass(frozen=True, eq=False)
class _FrameLibrary:
    frames: np.ndarray  # (n, height, width, 3)
    latents: Tensor  # (n, d)

    def frames_of(self, h: Tensor) -> np.ndarray:
        """The frames with the nearest latents."""
        return self.frames[nearest_rows(h, self.latents).numpy()]


def _held_out_library(model: TrainedModel, agent: PlanningAgent) -> _FrameLibrary:
    data = model.data
    rows = rows_of_episodes(data.episodes, data.held)
    rows = rows[:: max(1, len(rows) // LIBRARY_SIZE)]
    latents = agent.encode(data.observations(rows, agent.history, agent.stride))
    return _FrameLibrary(data.observations(rows), latents)


def _world_library(world: ActionWorld, agent: PlanningAgent, seed: int) -> _FrameLibrary:
    """Frames of random states; with a history, each frame is repeated."""
    frames = world.observe(world.states(LIBRARY_SIZE, numpy_generator(seed, "library")))
    return _FrameLibrary(frames, agent.encode(frames))


def write_film(path: Path, rows: Mapping[str, Sequence[np.ndarray]], goals: Sequence[np.ndarray]) -> None:
    """Write rows of episodes (t, height, width, 3) by title, side by side, with their goals blended in.

    Shorter episodes wait at their last frame.
    """
    check_film(path)
    longest = max(len(film) for films in rows.values() for film in films)
    images = []
    for i, (title, films) in enumerate(rows.items()):
        images.append(_draw_row(title, films, goals, longest, ROW_COLOURS[i % len(ROW_COLOURS)]))
    write_bytes(path, _WRITERS[path.suffix.lower()](np.concatenate(images, axis=1)))


def check_film(path: Path, world: ActionWorld | None = None) -> None:
    """Raise InputError if the file type or the world does not allow a film; call before a long drive."""
    if path.suffix.lower() not in _WRITERS:
        raise InputError(f"A film must be a .gif or .mp4 file, but the path is {path}.")
    require("PIL.Image", "vision", "Drawing a film")
    if path.suffix.lower() == ".mp4":
        require("imageio_ffmpeg", "vision", "Writing an MP4")
    if world is not None and world.observe(world.states(1, np.random.default_rng(0))).ndim != 4:
        raise InputError(f"Observations of the world '{world.kind}' are not images, so it has no film. Omit --film.")


def _draw_row(
    title: str, films: Sequence[np.ndarray], goals: Sequence[np.ndarray], longest: int, colour: tuple[int, int, int]
) -> np.ndarray:
    """Episodes side by side, each in a coloured frame, below a band with the title."""
    framed = []
    for film, goal in zip(films, goals, strict=True):
        blended = ((1 - GOAL_OPACITY) * film + GOAL_OPACITY * goal).astype(np.uint8)
        waiting = blended[np.minimum(np.arange(longest + REST), len(film) - 1)]
        framed.append(_add_frame(waiting, colour))
    images = np.concatenate(framed, axis=2).repeat(ZOOM, 1).repeat(ZOOM, 2)
    width = images.shape[2]
    band = np.broadcast_to(_title_band(title, width, colour), (len(images), BAND, width, 3))
    return np.concatenate([band, images], axis=1)


def _add_frame(film: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
    framed = np.empty((len(film), film.shape[1] + 2, film.shape[2] + 2, 3), np.uint8)
    framed[:] = colour
    framed[:, 1:-1, 1:-1] = film
    return framed


def _title_band(title: str, width: int, colour: tuple[int, int, int]) -> np.ndarray:
    image = require("PIL.Image", "vision", "Drawing a film")
    draw = require("PIL.ImageDraw", "vision", "Drawing a film")
    band = image.new("RGB", (width, BAND), colour)
    draw.Draw(band).text((3, 1), title, fill=(255, 255, 255))
    return np.asarray(band)


def _gif(film: np.ndarray) -> bytes:
    image = require("PIL.Image", "vision", "Writing a GIF")
    first, *others = (image.fromarray(frame) for frame in film)
    buffer = io.BytesIO()
    duration = 1000 // FRAMES_PER_SECOND
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=duration, loop=0)
    return buffer.getvalue()


def _mp4(film: np.ndarray) -> bytes:
    ffmpeg = require("imageio_ffmpeg", "vision", "Writing an MP4")
    height, width = (side - side % 2 for side in film.shape[1:3])  # the codec needs even sides
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "film.mp4"
        writer = ffmpeg.write_frames(str(place), (width, height), fps=FRAMES_PER_SECOND, macro_block_size=2)
        writer.send(None)
        for frame in film[:, :height, :width]:
            writer.send(np.ascontiguousarray(frame))
        writer.close()
        return place.read_bytes()


_WRITERS: dict[str, Callable[[np.ndarray], bytes]] = {".gif": _gif, ".mp4": _mp4}
