"""Where the episodes of a world model come from: a world that is walked anew, or a file; and which are held out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from gymnasium.spaces import Box

from jepatlas.base.errors import InputError
from jepatlas.base.seeding import numpy_generator
from jepatlas.recipes.sealed_files import refuse_changed, seal
from jepatlas.views import EpisodeArrays, EpisodeFile, RandomPolicy, split_episodes
from jepatlas.worlds import (
    ActionWorld,
    LinearQuadratic,
    Maze,
    OrnsteinUhlenbeckMotion,
    Reacher,
    Rooms,
    SACMotion,
    ScriptedMotion,
)

__all__ = ["AnyActionWorld", "EpisodeSource", "HeldOut", "WalkedWorld", "gather_episodes", "walk"]

HELD = 0.1  # share of the episodes that nothing is learned from

AnyActionWorld = Rooms | Maze | Reacher | LinearQuadratic
AnyMotion = RandomPolicy | OrnsteinUhlenbeckMotion | ScriptedMotion | SACMotion


@dataclass(frozen=True)
class WalkedWorld:
    """A world, and how it is explored: by any actions, or (Reacher) along trajectories of a known law or policy."""

    kind: ClassVar[str] = "walk"

    world: AnyActionWorld = field(default_factory=Rooms)
    motion: AnyMotion = field(default_factory=lambda: RandomPolicy(persistence=0.8))
    """What moves it. Trajectories of Reacher's own motions have no actions."""
    episodes: int = 500
    """Episodes, of which a tenth is held out."""
    length: int = 64
    """Steps of each."""

    def __post_init__(self) -> None:
        for name in ("episodes", "length"):
            if not 1 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} must be at least 1, but {getattr(self, name)} was given.")
        if not isinstance(self.motion, RandomPolicy) and not isinstance(self.world, Reacher):
            raise InputError(
                f"The motion '{self.motion.kind}' is one of Reacher's, but the world is '{self.world.kind}'. Choose "
                "--motion random, or --world reacher."
            )


@dataclass(frozen=True)
class EpisodeSource:
    """A file of episodes, as `jepatlas collect` writes them and stable-worldmodel has them."""

    kind: ClassVar[str] = "file"

    path: str = ""
    """The HDF5 file."""
    observation: str = "pixels"
    """The column that is seen."""
    action: str = "action"
    """The column of what was done."""
    state: str | None = "state"
    """The column of the true state, where there is one."""
    sha256: str | None = None
    """What it must hash to; set when a run begins, so that a run that goes on learns from the same episodes."""

    def sealed(self) -> EpisodeSource:
        path, sha256 = seal(self.path)
        return replace(self, path=path, sha256=sha256)

    def open(self) -> EpisodeFile:
        return EpisodeFile(refuse_changed(self.path, self.sha256))


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
        shape = self.episodes.columns[self.x].shape
        return (shape[2], *shape[:2]) if len(shape) == 3 else shape

    @property
    def action_dim(self) -> int:
        return int(np.prod(self.episodes.columns[self.u].shape))


def gather_episodes(source: WalkedWorld | EpisodeSource, seed: int) -> HeldOut:
    if isinstance(source, WalkedWorld):
        episodes, names = walk(source, seed), ("seen", "action", "state")
    else:
        episodes, names = source.open(), (source.observation, source.action, source.state)
        for name in names:
            if name is not None and name not in episodes.columns:
                known = ", ".join(episodes.columns)
                raise InputError(f"{source.path} has no column '{name}', but {known}. Name the one that is meant.")
    if len(episodes) < 2:
        raise InputError("There is one episode only, but one must be held out to judge by. Give more.")
    return HeldOut(episodes, *names, *split_episodes(len(episodes), max(HELD, 1 / len(episodes)), seed))


def walk(source: WalkedWorld, seed: int) -> EpisodeArrays:
    """The episodes of a world, in memory: what was seen, done and true at every moment."""
    world = source.world
    if isinstance(source.motion, RandomPolicy):
        states, actions = _explore(world, source.motion, source.episodes, source.length, seed)
    else:
        assert isinstance(world, Reacher)
        states = source.motion.trajectory(world, source.episodes, source.length + 1, seed)
        actions = np.empty((*states.shape[:2], 0), np.float32)  # nothing is known of what moved the arm
    flat = states.reshape(-1, states.shape[-1])
    columns = {"seen": world.observe(flat), "action": actions.reshape(len(flat), -1), "state": flat}
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
