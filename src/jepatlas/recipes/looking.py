"""The recipe of an agent that chooses where to look: an agent on images, its cameras, and how it chooses."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError
from jepatlas.recipes.vision import VisionRecipe
from jepatlas.training import TrainingConfig

__all__ = ["LookingRecipe"]


@dataclass(frozen=True)
class LookingRecipe:
    """Before each round of training the agent decides, for every state, which of its cameras it will see it from."""

    kind: ClassVar[str] = "looking"

    agent: VisionRecipe = field(default_factory=VisionRecipe)
    """Its `view` is the camera that it would have if it had but one."""
    views: tuple[str, ...] = ()
    """The cameras that it may choose from, that one among them."""
    policy: Literal["random", "curious"] = "curious"
    """Whether all cameras are alike, or those are preferred from which its own loss is high."""
    rounds: int = 10
    """How often it chooses, at even distances."""
    temperature: float = 0.5
    """How even a curious choice is, in standard deviations of the loss between cameras."""

    def __post_init__(self) -> None:
        check_literals(self)
        if len(self.views) < 2 or len(set(self.views)) < len(self.views):
            raise InputError(f"An agent chooses from at least two different views, but {self.views} were given.")
        if self.agent.view not in self.views:
            raise InputError(
                f"The agent's own view '{self.agent.view}' is not among those that it may choose from: "
                f"{', '.join(self.views)}."
            )
        if not 1 <= self.rounds <= self.training.steps:
            raise InputError(f"rounds lie between 1 and the {self.training.steps} steps, but {self.rounds} were given.")
        if not 0 < self.temperature < math.inf:
            raise InputError(f"temperature must be positive and finite, but {self.temperature} was given.")

    @property
    def seed(self) -> int:
        return self.agent.seed

    @property
    def training(self) -> TrainingConfig:
        return self.agent.training

    def stretch(self, number: int) -> tuple[int, int]:
        """The first step of a round, and the one after its last."""
        steps = self.training.steps
        return steps * number // self.rounds, steps * (number + 1) // self.rounds
