"""Where an energy's experience comes from: walks in a world, or a file; and which episodes are kept to judge by."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch

from jepatlas.core.arrays import read_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.records import Experience
from jepatlas.core.sealing import check_unchanged, seal_file
from jepatlas.core.seeding import numpy_generator
from jepatlas.data import experience_from_arrays
from jepatlas.worlds import AnyMixing, CurrentWorld, GymTable, OneWayGrid

__all__ = ["AnySource", "EnergyWorld", "Gathered", "StepFile", "WalkConfig", "gather", "mixed"]

HELD = 0.1  # share of the episodes that nothing is learned from
FEWEST = 2  # steps that an interval can be taken over


@dataclass(frozen=True)
class StepFile:
    """Anybody's experience: x, x_next and cost, row by row; or x, episode and cost, state by state."""

    kind: ClassVar[str] = "file"

    path: str = ""
    """The file: .npz, .safetensors, .csv or .parquet."""
    sha256: str | None = None
    """What it must hash to; set when a run begins, so that a run that goes on learns from the same steps."""

    def read(self) -> dict[str, np.ndarray]:
        return read_arrays(check_unchanged(self.path, self.sha256))

    def sealed(self) -> StepFile:
        path, sha256 = seal_file(self.path)
        return replace(self, path=path, sha256=sha256)


EnergyWorld = OneWayGrid | GymTable | CurrentWorld
AnySource = OneWayGrid | GymTable | CurrentWorld | StepFile


@dataclass(frozen=True)
class WalkConfig:
    """How a world is explored; files are taken as they are."""

    episodes: int = 1000
    """Random walks to learn from."""
    length: int = 50
    """Steps of each, at most."""
    coverage: float = 1.0
    """Share of the world's steps that are ever taken."""

    def __post_init__(self) -> None:
        for name in ("episodes", "length"):
            if not 1 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} must be at least 1, but {getattr(self, name)} was given.")
        if not 0 < self.coverage <= 1:
            raise InputError(f"coverage is a share, above 0 and at most 1, but {self.coverage} was given.")


@dataclass(frozen=True)
class Gathered:
    """Experience to learn from, and other episodes of it to judge by."""

    learnt: Experience
    held: Experience

    @property
    def width(self) -> int:
        return self.learnt.x.shape[1]

    @property
    def unit(self) -> float:
        """A typical cost: the mean of all steps that cost anything."""
        return float(self.learnt.cost[self.learnt.cost > 0].mean())


def gather(source: AnySource, walk: WalkConfig, mixing: AnyMixing | None, seed: int) -> Gathered:
    if isinstance(source, StepFile):
        arrays = source.read()
        try:
            return _split(_seen_through(mixing, experience_from_arrays(arrays)), seed)
        except InputError as error:
            raise InputError(f"{source.path}: {error}") from error
    return _split(_seen_through(mixing, source.walk(walk.episodes, walk.length, seed, walk.coverage)), seed)


def _seen_through(mixing: AnyMixing | None, experience: Experience) -> Experience:
    if mixing is None:
        return experience
    return replace(experience, **{name: mixed(mixing, getattr(experience, name)) for name in ("x", "x_next")})


def mixed(mixing: AnyMixing, x: np.ndarray) -> np.ndarray:
    """Observations as another agent has them."""
    mixing.observed_dim(x.shape[1])
    return mixing(torch.as_tensor(x, dtype=torch.float32)).double().numpy()


def _split(experience: Experience, seed: int) -> Gathered:
    """By episode: steps of one walk are alike. A single episode is cut in two, its last part held."""
    names = np.unique(experience.episode)
    if len(names) > 1:
        count = max(1, round(HELD * len(names)))
        kept = np.isin(experience.episode, numpy_generator(seed, "held episodes").permutation(names)[:count])
    else:
        kept = np.arange(len(experience.cost)) >= (1 - HELD) * len(experience.cost)
    if kept.all() or not kept.any():
        raise InputError(
            f"{len(experience.cost)} step(s) in {len(names)} episode(s) are too few: some must be kept to judge by."
        )
    parts = Gathered(_rows(experience, ~kept), _rows(experience, kept))
    for name, part in (("to learn from", parts.learnt), ("that are kept to judge by", parts.held)):
        telling = int(((part.x != part.x_next).any(1) & (part.cost > 0)).sum())
        if telling < FEWEST:
            raise InputError(
                f"Of the {len(part.cost)} step(s) {name}, {telling} cost something and lead elsewhere, but at least "
                f"{FEWEST} must, or they have no scale. Give more episodes."
            )
    return parts


def _rows(experience: Experience, rows: np.ndarray) -> Experience:
    parts = (experience.x, experience.x_next, experience.cost, experience.episode, experience.z, experience.z_next)
    return Experience(*(part if part is None else part[rows] for part in parts))  # pyright: ignore[reportArgumentType]
