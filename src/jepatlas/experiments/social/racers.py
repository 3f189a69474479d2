"""What ways to train race on: agents of which training alone raises what a probe reads of unseen objects.

On the toys of `social-views`, 60 objects from all sides, no objective does: of an unseen object an untrained network
tells more than one that knows the 45 it has learned from. So here are more objects, in smaller images. World,
objective, rate and threshold were chosen by training alone, with other seeds, before any student was taught
(docs/LOG.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from jepatlas.core.config import from_plain, to_plain
from jepatlas.experiments.engine.experiment import Scale
from jepatlas.experiments.social.agents import agent
from jepatlas.experiments.social.scenes import WORLDS
from jepatlas.recipes import VisionRecipe
from jepatlas.training import ConstantSchedule
from jepatlas.worlds.objects import CATEGORIES, RenderedObjects

__all__ = ["RACES", "WEIGHT", "Race", "racer"]

WEIGHT = 1.0  # β and γ: what is not predicted, in units of its variance, counts as much as an agent's own loss


@dataclass(frozen=True)
class Race:
    """Who races, and how they are watched."""

    scene: str
    world: RenderedObjects
    objective: str
    seeds: int
    looks: int
    """Checkpoints at which a probe is trained."""
    pairs: int
    """Shared states in a step: each costs a whole pass, so they are few."""
    memory: float
    """Steps for which they count in the map."""
    threshold: float | None
    """What is to be reached; what training alone ends with, where none is given."""
    replicates: int
    size: int | None = None
    """Of images, where it is not that of the usual agents."""
    training: dict[str, Any] = field(default_factory=dict)
    """What differs from how the usual agents are trained."""


MANY = RenderedObjects(CATEGORIES, instances=200, azimuths=4, elevations=(30.0,), lights=("noon",), size=32)
"""6,400 states of 1,600 objects."""
RACES: dict[Scale, Race] = {
    "tiny": Race("rendered", WORLDS["tiny"], "ijepa", 1, 2, 16, 2.0, None, 5),
    "small": Race("rendered", MANY, "simclr", 4, 12, 16, 40.0, 0.8, 200, 32, {"lr": 1e-3, "batch_size": 128}),
    "paper": Race("smallnorb", WORLDS["paper"], "ijepa", 3, 50, 64, 40.0, 0.85, 500),
}
"""At `small`, two processes take as long for four seeds as for three."""


def racer(scale: Scale, view: int, seed: int, *, watched: bool = True) -> dict[str, Any]:
    """The recipe of an agent, with checkpoints that are kept where it is `watched`.

    The rate of those is constant after its rise: under a falling one an accuracy depends on when training is to end.
    """
    race = RACES[scale]
    usual = from_plain(VisionRecipe, agent(scale, race.scene, view, seed, race.objective).settings["recipe"])
    recipe = replace(usual, size=race.size or usual.size, training=replace(usual.training, **race.training))
    if not watched:
        return to_plain(recipe)
    warmup, every = max(1, recipe.training.steps // 10), recipe.training.steps // race.looks
    training = replace(recipe.training, schedule=ConstantSchedule(warmup), checkpoint_every=every, keep=race.looks + 1)
    return to_plain(replace(recipe, training=training))
