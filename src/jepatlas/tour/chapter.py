"""What a chapter is: a title, and a function that plays it on the stage that earlier chapters have set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from jepatlas.core.records import Record

__all__ = ["AGENT_NAMES", "Chapter", "Stage"]

AGENT_NAMES = ("ada", "ben")


@dataclass(frozen=True)
class Stage:
    """Where the tour takes place. Chapters hand things on through the run folders of the agents."""

    folder: Path
    seed: int
    workers: int
    console: Console

    def agent(self, name: str) -> Path:
        return self.folder / "agents" / name


@dataclass(frozen=True)
class Chapter:
    name: str
    title: str
    play: Callable[[Stage], Record]
