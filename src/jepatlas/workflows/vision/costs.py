"""What teaching costs in floating-point operations, item by item: what one counts, another may not.

training   a student's steps, with the images it encodes for the lesson
map        the sums and the solve of W
lessons    what the teacher makes of the shared states, once
teacher    the teacher's own training
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from jepatlas.objectives.teaching import Migration, MutualTeaching, Student
from jepatlas.recipes import MutualRecipe, TaughtRecipe, VisionRecipe
from jepatlas.training.flops import counted_flops, step_flops

__all__ = ["Cost", "cost_of", "encoding_flops"]


@dataclass(frozen=True)
class Cost:
    """Of one step."""

    training: float
    map: float = 0.0

    @property
    def step(self) -> float:
        return self.training + self.map


def cost_of(recipe: VisionRecipe | TaughtRecipe | MutualRecipe) -> Cost:
    """Of a step; where two agents learn in turn, of a step of either in the mean, for they may differ in width."""
    objective, batches = recipe.build()
    in_turn = isinstance(objective, MutualTeaching) and objective.config.method == "alternating"
    each = []
    for turn in range(2 if in_turn else 1):
        if in_turn:
            objective.whose.fill_(turn)
        each.append(step_flops(objective, batches, recipe.training.accumulate))
    pairs = 0 if isinstance(recipe, VisionRecipe) else recipe.pairs
    return Cost(sum(each) / len(each), sum(through.flops(pairs) for through in _maps(objective)))


def _maps(objective: Any) -> list[Any]:
    if isinstance(objective, MutualTeaching):
        return list(objective.maps)
    return [objective.lesson.map] if isinstance(objective, Student) and isinstance(objective.lesson, Migration) else []


@torch.no_grad()
def encoding_flops(objective: Any, size: int, count: int) -> float:
    """Of the latents of so many images, height and width `size`."""
    device = next(objective.parameters()).device
    with counted_flops() as counter:
        objective.encode(torch.zeros(1, 3, size, size, device=device))
    return float(counter.get_total_flops() * count)
