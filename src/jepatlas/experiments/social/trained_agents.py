"""Agents of the study: the recipe of each, and the trial that trains one and stores its latents.

Each agent sees one view and is trained from scratch. Agents of a pair share nothing, not even the seed: agent k of a
pair has the seed 2·seed + k. All experiments name their agents alike, so an agent that several of them need is
trained once.

A trial stores the latents of all states, those of the same network before its first step (the untrained control), and
small images for PCA. What two agents have in common is measured when the experiment concludes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.arrays import write_arrays
from jepatlas.core.config import from_plain, to_plain
from jepatlas.data.images import Shuffle
from jepatlas.experiments.engine.experiment import Scale, Trial, as_verdicts, point_estimates
from jepatlas.experiments.social.scenes import SCENES, WORLDS, source_of
from jepatlas.nn import ViTConfig
from jepatlas.objectives import LeJEPAConfig, SIGRegConfig
from jepatlas.objectives.vision import (
    AnyVision,
    AutoencoderConfig,
    BarlowTwinsConfig,
    BYOLConfig,
    CropLeJEPAConfig,
    CropVICRegConfig,
    DecoderConfig,
    DINOConfig,
    DINOHeadConfig,
    DINOv2Config,
    IBOTConfig,
    IJEPAConfig,
    MAEConfig,
    MLPPredictorConfig,
    MoCoV3Config,
    SimCLRConfig,
    SwAVConfig,
)
from jepatlas.recipes import Augmentation, VisionRecipe, build_crops, build_vision, read_images
from jepatlas.recipes.image_sources import AnyImages
from jepatlas.training import CosineSchedule, TrainingConfig, last_metrics
from jepatlas.training.flops import step_flops
from jepatlas.workflows.runs import train_job
from jepatlas.workflows.vision import VisionAgent, collapse_verdict, latents_of, load_agent
from jepatlas.worlds.objects import RenderedObjects

__all__ = [
    "EPOCH_IMAGES",
    "LATENTS",
    "OBJECTIVES",
    "PLANS",
    "PUBLISHED_OBJECTIVES",
    "SHUFFLES",
    "AgentPlan",
    "agent_trial",
    "agent_trials",
    "recipe_of",
    "run_agent",
    "stored_rows",
    "train_and_store",
]

LATENTS = "latents.npz"
SHUFFLES = {"none": "unshuffled", "patches": "patches shuffled", "pixels": "pixels shuffled"}
_WIDE = (8192, 8192, 8192)
SHORT_MOMENTUM = 0.955
"""The published target momentum (.996) averages over 250 steps of thousands. In 300 steps such targets would stay
close to their random initialisation; .955 averages over 22 steps, 7% of the training."""

OBJECTIVES: dict[str, AnyVision] = {
    "ijepa": IJEPAConfig(predictor=MLPPredictorConfig()),  # the published predictor: two layers of 2,048
    "lejepa": CropLeJEPAConfig(),
    "mae": MAEConfig(),
    "autoencoder": AutoencoderConfig(),
    "simclr": SimCLRConfig(),
    "byol": BYOLConfig(),
    "vicreg": CropVICRegConfig(),
    "barlow-twins": BarlowTwinsConfig(),
    "dino": DINOConfig(),
    "moco-v3": MoCoV3Config(),
    "ibot": IBOTConfig(),
    "swav": SwAVConfig(),
    "dinov2": DINOv2Config(),
}
"""Objectives with heads for CPUs."""
PUBLISHED_OBJECTIVES: dict[str, AnyVision] = OBJECTIVES | {
    "lejepa": CropLeJEPAConfig(LeJEPAConfig(0.05, sigreg=SIGRegConfig(slices=1024)), (2048, 2048, 128)),
    "mae": MAEConfig(decoder=DecoderConfig.published()),
    "autoencoder": AutoencoderConfig(16, DecoderConfig.published()),
    "simclr": SimCLRConfig(projector=(2048, 128)),
    "byol": BYOLConfig(projector=(4096, 256), predictor=4096),
    "vicreg": CropVICRegConfig(expander=_WIDE),
    "barlow-twins": BarlowTwinsConfig(projector=_WIDE),
    "dino": DINOConfig(DINOHeadConfig.published()),
    "moco-v3": MoCoV3Config(projector=(4096, 4096, 256), predictor=4096, frozen_patches=True),
    "ibot": IBOTConfig(DINOHeadConfig.published(8192)),
    # Published with 3,000 prototypes for batches of 4,096; each prototype needs rows in a batch.
    "swav": SwAVConfig(256, (2048, 128), smoothness=0.05),
    "dinov2": DINOv2Config(DINOHeadConfig.published()),
}
"""Objectives with the published heads."""


@dataclass(frozen=True)
class AgentPlan:
    """How agents of one scale are trained."""

    encoders: tuple[ViTConfig, ...]
    """From narrow to wide."""
    usual: int
    """Index of the encoder used unless the width is varied."""
    size: int
    training: TrainingConfig
    held: float
    most: int
    """Maximum number of states whose latents are stored."""
    seeds: int
    local: tuple[int, int]
    """Number and size of local crops."""


_SMALL = TrainingConfig(
    steps=300, batch_size=64, lr=3e-4, weight_decay=0.05, collapse=0.0, schedule=CosineSchedule(30), log_every=25
)
_TINY = replace(_SMALL, steps=4, batch_size=16, schedule=CosineSchedule(1), log_every=4)
_PAPER = replace(
    _SMALL, batch_size=256, betas=(0.9, 0.95), decayed="matrices", precision="bfloat16", device="cuda", log_every=50
)
PLANS: dict[Scale, AgentPlan] = {
    "tiny": AgentPlan((ViTConfig(8, 12, 2, 2), ViTConfig(8, 16, 2, 2)), 1, 16, _TINY, 0.5, 200, 1, (1, 8)),
    "small": AgentPlan((ViTConfig(width=48), ViTConfig(), ViTConfig(width=144)), 1, 48, _SMALL, 0.25, 4000, 3, (2, 24)),
    "paper": AgentPlan((ViTConfig.s16(), ViTConfig.b16(), ViTConfig.l16()), 0, 224, _PAPER, 0.2, 25_000, 3, (6, 96)),
}
"""`small` uses the published learning rate: at 1e-3, I-JEPA's latents of a drive keep one direction after 300 steps.
The number of steps at `paper` depends on the scene."""
CROP_AREAS = {
    "dino": ((0.4, 1.0), (0.05, 0.4)),
    "ibot": ((0.4, 1.0), (0.05, 0.4)),
    "dinov2": ((0.32, 1.0), (0.05, 0.32)),
    "swav": ((0.14, 1.0), (0.05, 0.14)),
}
"""Published area ranges of global and local crops."""
EPOCH_IMAGES = {
    "rendered": 43_200,
    "smallnorb": 2_700,
    "nuscenes-rear": 27_319,
    "nuscenes-side": 27_319,
    "imagenet": 1_024_934,
}
"""Training images of one view at `paper`. smallNORB: one azimuth of the 25 training toys (9 elevations, 6 lights, 2
cameras). Others: four fifths of the rendered states, of 34,149 key frames, and of 1,281,167 images."""


def agent_trials(
    scale: Scale,
    scene: str,
    seeds: range,
    objective: str = "ijepa",
    *,
    shuffle: str = "none",
    number: int | None = None,
) -> list[Trial]:
    """Both agents of a scene, for each seed."""
    trials = []
    for seed in seeds:
        for view in range(2):
            trials.append(agent_trial(scale, scene, view, seed, objective, shuffle=shuffle, number=number))
    return trials


def agent_trial(
    scale: Scale,
    scene: str,
    view: int,
    seed: int,
    objective: str = "ijepa",
    *,
    shuffle: str = "none",
    number: int | None = None,
) -> Trial:
    """One agent; `number` is the index of its encoder in the plan."""
    plan = PLANS[scale]
    own_seed = 2 * seed + view
    encoder = plan.encoders[plan.usual if number is None else number]
    recipe = VisionRecipe(
        seed=own_seed,
        view=SCENES[scene].views[view],
        size=plan.size,
        held=plan.held,
        shuffle=_shuffle(shuffle, encoder.patch, own_seed),
        fit="cover" if scene == "imagenet" else "stretch",
        augmentation=_augmentation(scale, objective, SCENES[scene].pipelines[view]),
        encoder=encoder,
        objective=_objective(scale, objective),
        training=_published_training(scene) if scale == "paper" else plan.training,
    )
    place = {"scene": scene, "view": view, "objective": objective, "shuffle": shuffle, "width": encoder.width}
    settings = {"scene": scene, "most": plan.most, "recipe": to_plain(recipe), "world": to_plain(WORLDS[scale])}
    return Trial(place | {"seed": seed}, run_agent, settings)


def _objective(scale: Scale, name: str) -> AnyVision:
    if scale == "paper":
        return PUBLISHED_OBJECTIVES[name]
    chosen: Any = OBJECTIVES[name]
    if getattr(chosen, "momentum", 0.0) > SHORT_MOMENTUM:
        return replace(chosen, momentum=SHORT_MOMENTUM)
    return chosen


def _augmentation(scale: Scale, objective: str, pipelines: tuple[str, ...]) -> Augmentation:
    count, size = PLANS[scale].local
    large, small = None, Augmentation().local_scale
    if scale == "paper" and objective in CROP_AREAS:
        large, small = CROP_AREAS[objective]
    return Augmentation(pipelines, large, count, size, small)


def _shuffle(name: str, patch: int, seed: int) -> Shuffle | None:
    """A different order for every image and every agent: a common order would be shared information."""
    if name == "none":
        return None
    return Shuffle(patch if name == "patches" else 1, "image", seed)


def _published_training(scene: str) -> TrainingConfig:
    """200 epochs in batches of 256 (ImageNet: 300 in batches of 1,024), of which 10 are warm-up."""
    epochs, batch, lr = (300, 1024, 1.5e-4) if scene == "imagenet" else (200, 256, 3e-4)
    images = EPOCH_IMAGES[scene]
    steps, warmup = (count * images // batch for count in (epochs, 10))
    return replace(_PAPER, steps=steps, batch_size=batch, lr=lr, schedule=CosineSchedule(warmup))


def run_agent(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train one agent and store its latents."""
    return train_and_store(recipe_of(settings), settings["most"], Path(folder))


def recipe_of(settings: dict[str, Any]) -> VisionRecipe:
    """The recipe of a trial, with the images of its scene."""
    images = source_of(settings["scene"], from_plain(RenderedObjects, settings["world"]))
    return replace(from_plain(VisionRecipe, settings["recipe"]), images=images)


def train_and_store(recipe: VisionRecipe, most: int, folder: Path, judged: AnyImages | None = None) -> dict[str, Any]:
    """Train (or resume), encode, and report the cost and whether latents collapsed.

    Latents are those of the agent's own images, or of `judged` ones in their place.
    """
    record = train_job(to_plain(recipe), str(folder))
    if record["status"] != "finished":
        return record
    agent = load_agent(folder)
    untrained = build_vision(recipe, agent.seen).to(recipe.training.device_here())
    flops = step_flops(untrained, build_crops(recipe, agent.seen), recipe.training.accumulate) * recipe.training.steps
    seen = agent.seen if judged is None else read_images(replace(recipe, images=judged))
    rows = stored_rows(seen.table.column("state"), most)
    arrays = _latents(replace(agent, seen=seen), VisionAgent(recipe, untrained.eval(), seen), rows)
    write_arrays(folder / LATENTS, arrays)
    held = arrays["held"]
    groups = arrays["groups"][held] if "groups" in arrays else None
    collapse = collapse_verdict(arrays["h"][held], groups)
    costs = point_estimates({"flops": flops, "loss": last_metrics(folder)["loss"]}, 1)
    return record | {"verdicts": [collapse.to_json(), *as_verdicts(costs, "")]}


def stored_rows(states: np.ndarray, most: int) -> np.ndarray:
    """At most `most` rows, chosen by a hash of their states so that all agents choose the same states."""
    if len(states) <= most:
        return np.arange(len(states))
    hashes = [hashlib.blake2b(str(state).encode(), digest_size=8).digest() for state in states]
    return np.sort(np.argsort(hashes, kind="stable")[:most])


def _latents(agent: VisionAgent, untrained: VisionAgent, rows: np.ndarray) -> dict[str, np.ndarray]:
    recipe = agent.recipe
    held = np.isin(rows, agent.seen.held)
    layers = recipe.objective.kind == "ijepa" and recipe.shuffle is None
    # Where both agents see the same images, the view of an agent is the first of its augmentation pipelines.
    pipeline = next(iter(recipe.augmentation.pipelines), None) if recipe.view is None else None
    arrays = latents_of(agent, rows, layers=layers, pipeline=pipeline)
    arrays["untrained"] = latents_of(untrained, rows, pipeline=pipeline)["h"]
    held_layers = {name: array[held] for name, array in arrays.items() if name.startswith("layer")}
    return arrays | held_layers | {"held": held}
