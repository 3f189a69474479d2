"""Rendering of rooms and mazes at 64×64: blending whole images, compared with the patch around the agent.

Then 1,000 steps with images: gymnasium environments one after the other, compared with batches of the world. Rendering
must reach 5,000 frames per CPU-second, also in environments: 200 ms for 1,000 frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measurement import Comparison, compare
from jepatlas.worlds import ActionEnv, FlatWorld, Maze, Rooms

__all__ = ["run"]

FRAMES, TURNS = 1_000, 7
WORLDS = {
    "rooms": Rooms(),
    "rooms, one-way": Rooms(size="big", one_way=True),
    "maze 5×5": Maze(),
    "maze 8×8, one-way": Maze(cells=8, loops=6, one_way=True),
}


def run(frames: int = FRAMES, turns: int = TURNS) -> Iterator[Comparison]:
    with threadpool_limits(1):
        for name, world in WORLDS.items():
            yield from _compared(f"{name}, {frames} frames", world, frames, turns)


def _compared(name: str, world: FlatWorld, frames: int, turns: int) -> Iterator[Comparison]:
    rng = np.random.default_rng(0)
    states, actions = world.states(frames, rng), rng.uniform(-1, 1, (frames, 2)).astype(np.float32)
    drawn = f"{name}, pictures: every pixel blended, the patch round the agent"
    yield compare(drawn, _whole(world, states), lambda: world.render(states), turns)
    env = world.make()
    env.reset(seed=0, options={"goal": None})
    stepped = f"{name}, steps with pictures: one environment, rows of the world"
    yield compare(stepped, lambda: _episode(env, actions), lambda: world.observe(world.step(states, actions)), turns)


def _whole(world: FlatWorld, states: np.ndarray) -> Callable[[], object]:
    """Images by their definition: cover · agent + (1 − cover) · ground at every pixel."""
    ground = np.median(world.render(states), axis=0).astype(np.float32)  # in most images the agent is elsewhere
    agent = np.array(world.camera.colours.agent, dtype=np.float32)
    at, radius = np.arange(64) + 0.5, world.radius * world.camera.scale

    def draw() -> list[np.ndarray]:
        pictures = []
        for row, column in world.camera.project(states):
            within = np.clip((radius + 1 - np.hypot(at[:, None] - row, at - column)) / 2, 0, 1)
            cover = (within**2 * (3 - 2 * within))[..., None]
            pictures.append(np.rint(cover * agent + (1 - cover) * ground).astype(np.uint8))
        return pictures

    return draw


def _episode(env: ActionEnv, actions: np.ndarray) -> None:
    for action in actions:
        env.step(action)
