"""Recipe of an agent on images: the view it sees, its network and its objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import tyro

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError, check_positive
from jepatlas.core.plugins import short_name
from jepatlas.data.images import CropPlan, Fit, Shuffle, pipeline_named
from jepatlas.nn import ViTConfig
from jepatlas.objectives.vision import AnyVision, IJEPAConfig
from jepatlas.recipes.image_sources import AnyImages, ImageTable, SmallNORBFiles
from jepatlas.training import CosineSchedule, TrainingConfig

if TYPE_CHECKING:
    from jepatlas.core.linear import Split
    from jepatlas.data import Prefetched
    from jepatlas.data.images import ImageStream, ViewTable
    from jepatlas.objectives.vision import CropObjective

__all__ = [
    "Augmentation",
    "CameraChoiceRecipe",
    "Part",
    "ViewImages",
    "VisionRecipe",
    "build_crops",
    "build_vision",
    "crop_stream",
    "read_images",
]

Part = Literal["held", "learnt", "all"]
"""Which states of an agent: held-out states, training states, or both."""

CHANNELS = 3
LEAST = 2  # states, so that an interval can be computed


@dataclass(frozen=True)
class Augmentation:
    """Which crops of an image are shown. The objective decides how many."""

    kind: ClassVar[str] = "augmentation"

    pipelines: tuple[str, ...] = ()
    """Augmentation pipelines, which the crops of an image take in turn: A, B, mild, plain, none. By default plain for
    objectives on single crops, and A for objectives that compare crops."""
    scale: tuple[float, float] | None = None
    """Smallest and largest area of a large crop, as shares of the image. By default those of the pipeline (.2 to 1)."""
    local: int = 4
    """Number of small crops, for objectives that use them."""
    local_size: int = 32
    """Height and width of small crops."""
    local_scale: tuple[float, float] = (0.05, 0.2)
    """Smallest and largest area of a small crop, as shares of the image."""

    def __post_init__(self) -> None:
        for name in self.pipelines:
            pipeline_named(name)
        for low, high in (self.scale or self.local_scale, self.local_scale):
            if not 0 < low <= high <= 1:
                raise InputError(
                    f"The area of a crop is a range 0 < low ≤ high ≤ 1, as a share of the image, but {low} and {high} "
                    "were given."
                )
        if self.local < 1 or self.local_size < 1:
            raise InputError(
                f"local and local_size must be at least 1, but {self.local} and {self.local_size} were given."
            )

    def plan(self, objective: AnyVision) -> CropPlan:
        crops = objective.crops
        names = self.pipelines or (("plain",) if crops == "one" else ("A",))
        return CropPlan(crops, names, self.scale, self.local, (self.local_size, self.local_size), self.local_scale)


@dataclass(frozen=True)
class VisionRecipe:
    """Which view an agent sees, and how it learns from it."""

    kind: ClassVar[str] = "vision"

    seed: int = 0
    """Seed of the crops and the initial weights. It does not affect which states are held out."""
    images: AnyImages = field(default_factory=ImageTable)
    view: str | None = None
    """The view that the agent sees. Required if the images have more than one."""
    size: int = 64
    """Height and width that images are resized to."""
    fit: Fit = "stretch"
    """How images are resized: stretch the whole image, or cover: crop the largest central square."""
    held: float = 0.2
    """Share of the groups (objects, blocks of time) that is held out; share of the states if there are no groups.
    Ignored for images with a published split (smallNORB)."""
    split: int = 0
    """Seed of the choice of held-out groups. Agents that are to be compared need the same."""
    shuffle: Shuffle | None = None
    """Destroy the structure of images in this way, for ablations."""
    augmentation: Augmentation = field(default_factory=Augmentation)
    encoder: ViTConfig = field(default_factory=ViTConfig)
    objective: AnyVision = field(default_factory=IJEPAConfig)
    strict: bool = False
    """Fail on unreadable images. By default they are left out."""
    training: Annotated[TrainingConfig, tyro.conf.arg(name="")] = field(
        # The last normalisation of a ViT leaves one direction without variance, so collapse is judged after training.
        default_factory=lambda: TrainingConfig(
            steps=1000, batch_size=128, lr=1e-3, weight_decay=0.05, collapse=0.0, schedule=CosineSchedule(100)
        )
    )

    def __post_init__(self) -> None:
        check_literals(self)
        patch = self.encoder.patch
        if self.size < patch or self.size % patch:
            raise InputError(f"size must be a multiple of the patch size {patch}, but {self.size} was given.")
        if not 0 < self.held < 1:
            raise InputError(f"held is the share of held-out groups, in (0, 1), but {self.held} was given.")
        if self.objective.crops == "multi" and self.augmentation.local_size % patch:
            raise InputError(
                f"augmentation.local_size must be a multiple of the patch size {patch}, but "
                f"{self.augmentation.local_size} was given."
            )

    @property
    def run_name(self) -> str:
        """The name of its run folder by default."""
        name = self.images.kind
        if isinstance(self.images, ImageTable):
            table = Path(self.images.path)
            name = table.parent.name if table.name == "views.csv" else table.stem
        view = [self.view] if self.view else []
        return "-".join([name, *view, short_name(self.objective), f"s{self.seed}"])

    @property
    def agents(self) -> dict[str, tuple[VisionRecipe, str]]:
        """The recipe of each agent of a run, and the name of its submodule in the objective."""
        return {"own": (self, "")}

    def sealed(self) -> VisionRecipe:
        """With the hashes of the files that it reads."""
        return replace(self, images=self.images.sealed())

    def build(self) -> tuple[CropObjective, Prefetched]:
        """The objective with initial weights, and the stream of its batches."""
        images = read_images(self)
        return build_vision(self, images), build_crops(self, images)


@dataclass(frozen=True)
class CameraChoiceRecipe:
    """An agent that chooses a camera for every state before each round of training."""

    kind: ClassVar[str] = "looking"

    agent: VisionRecipe = field(default_factory=VisionRecipe)
    """The agent. Its `view` is one of the cameras."""
    views: tuple[str, ...] = ()
    """The cameras that it chooses from."""
    policy: Literal["random", "curious"] = "curious"
    """random: all cameras are equally likely. curious: cameras with a higher loss are more likely."""
    rounds: int = 10
    """Number of rounds, of equal length."""
    temperature: float = 0.5
    """Temperature of a curious choice, in standard deviations of the loss between cameras."""

    def __post_init__(self) -> None:
        check_literals(self)
        if len(self.views) < 2 or len(set(self.views)) < len(self.views):
            raise InputError(f"views must be at least two different views, but {self.views} were given.")
        if self.agent.view not in self.views:
            raise InputError(
                f"The agent's view '{self.agent.view}' must be one of the views to choose from: "
                f"{', '.join(self.views)}."
            )
        if not 1 <= self.rounds <= self.training.steps:
            raise InputError(f"rounds must be in 1 … {self.training.steps} (steps), but {self.rounds} was given.")
        check_positive("temperature", self.temperature)

    @property
    def seed(self) -> int:
        return self.agent.seed

    @property
    def training(self) -> TrainingConfig:
        return self.agent.training

    def steps_of_round(self, number: int) -> tuple[int, int]:
        """The first step of a round, and the step after its last."""
        steps = self.training.steps
        return steps * number // self.rounds, steps * (number + 1) // self.rounds


@dataclass(frozen=True)
class ViewImages:
    """The decoded images of an agent's view, split into training and held-out images."""

    table: ViewTable
    images: np.ndarray  # (n, height, width, 3), bytes, memory-mapped
    learnt: np.ndarray  # rows
    held: np.ndarray  # rows
    message: str  # about images that were left out


def read_images(
    recipe: VisionRecipe, progress: Callable[[int, int], None] | None = None, views: Sequence[str] = ()
) -> ViewImages:
    """Decode the view of a recipe, or several `views`.

    Which states are held out follows from all images, so that agents of different views hold out the same states.
    """
    from jepatlas.data.images import decode

    table = recipe.images.read()
    held = np.zeros(len(table), bool)
    held[_split(table, recipe).score] = True
    rows = [table.rows_of_view(view) for view in views or [_view(table, recipe.view)]]
    mine = np.sort(np.concatenate(rows))
    size = (recipe.size, recipe.size)
    decoded = decode(table.only(mine), size, fit=recipe.fit, strict=recipe.strict, progress=progress)
    held_of_state = dict(zip(table.column("state")[mine].tolist(), held[mine].tolist(), strict=True))
    is_held = np.array([held_of_state[state] for state in decoded.table.column("state").tolist()])
    learnt = np.flatnonzero(~is_held)
    judged = np.flatnonzero(is_held)
    if min(len(learnt), len(judged)) < LEAST:
        raise InputError(
            f"This view has {len(learnt)} training images and {len(judged)} held-out images, but at least {LEAST} of "
            "each are needed. Choose another share (--held) or split (--split), or give images of more states. "
            f"{decoded.message}".rstrip()
        )
    return ViewImages(decoded.table, decoded.images, learnt, judged, decoded.message)


def _split(table: ViewTable, recipe: VisionRecipe) -> Split:
    from jepatlas.data.images import official_split, split_states

    if isinstance(recipe.images, SmallNORBFiles) and recipe.images.official:
        return official_split(table, "testing")
    return split_states(table, recipe.held, recipe.split, by="group" if "group" in table.columns else "state")


def _view(table: ViewTable, view: str | None) -> str:
    if view is not None:
        return view
    if len(table.views) > 1:
        raise InputError(
            f"The images have {len(table.views)} views. Choose one: --view {' or '.join(table.views[:8])}."
        )
    return table.views[0]


def build_vision(recipe: VisionRecipe, images: ViewImages) -> CropObjective:
    """The objective with initial weights, and pixels scaled by the statistics of the training images."""
    from jepatlas.core.seeding import forked_rng
    from jepatlas.data.images import pixel_scale
    from jepatlas.objectives.vision import VisionParts
    from jepatlas.training import check_batch_size, check_no_running_statistics

    training = recipe.training
    width = recipe.encoder.width
    mean, std = pixel_scale(images.images, images.learnt)
    with forked_rng(recipe.seed, "weights"):
        encoder = recipe.encoder.build((CHANNELS, recipe.size, recipe.size), mean, std)
        parts = VisionParts(encoder, width, training.steps, recipe.seed, training.accumulate)
        objective = recipe.objective.build(parts)
    if training.ema:
        check_no_running_statistics(objective)
    check_batch_size(objective, training.batch_size // training.accumulate, width)
    return objective


def build_crops(recipe: VisionRecipe, images: ViewImages) -> Prefetched:
    """The stream of crops, prefetched by a thread."""
    from jepatlas.data import Prefetched

    return Prefetched(crop_stream(recipe, images))


def crop_stream(recipe: VisionRecipe, images: ViewImages) -> ImageStream:
    """The stream of this process's share of every (micro-)batch."""
    from jepatlas.core.distributed import rank, world_size
    from jepatlas.data.images import ImageStream

    training = recipe.training
    return ImageStream(
        images.images,
        training.batch_size // training.accumulate,
        recipe.seed,
        plan=recipe.augmentation.plan(recipe.objective),
        rows=images.learnt,
        shuffle=recipe.shuffle,
        device=training.device,
        rank=rank(),
        world_size=world_size(),
    )
