"""A collection of episodes: what is to be collected, and how it falls into shards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jepatlas.core.errors import InputError
from jepatlas.data.described import described
from jepatlas.data.policies import Policy, RemembersAnEpisode

__all__ = ["Collection"]


@dataclass(frozen=True)
class Collection:
    """All that a process needs to know to collect a part of it."""

    make: Callable[[], Any]
    policy: Policy | RemembersAnEpisode
    episodes: int
    length: int
    seed: int
    shard: int
    options: dict[str, Any] | None
    compressed: bool

    def __post_init__(self) -> None:
        for name in ("episodes", "length", "shard"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}, but it must be at least 1.")

    @property
    def shards(self) -> range:
        return range(-(-self.episodes // self.shard))

    def numbers(self, shard: int) -> range:
        """The episodes of a shard."""
        return range(shard * self.shard, min(self.episodes, (shard + 1) * self.shard))

    def place(self, parts: Path, shard: int) -> Path:
        return parts / f"shard-{shard:05d}-of-{len(self.shards):05d}.h5"

    def about(self) -> dict[str, Any]:
        """As plain data, to tell it from another one."""
        parts = {name: value for name, value in self.__dict__.items() if name not in ("make", "policy", "options")}
        return parts | {name: described(getattr(self, name)) for name in ("make", "policy", "options")}
