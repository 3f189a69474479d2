"""Operations of training steps and of encoding images."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from jepatlas.core.contracts import Objective
from jepatlas.objectives.teaching import Migration, MutualTeaching, RunningMap, Student
from jepatlas.objectives.vision import CropObjective
from jepatlas.recipes import MutualRecipe, TaughtRecipe, VisionRecipe
from jepatlas.training.flops import counted_flops, step_flops

__all__ = ["Cost", "TrainedRecipe", "cost_of", "encoding_flops"]

TrainedRecipe = VisionRecipe | TaughtRecipe | MutualRecipe


@dataclass(frozen=True)
class Cost:
    """Operations of one training step; `map` is the part of the running map (sums and solve)."""

    training: float
    map: float = 0.0

    @property
    def step(self) -> float:
        return self.training + self.map


def cost_of(recipe: TrainedRecipe) -> Cost:
    """Operations of one step. For alternating teaching, the mean over both turns, since the agents may differ."""
    objective, batches = recipe.build()
    each = []
    turns = 2 if isinstance(objective, MutualTeaching) and objective.config.method == "alternating" else 1
    for turn in range(turns):
        if isinstance(objective, MutualTeaching):
            objective.whose.fill_(turn)
        each.append(step_flops(objective, batches, recipe.training.accumulate))
    pairs = 0 if isinstance(recipe, VisionRecipe) else recipe.pairs
    return Cost(sum(each) / len(each), sum(running_map.flops(pairs) for running_map in _maps(objective)))


def _maps(objective: Objective) -> list[RunningMap]:
    if isinstance(objective, MutualTeaching):
        return list(objective.maps)
    if isinstance(objective, Student) and isinstance(objective.lesson, Migration):
        return [objective.lesson.map]
    return []


@torch.no_grad()
def encoding_flops(objective: CropObjective, size: int, count: int) -> float:
    """Operations to encode `count` images of height and width `size`."""
    device = next(objective.parameters()).device
    with counted_flops() as counter:
        objective.encode(torch.zeros(1, 3, size, size, device=device))
    return float(counter.get_total_flops() * count)
