"""Configurations of teaching between agents. Importing this module does not import torch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from jepatlas.core.config import check_literals
from jepatlas.core.errors import check_argument, check_count, check_not_negative, check_positive

if TYPE_CHECKING:
    from jepatlas.objectives.teaching.mutual import MutualTeaching
    from jepatlas.objectives.teaching.student import Student
    from jepatlas.objectives.vision.crop_objective import CropObjective

__all__ = ["AnyTeaching", "DistillationConfig", "MigrationConfig", "MutualConfig", "RunningMapConfig"]


@dataclass(frozen=True)
class RunningMapConfig:
    kind: ClassVar[str] = "running"

    every: int = 1
    """Steps between two fits of the map."""
    memory: float = 20.0
    """Number of past steps that count towards the fit (time constant); 1 uses the last step only."""
    ridge: float = 1e-3
    """Ridge penalty λ as a share of the mean variance of the latents."""

    def __post_init__(self) -> None:
        check_count("every", self.every)
        check_argument("memory", self.memory, 1 <= self.memory < math.inf, "finite and at least 1")
        check_positive("ridge", self.ridge)


@dataclass(frozen=True)
class DistillationConfig:
    kind: ClassVar[str] = "distillation"

    weight: float = 1.0
    """Weight of the distillation loss relative to the student's own loss."""
    tells: Literal["logits", "latents"] = "logits"
    """The teacher's output: logits of a probe, which need labels, or latents."""
    temperature: float = 2.0
    """Temperature T, for logits."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_not_negative("weight", self.weight)
        check_positive("temperature", self.temperature)

    def build(self, own: CropObjective, dim: int, target_dim: int) -> Student:
        """`dim` is the width of the student's latents, `target_dim` that of the teacher's output."""
        from jepatlas.objectives.teaching.student import Distillation, Student

        return Student(own, Distillation(dim, target_dim, self), self.weight)


@dataclass(frozen=True)
class MigrationConfig:
    kind: ClassVar[str] = "migration"
    tells: ClassVar[Literal["latents", "logits"]] = "latents"

    weight: float = 1.0
    """Weight β, relative to the variance of the mapped latents' target."""
    through: Literal["student-to-teacher", "teacher-to-student"] = "student-to-teacher"
    """Direction of the map."""
    map: RunningMapConfig = field(default_factory=RunningMapConfig)

    def __post_init__(self) -> None:
        check_literals(self)
        check_not_negative("weight", self.weight)

    def build(self, own: CropObjective, dim: int, target_dim: int) -> Student:
        """`dim` is the width of the student's latents, `target_dim` that of the teacher's."""
        from jepatlas.objectives.teaching.student import Migration, Student

        return Student(own, Migration(dim, target_dim, self), self.weight)


@dataclass(frozen=True)
class MutualConfig:
    kind: ClassVar[str] = "mutual"

    method: Literal["cross", "alternating"] = "cross"
    """Train both agents towards each other at once, or each in turn towards the other's fixed latents."""
    weight: float = 1.0
    """Weight γ, relative to the variance of the target; 0 trains the agents independently."""
    turn: int = 20
    """Steps per turn with `alternating`; the map is fixed within a turn."""
    memory: float = 20.0
    """Number of past steps that count towards the fit of the map (time constant)."""
    ridge: float = 1e-3
    """Ridge penalty of the map as a share of the mean variance of the latents."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_not_negative("weight", self.weight)
        check_count("turn", self.turn)
        self.map  # noqa: B018  (validates memory and ridge)

    @property
    def map(self) -> RunningMapConfig:
        return RunningMapConfig(self.turn if self.method == "alternating" else 1, self.memory, self.ridge)

    def build(self, agents: tuple[CropObjective, CropObjective], dims: tuple[int, int]) -> MutualTeaching:
        from jepatlas.objectives.teaching.mutual import MutualTeaching

        return MutualTeaching(agents, dims, self)


AnyTeaching = MigrationConfig | DistillationConfig
"""How a student learns from the stored outputs of a teacher."""
