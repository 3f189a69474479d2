"""The agents of Social-JEPA's study: each sees one view, from scratch, and shares nothing with the other.

Not even the seed: agents of two views that began with the same weights would not be independent, so agent k of a pair
has the seed 2·seed + k. Every experiment asks for agents by the same names, so those that two of them need are trained
once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from jepatlas.core.config import to_plain
from jepatlas.data.images import Shuffle
from jepatlas.experiments.engine.experiment import Scale, Trial
from jepatlas.experiments.social.objectives import objective_of
from jepatlas.experiments.social.runs import run
from jepatlas.experiments.social.scenes import SCENES, WORLDS
from jepatlas.nn import ViTConfig
from jepatlas.recipes import Augmentation, VisionRecipe
from jepatlas.training import CosineSchedule, TrainingConfig

__all__ = ["PLANS", "SHUFFLES", "AgentPlan", "agent", "agents"]

SHUFFLES = {"none": "as it is", "patches": "patches shuffled", "pixels": "pixels shuffled"}


@dataclass(frozen=True)
class AgentPlan:
    """How agents of a scale are trained."""

    encoders: tuple[ViTConfig, ...]
    """From narrow to wide; the one called `usual` is what is studied where width is not."""
    usual: int
    size: int
    training: TrainingConfig
    held: float
    most: int
    """States at most whose latents are kept."""
    seeds: int
    local: tuple[int, int]
    """Number and size of smaller crops."""


_LOOP = TrainingConfig(
    steps=300, batch_size=64, lr=3e-4, weight_decay=0.05, collapse=0.0, schedule=CosineSchedule(30), log_every=25
)
_TINY = replace(_LOOP, steps=4, batch_size=16, schedule=CosineSchedule(1), log_every=4)
_PAPER = replace(
    _LOOP, batch_size=256, betas=(0.9, 0.95), decayed="matrices", precision="bfloat16", device="cuda", log_every=50
)
PLANS: dict[Scale, AgentPlan] = {
    "tiny": AgentPlan((ViTConfig(8, 12, 2, 2), ViTConfig(8, 16, 2, 2)), 1, 16, _TINY, 0.5, 200, 1, (1, 8)),
    "small": AgentPlan((ViTConfig(width=48), ViTConfig(), ViTConfig(width=144)), 1, 48, _LOOP, 0.25, 4000, 3, (2, 24)),
    "paper": AgentPlan((ViTConfig.s16(), ViTConfig.b16(), ViTConfig.l16()), 0, 224, _PAPER, 0.2, 25_000, 3, (6, 96)),
}
"""`small` has the published learning rate: at 1e-3, 300 steps leave I-JEPA's latents one direction of a drive. How long
agents of `paper` learn, their scene says."""
AREAS = {
    "dino": ((0.4, 1.0), (0.05, 0.4)),
    "ibot": ((0.4, 1.0), (0.05, 0.4)),
    "dinov2": ((0.32, 1.0), (0.05, 0.32)),
    "swav": ((0.14, 1.0), (0.05, 0.14)),
}
"""Of large and of small crops, as published."""
LEARNT = {
    "rendered": 43_200,
    "smallnorb": 2_700,
    "nuscenes-rear": 27_319,
    "nuscenes-side": 27_319,
    "imagenet": 1_024_934,
}
"""Images of one view that agents of `paper` learn from: of smallNORB one azimuth of the 25 toys for training (9
elevations, 6 lights, 2 cameras), of the others four fifths of the drawn states, of 34,149 key frames, and of 1,281,167
images."""


def agents(
    scale: Scale,
    scene: str,
    seeds: range,
    objective: str = "ijepa",
    *,
    shuffle: str = "none",
    number: int | None = None,
) -> list[Trial]:
    """Both agents of a scene, for each seed."""
    return [
        agent(scale, scene, view, seed, objective, shuffle=shuffle, number=number)
        for seed in seeds
        for view in range(2)
    ]


def agent(
    scale: Scale,
    scene: str,
    view: int,
    seed: int,
    objective: str = "ijepa",
    *,
    shuffle: str = "none",
    number: int | None = None,
) -> Trial:
    """One agent; `number` is that of its encoder among the plan's."""
    plan, own = PLANS[scale], 2 * seed + view
    encoder = plan.encoders[plan.usual if number is None else number]
    recipe = VisionRecipe(
        seed=own,
        view=SCENES[scene].views[view],
        size=plan.size,
        held=plan.held,
        shuffle=_shuffle(shuffle, encoder.patch, own),
        fit="cover" if scene == "imagenet" else "stretch",
        augmentation=_crops(scale, objective, SCENES[scene].pipelines[view]),
        encoder=encoder,
        objective=objective_of(scale, objective),
        training=published_training(scene) if scale == "paper" else plan.training,
    )
    place = {"scene": scene, "view": view, "objective": objective, "shuffle": shuffle, "width": encoder.width}
    settings = {"scene": scene, "most": plan.most, "recipe": to_plain(recipe), "world": to_plain(WORLDS[scale])}
    return Trial(place | {"seed": seed}, run, settings)


def _crops(scale: Scale, objective: str, pipelines: tuple[str, ...]) -> Augmentation:
    (local, size), large, small = PLANS[scale].local, None, Augmentation().local_scale
    if scale == "paper" and objective in AREAS:
        large, small = AREAS[objective]
    return Augmentation(pipelines, large, local, size, small)


def _shuffle(name: str, patch: int, seed: int) -> Shuffle | None:
    """Each image has an order of its own, and each agent others: one order for both views would be something shared."""
    return None if name == "none" else Shuffle(patch if name == "patches" else 1, "image", seed)


def published_training(scene: str) -> TrainingConfig:
    """200 epochs in batches of 256 or, of ImageNet, 300 in batches of 1,024; ten of them warm up."""
    epochs, batch, lr = (300, 1024, 1.5e-4) if scene == "imagenet" else (200, 256, 3e-4)
    images = LEARNT[scene]
    steps, warmup = (count * images // batch for count in (epochs, 10))
    return replace(_PAPER, steps=steps, batch_size=batch, lr=lr, schedule=CosineSchedule(warmup))
