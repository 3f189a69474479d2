"""Recipes of agents that are taught: a student and what its teacher told, or two agents that learn at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import tyro

from jepatlas.core.errors import InputError
from jepatlas.core.sealing import seal_file
from jepatlas.objectives.teaching import AnyTeaching, MigrationConfig, MutualConfig
from jepatlas.recipes.vision import VisionRecipe
from jepatlas.training import TrainingConfig

__all__ = ["MutualRecipe", "TaughtRecipe", "TeacherFile"]


@dataclass(frozen=True)
class TeacherFile:
    """A file of the teacher's latents of states: plain numbers, so that neither its network nor its images are needed.

    It holds `h` and the states' `ids`, and `labels` where logits are to be distilled, as 'jepatlas encode' writes it.
    """

    kind: ClassVar[str] = "latents"

    path: str = ""
    sha256: str | None = None
    """What the file must hash to; set when a run begins."""

    def sealed(self) -> TeacherFile:
        path, sha256 = seal_file(self.path)
        return replace(self, path=path, sha256=sha256)


@dataclass(frozen=True)
class TaughtRecipe:
    """A student, and what it is told of states that its teacher has seen, too."""

    kind: ClassVar[str] = "taught"

    teacher: Annotated[TeacherFile, tyro.conf.Suppress] = field(default_factory=TeacherFile)
    teaching: AnyTeaching = field(default_factory=MigrationConfig)
    pairs: int = 64
    """Shared states in one step, over all processes."""
    student: Annotated[VisionRecipe, tyro.conf.arg(name="")] = field(default_factory=VisionRecipe)

    def __post_init__(self) -> None:
        check_pairs(self.pairs, self.training)

    @property
    def seed(self) -> int:
        return self.student.seed

    @property
    def training(self) -> TrainingConfig:
        return self.student.training

    def sealed(self) -> TaughtRecipe:
        student = replace(self.student, images=self.student.images.sealed())
        return replace(self, student=student, teacher=self.teacher.sealed())


@dataclass(frozen=True)
class MutualRecipe:
    """Two agents that teach each other. They are trained together, so their recipes must train alike."""

    kind: ClassVar[str] = "mutual"

    first: VisionRecipe = field(default_factory=VisionRecipe)
    second: VisionRecipe = field(default_factory=lambda: VisionRecipe(seed=1))
    teaching: MutualConfig = field(default_factory=MutualConfig)
    pairs: int = 64
    """Shared states in one step, over all processes."""

    def __post_init__(self) -> None:
        check_pairs(self.pairs, self.training)
        if self.first == self.second:
            raise InputError(
                "Both agents have the same recipe, view and seed included: they would be one agent twice, "
                "with nothing to teach. Give two views, or two seeds."
            )
        if self.first.training != self.second.training:
            raise InputError(
                "Two agents that teach each other are trained together, but their recipes differ in "
                f"{', '.join(_differing(self.first.training, self.second.training))}."
            )

    @property
    def seed(self) -> int:
        return self.first.seed

    @property
    def training(self) -> TrainingConfig:
        return self.first.training

    def sealed(self) -> MutualRecipe:
        first, second = (replace(agent, images=agent.images.sealed()) for agent in (self.first, self.second))
        return replace(self, first=first, second=second)


def check_pairs(pairs: int, training: TrainingConfig) -> None:
    if pairs < 1 or pairs % training.accumulate:
        raise InputError(
            f"Shared states are {training.accumulate} micro-batches of at least 1 a step, but pairs is {pairs}."
        )


def _differing(one: TrainingConfig, other: TrainingConfig) -> list[str]:
    return [name for name, value in vars(one).items() if value != getattr(other, name)]
