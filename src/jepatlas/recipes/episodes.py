"""The episodes that a world model learns from, and those that are held out to judge it by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Box

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import numpy_generator
from jepatlas.data import (
    EpisodeArrays,
    EpisodeFile,
    RandomPolicy,
    RenderedColumn,
    channels_last,
    history_rows,
    network_shape,
    split_episodes,
    stack_history,
)
from jepatlas.recipes.episode_sources import EpisodeSource, WalkedWorld
from jepatlas.worlds import ActionWorld, Reacher

__all__ = ["HeldOut", "gather_episodes", "walk"]

HELD = 0.1  # share of the episodes that nothing is learned from


@dataclass(frozen=True)
class HeldOut:
    """Episodes with the names of their columns, and which of them are to be learned from and which judged by."""

    episodes: EpisodeFile | EpisodeArrays
    x: str
    u: str
    z: str | None
    learnt: np.ndarray  # (E,)
    held: np.ndarray  # (E,)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an observation as a network sees it: channels first where it is a picture."""
        return network_shape(self.episodes.columns[self.x].shape)

    @property
    def action_dim(self) -> int:
        return int(np.prod(self.episodes.columns[self.u].shape))

    def seen(self, rows: np.ndarray, history: int = 1, stride: int = 1) -> np.ndarray:
        """What is seen at these rows, together with the frames before them, as a world gives it: (b,) → (b, …, m c)."""
        row, together = self.episodes.columns[self.x].shape, history_rows(self.episodes, rows, history, stride)
        frames = channels_last(self.episodes.rows(self.x, together).reshape(*together.shape, *row or (1,)), row)
        return stack_history(list(np.moveaxis(frames, 1, 0)), history)


def gather_episodes(source: WalkedWorld | EpisodeSource, seed: int) -> HeldOut:
    if isinstance(source, WalkedWorld):
        episodes, names = walk(source, seed), ("seen", "action", "state")
    else:
        episodes = source.open()
        names = source.names(episodes)
    if len(episodes) < 2:
        raise InputError("There is one episode only, but one must be held out to judge by. Give more.")
    return HeldOut(episodes, *names, *split_episodes(len(episodes), max(HELD, 1 / len(episodes)), seed))


def walk(source: WalkedWorld, seed: int) -> EpisodeArrays:
    """The episodes of a world: what was done and true at every moment; pictures of it are drawn when asked for."""
    world = source.world
    if isinstance(source.motion, RandomPolicy):
        states, actions = _explore(world, source.motion, source.episodes, source.length, seed)
    else:
        assert isinstance(world, Reacher)
        states = source.motion.trajectory(world, source.episodes, source.length + 1, seed)
        actions = np.empty((*states.shape[:2], 0), np.float32)  # nothing is known of what moved the arm
    flat = states.reshape(-1, states.shape[-1])
    pictures = world.observe(flat[:1]).dtype == np.uint8  # numbers are cheap, and a sum's bits depend on the others
    seen = RenderedColumn(world.observe, flat) if pictures else world.observe(flat)
    columns = {"seen": seen, "action": actions.reshape(len(flat), -1), "state": flat}
    return EpisodeArrays(columns, np.full(len(states), states.shape[1]))


def _explore(
    world: ActionWorld, policy: RandomPolicy, episodes: int, length: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """All episodes at once: states (e, t + 1, n) and actions (e, t + 1, a), the last of which is never taken."""
    rng = numpy_generator(seed, "explore")
    act = policy.begin(Box(-1.0, 1.0, (episodes, world.action_dim), np.float64))
    states, actions = [world.states(episodes, rng)], []
    for _ in range(length):
        actions.append(act(None, {}, rng))
        states.append(world.step(states[-1], actions[-1]))
    actions.append(np.full_like(actions[-1], np.nan))
    return np.stack(states, 1), np.stack(actions, 1).astype(np.float32)
