"""Where the episodes of a world model come from: a world that is walked anew, or a file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from jepatlas.core.config import choices, from_plain
from jepatlas.core.errors import InputError
from jepatlas.core.sealing import check_unchanged, seal_file
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

__all__ = ["AnyActionWorld", "EpisodeSource", "WalkedWorld", "policy_of_file", "world_of_file"]

AnyActionWorld = Rooms | Maze | Reacher | LinearQuadratic
AnyMotion = RandomPolicy | OrnsteinUhlenbeckMotion | ScriptedMotion | SACMotion

SEEN = ("pixels", "observation", "state")  # columns that are seen, the first that is there
TRUTH = "state"
T = TypeVar("T")


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
    observation: str | None = None
    """The column that is seen; by default 'pixels', where there are none 'observation', else 'state'."""
    action: str = "action"
    """The column of what was done."""
    state: str | None = TRUTH
    """The column of the true state; 'none' where it is not known. A file may be without 'state'."""
    sha256: str | None = None
    """What it must hash to; set when a run begins, so that a run that goes on learns from the same episodes."""

    def sealed(self) -> EpisodeSource:
        path, sha256 = seal_file(self.path)
        return replace(self, path=path, sha256=sha256)

    def open(self) -> EpisodeFile:
        return EpisodeFile(check_unchanged(self.path, self.sha256))

    def seen(self, file: EpisodeFile) -> str:
        """The column of a file that is seen."""
        default = next((name for name in SEEN if name in file.columns), SEEN[0])
        return self._there(file, "observation", self.observation or default)

    def names(self, file: EpisodeFile) -> tuple[str, str, str | None]:
        """The columns of a file that are seen, done and true; the last is None where the truth is not known."""
        unknown = self.state in (None, "none") or (self.state == TRUTH and TRUTH not in file.columns)
        truth = None if unknown or self.state is None else self._there(file, "state", self.state)
        return self.seen(file), self._there(file, "action", self.action), truth

    def _there(self, file: EpisodeFile, option: str, name: str) -> str:
        if name not in file.columns:
            known = ", ".join(file.columns)
            raise InputError(
                f"{self.path} has no column '{name}', but {known}. Name the one that is meant: --source.{option}."
            )
        return name


def world_of_file(file: EpisodeFile) -> AnyActionWorld | None:
    """The world that a file says its episodes are of; None where it says nothing, or nothing that is known here."""
    given = file.about.get("world")
    kind = choices(AnyActionWorld).get(str(given.get("kind"))) if isinstance(given, dict) else None
    return None if kind is None else _told(kind, given, f"the world of {file.path}")


def policy_of_file(file: EpisodeFile) -> RandomPolicy | None:
    """The random policy that a file says its episodes were walked by; None where it says nothing, or of another."""
    given = file.about.get("policy")
    known = isinstance(given, dict) and given.get("kind") == RandomPolicy.kind
    return _told(RandomPolicy, given, f"the policy of {file.path}") if known else None


def _told(kind: type[T], given: Any, where: str) -> T | None:
    try:
        return from_plain(kind, given, where)
    except InputError:  # written by another version, with other settings
        return None
