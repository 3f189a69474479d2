"""Settings of teaching between agents. Importing this module does not import torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError

if TYPE_CHECKING:
    from jepatlas.objectives.teaching.mutual import MutualTeaching
    from jepatlas.objectives.teaching.student import Student
    from jepatlas.objectives.vision.parts import CropObjective

__all__ = ["AnyTeaching", "DistillationConfig", "MigrationConfig", "MutualConfig", "RunningMapConfig", "check_weight"]


def check_weight(name: str, weight: float) -> None:
    if not 0 <= weight < float("inf"):
        raise InputError(f"{name}'s weight must be finite and not negative, but {weight} was given.")


@dataclass(frozen=True)
class RunningMapConfig:
    kind: ClassVar[str] = "running"

    every: int = 1
    """Steps between two fits of the map."""
    memory: float = 20.0
    """About so many steps back do pairs count; 1 remembers the last step alone."""
    ridge: float = 1e-3
    """The penalty λ, as a share of the latents' mean variance."""

    def __post_init__(self) -> None:
        if self.every < 1 or not 1 <= self.memory < float("inf"):
            raise InputError(
                f"A map is fitted every so many steps (at least 1) and remembers at least 1, but every is "
                f"{self.every} and memory {self.memory}."
            )
        if not 0 < self.ridge < float("inf"):
            raise InputError(f"The ridge penalty must be positive and finite, but {self.ridge} was given.")


@dataclass(frozen=True)
class DistillationConfig:
    kind: ClassVar[str] = "distillation"

    weight: float = 1.0
    """Of the distilled term beside the student's own."""
    tells: Literal["logits", "latents"] = "logits"
    """What the teacher tells: a probe's logits, for which it needs labels, or its latents."""
    temperature: float = 2.0
    """T, for logits."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_weight("Distillation", self.weight)
        if not 0 < self.temperature < float("inf"):
            raise InputError(
                f"Distillation's temperature must be positive and finite, but {self.temperature} was given."
            )

    def build(self, own: CropObjective, dim: int, told_dim: int) -> Student:
        from jepatlas.objectives.teaching.distillation import Distillation
        from jepatlas.objectives.teaching.student import Student

        return Student(own, Distillation(dim, told_dim, self), self.weight)


@dataclass(frozen=True)
class MigrationConfig:
    kind: ClassVar[str] = "migration"
    tells: ClassVar[Literal["latents", "logits"]] = "latents"

    weight: float = 1.0
    """β, in units of the variance of what is to be told."""
    through: Literal["student-to-teacher", "teacher-to-student"] = "student-to-teacher"
    """Which way the map goes."""
    map: RunningMapConfig = field(default_factory=RunningMapConfig)

    def __post_init__(self) -> None:
        check_literals(self)
        check_weight("Migration", self.weight)

    def build(self, own: CropObjective, dim: int, told_dim: int) -> Student:
        """`dim` is the width of the student's latents, `told_dim` that of the teacher's."""
        from jepatlas.objectives.teaching.migration import Migration
        from jepatlas.objectives.teaching.student import Student

        return Student(own, Migration(dim, told_dim, self), self.weight)


@dataclass(frozen=True)
class MutualConfig:
    kind: ClassVar[str] = "mutual"

    method: Literal["cross", "alternating"] = "cross"
    """Both drawn to each other at once, or each in its turn to the other as it is."""
    weight: float = 1.0
    """γ, in units of the variance of what is to be told; 0 leaves the agents to themselves."""
    turn: int = 20
    """Steps of a turn, with `alternating`: so long one learns from the other through the same map."""
    memory: float = 20.0
    """About so many steps back do pairs count for the map."""
    ridge: float = 1e-3
    """The map's penalty, as a share of the latents' mean variance."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_weight("Mutual teaching", self.weight)
        self.map  # noqa: B018 (its checks are those of the map)

    @property
    def map(self) -> RunningMapConfig:
        return RunningMapConfig(self.turn if self.method == "alternating" else 1, self.memory, self.ridge)

    def build(self, agents: tuple[CropObjective, CropObjective], dims: tuple[int, int]) -> MutualTeaching:
        from jepatlas.objectives.teaching.mutual import MutualTeaching

        return MutualTeaching(agents, dims, self)


AnyTeaching = MigrationConfig | DistillationConfig
"""How a teacher that is not there any more is followed."""
