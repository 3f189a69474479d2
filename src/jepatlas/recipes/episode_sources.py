"""Sources of the episodes of a world model: random exploration of a world, or a file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from jepatlas.core.config import choices, from_plain
from jepatlas.core.errors import InputError
from jepatlas.core.lazy import lazy_import
from jepatlas.core.plugins import short_name
from jepatlas.core.sealing import check_unchanged, seal_file
from jepatlas.core.seeding import numpy_generator
from jepatlas.data import EpisodeFile, RandomPolicy
from jepatlas.worlds import (
    LinearQuadratic,
    Maze,
    OrnsteinUhlenbeckMotion,
    Reacher,
    Rooms,
    SACMotion,
    ScriptedMotion,
)

if TYPE_CHECKING:
    from jepatlas.data import EpisodeArrays, episode_formats
    from jepatlas.worlds import ActionWorld
else:
    episode_formats = lazy_import("jepatlas.data.episode_formats")  # its readers import torch and gymnasium

__all__ = [
    "AnyActionWorld",
    "EpisodeSource",
    "EpisodeSplit",
    "WalkedWorld",
    "gather_episodes",
    "policy_of_file",
    "walk",
    "world_of_file",
]

AnyActionWorld = Rooms | Maze | Reacher | LinearQuadratic
AnyMotion = RandomPolicy | OrnsteinUhlenbeckMotion | ScriptedMotion | SACMotion

OBSERVATIONS = ("pixels", "observation", "state")  # the first of these columns that a file has is observed
STATE = "state"
HELD = 0.1  # share of the episodes that is held out
T = TypeVar("T")


@dataclass(frozen=True)
class WalkedWorld:
    """A world, and how it is explored: by random actions, or (Reacher) along trajectories of a known law or policy."""

    kind: ClassVar[str] = "walk"

    world: AnyActionWorld = field(default_factory=Rooms)
    motion: AnyMotion = field(default_factory=lambda: RandomPolicy(persistence=0.8))
    """What moves the world. The motions of Reacher give trajectories without actions."""
    episodes: int = 500
    """Number of episodes. A tenth of them is held out."""
    length: int = 64
    """Number of steps of each episode."""

    def __post_init__(self) -> None:
        for name in ("episodes", "length"):
            if not 1 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} must be at least 1, but {getattr(self, name)} was given.")
        if self.motion.kind != RandomPolicy.kind and self.world.kind != Reacher.kind:
            raise InputError(
                f"The motion '{self.motion.kind}' is for the reacher, but the world is '{self.world.kind}'. Choose "
                f"--motion {RandomPolicy.kind}, or --world {Reacher.kind}."
            )

    @property
    def name(self) -> str:
        return short_name(self.world)

    @property
    def observes_vectors(self) -> bool:
        return self.world.observe(self.world.states(1, numpy_generator(0, "observed"))).ndim == 2

    def sealed(self) -> WalkedWorld:
        """The walk itself: it reads no file."""
        return self

    def gather(self, seed: int) -> tuple[EpisodeArrays, tuple[str, str, str | None]]:
        """The episodes, and their columns of observations, actions and true states."""
        return walk(self, seed), ("seen", "action", "state")

    def known_world(self, episodes: EpisodeFile | EpisodeArrays) -> AnyActionWorld | None:
        """The world of the episodes."""
        return self.world

    def known_policy(self, episodes: EpisodeFile | EpisodeArrays) -> RandomPolicy | None:
        """The random policy that explored it; None for other motions."""
        return self.motion if isinstance(self.motion, RandomPolicy) else None


@dataclass(frozen=True)
class EpisodeSource:
    """Episodes at a path, in any format that `jepatlas.data.open_episodes` reads."""

    kind: ClassVar[str] = "file"

    path: str = ""
    """The HDF5 file, as `jepatlas collect` writes it, or a folder of LeRobot (version 3), Minari, Lance, or .npz files
    with one episode each."""
    observation: str | None = None
    """The column of observations. By default the first of 'pixels', 'observation' and 'state' that the file has."""
    action: str = "action"
    """The column of actions."""
    state: str | None = STATE
    """The column of true states, or 'none' if they are unknown. A file need not have a column 'state'."""
    sha256: str | None = None
    """Hash of the file. It is set when a run starts, and checked when the run is resumed."""

    @property
    def name(self) -> str:
        return Path(self.path).stem

    def sealed(self) -> EpisodeSource:
        """With the absolute path and the hash of the file."""
        path, sha256 = seal_file(self.path)
        return replace(self, path=path, sha256=sha256)

    @property
    def observes_vectors(self) -> bool:
        file = self.open()
        return len(file.columns[self.observation_column(file)].shape) != 3

    def gather(self, seed: int) -> tuple[EpisodeFile | EpisodeArrays, tuple[str, str, str | None]]:
        """The episodes, and their columns of observations, actions and true states."""
        file = self.open()
        return file, self.columns(file)

    def known_world(self, episodes: EpisodeFile | EpisodeArrays) -> AnyActionWorld | None:
        """The world that the file records, if any."""
        return world_of_file(episodes)

    def known_policy(self, episodes: EpisodeFile | EpisodeArrays) -> RandomPolicy | None:
        """The policy that the file records, if any."""
        return policy_of_file(episodes)

    def open(self) -> EpisodeFile | EpisodeArrays:
        return episode_formats.open_episodes(check_unchanged(self.path, self.sha256))

    def observation_column(self, file: EpisodeFile | EpisodeArrays) -> str:
        default = next((name for name in OBSERVATIONS if name in file.columns), OBSERVATIONS[0])
        return self._existing(file, "observation", self.observation or default)

    def columns(self, file: EpisodeFile | EpisodeArrays) -> tuple[str, str, str | None]:
        """The columns of observations, actions and true states; the last is None if they are unknown."""
        unknown = self.state in (None, "none") or (self.state == STATE and STATE not in file.columns)
        state = None if unknown or self.state is None else self._existing(file, "state", self.state)
        return self.observation_column(file), self._existing(file, "action", self.action), state

    def _existing(self, file: EpisodeFile | EpisodeArrays, option: str, name: str) -> str:
        if name not in file.columns:
            known = ", ".join(file.columns)
            raise InputError(
                f"{self.path} has no column '{name}'. Its columns are {known}. Choose one with --source.{option}."
            )
        return name


def world_of_file(file: EpisodeFile | EpisodeArrays) -> AnyActionWorld | None:
    """The world that a file was collected in, or None if the file does not name a world of this version."""
    given = file.about.get("world")
    kind = choices(AnyActionWorld).get(str(given.get("kind"))) if isinstance(given, dict) else None
    return None if kind is None else _parsed(kind, given, "the world of the episodes")


def policy_of_file(file: EpisodeFile | EpisodeArrays) -> RandomPolicy | None:
    """The random policy that a file was collected with, or None if the file does not name one."""
    given = file.about.get("policy")
    known = isinstance(given, dict) and given.get("kind") == RandomPolicy.kind
    return _parsed(RandomPolicy, given, "the policy of the episodes") if known else None


def _parsed(kind: type[T], given: Any, where: str) -> T | None:
    try:
        return from_plain(kind, given, where)
    except InputError:  # written by a version with other settings
        return None


@dataclass(frozen=True)
class EpisodeSplit:
    """Episodes with the names of their columns, split into episodes for training and held-out episodes."""

    episodes: EpisodeFile | EpisodeArrays
    x: str
    u: str
    z: str | None
    learnt: np.ndarray  # (E,)
    held: np.ndarray  # (E,)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an observation as a network receives it: channels first for pictures."""
        from jepatlas.data import network_shape

        return network_shape(self.episodes.columns[self.x].shape)

    @property
    def action_dim(self) -> int:
        return int(np.prod(self.episodes.columns[self.u].shape))

    def observations(self, rows: np.ndarray, history: int = 1, stride: int = 1) -> np.ndarray:
        """Observations at these rows, stacked with the `history` − 1 frames before them: (b,) → (b, …, m c)."""
        from jepatlas.data import channels_last, history_rows, stack_history

        shape = self.episodes.columns[self.x].shape
        together = history_rows(self.episodes, rows, history, stride)
        frames = self.episodes.rows(self.x, together).reshape(*together.shape, *shape or (1,))
        return stack_history(list(np.moveaxis(channels_last(frames, shape), 1, 0)), history)


def gather_episodes(source: WalkedWorld | EpisodeSource, seed: int) -> EpisodeSplit:
    """The episodes of a source, split into training and held-out episodes."""
    from jepatlas.data import split_episodes

    episodes, names = source.gather(seed)
    if len(episodes) < 2:
        raise InputError("There is only one episode, but at least one more is needed to hold out.")
    return EpisodeSplit(episodes, *names, *split_episodes(len(episodes), max(HELD, 1 / len(episodes)), seed))


def walk(source: WalkedWorld, seed: int) -> EpisodeArrays:
    """Episodes of a world. Pictures are drawn when they are read."""
    from jepatlas.data import EpisodeArrays, RenderedColumn

    world = source.world
    if isinstance(source.motion, RandomPolicy):
        states, actions = _explore(world, source.motion, source.episodes, source.length, seed)
    else:
        assert isinstance(world, Reacher)
        states = source.motion.trajectory(world, source.episodes, source.length + 1, seed)
        actions = np.empty((*states.shape[:2], 0), np.float32)  # these trajectories have no actions
    flat = states.reshape(-1, states.shape[-1])
    pictures = world.observe(flat[:1]).dtype == np.uint8
    # Vectors are computed at once: they are cheap, and their last bits depend on the rows computed together.
    seen = RenderedColumn(world.observe, flat) if pictures else world.observe(flat)
    columns = {"seen": seen, "action": actions.reshape(len(flat), -1), "state": flat}
    return EpisodeArrays(columns, np.full(len(states), states.shape[1]))


def _explore(
    world: ActionWorld, policy: RandomPolicy, episodes: int, length: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """All episodes at once: states (e, t + 1, n) and actions (e, t + 1, a), the last of which is NaN."""
    from gymnasium.spaces import Box

    rng = numpy_generator(seed, "explore")
    act = policy.begin(Box(-1.0, 1.0, (episodes, world.action_dim), np.float64))
    states = [world.states(episodes, rng)]
    actions = []
    for _ in range(length):
        actions.append(act(None, {}, rng))
        states.append(world.step(states[-1], actions[-1]))
    actions.append(np.full_like(actions[-1], np.nan))
    return np.stack(states, 1), np.stack(actions, 1).astype(np.float32)
