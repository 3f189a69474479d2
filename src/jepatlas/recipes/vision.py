"""The recipe of an agent on images: which view of which scenes it sees, with which network, and what it learns by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import tyro

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError
from jepatlas.data.images import CropPlan, Fit, Shuffle, pipeline_named
from jepatlas.nn import ViTConfig
from jepatlas.objectives.vision import AnyVision, IJEPAConfig
from jepatlas.recipes.image_sources import AnyImages, ImageTable
from jepatlas.training import CosineSchedule, TrainingConfig

__all__ = ["Augmentation", "VisionRecipe"]


@dataclass(frozen=True)
class Augmentation:
    """How crops are made of images; how many, the objective says."""

    kind: ClassVar[str] = "augmentation"

    pipelines: tuple[str, ...] = ()
    """Names, which the crops of an image take in turn: A, B, mild, plain, none. By default plain for objectives on
    single crops, and A for those that compare crops."""
    scale: tuple[float, float] | None = None
    """Area of a large crop as a share of the image, from … to; by default that of the pipeline (.2 to 1)."""
    local: int = 4
    """Smaller crops, for objectives that take them."""
    local_size: int = 32
    """Their height and width."""
    local_scale: tuple[float, float] = (0.05, 0.2)
    """Their area."""

    def __post_init__(self) -> None:
        for name in self.pipelines:
            pipeline_named(name)
        for low, high in (self.scale or self.local_scale, self.local_scale):
            if not 0 < low <= high <= 1:
                raise InputError(
                    f"A crop's area is a share of the image, from low to high within 0 and 1, but {low} "
                    f"and {high} were given."
                )
        if self.local < 1 or self.local_size < 1:
            raise InputError(
                f"Smaller crops have a number and a size of at least 1, but {self.local} of {self.local_size} were "
                "given."
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
    """From which everything random is derived, but for what is held out."""
    images: AnyImages = field(default_factory=ImageTable)
    view: str | None = None
    """The one view that the agent sees; it may be left out where the images have only one."""
    size: int = 64
    """Height and width that images are brought to."""
    fit: Fit = "stretch"
    """How: all of an image, stretched; or with `cover` the largest square in its middle."""
    held: float = 0.2
    """Share of the groups (objects, blocks of time) that no agent learns from; of the states, where there are no
    groups. Images that come with a split of their own (smallNORB) are held out by that."""
    split: int = 0
    """Which groups are held out: agents that are to be compared need the same."""
    shuffle: Shuffle | None = None
    """Whether the structure of images is destroyed, for ablations."""
    augmentation: Augmentation = field(default_factory=Augmentation)
    encoder: ViTConfig = field(default_factory=ViTConfig)
    objective: AnyVision = field(default_factory=IJEPAConfig)
    strict: bool = False
    """Refuse images that cannot be read, and do not leave them out."""
    training: Annotated[TrainingConfig, tyro.conf.arg(name="")] = field(
        # A ViT's last normalisation leaves one direction without variance, so collapse is judged after training.
        default_factory=lambda: TrainingConfig(
            steps=1000, batch_size=128, lr=1e-3, weight_decay=0.05, collapse=0.0, schedule=CosineSchedule(100)
        )
    )

    def __post_init__(self) -> None:
        check_literals(self)
        if self.size < self.encoder.patch or self.size % self.encoder.patch:
            raise InputError(
                f"Patches of {self.encoder.patch} pixels do not fill images of {self.size}. Choose a "
                "size that is a multiple of the patch."
            )
        if not 0 < self.held < 1:
            raise InputError(f"held is the share of groups to hold out, between 0 and 1, but {self.held} was given.")
        if self.objective.crops == "multi" and self.augmentation.local_size % self.encoder.patch:
            raise InputError(
                f"Patches of {self.encoder.patch} pixels do not fill smaller crops of "
                f"{self.augmentation.local_size}. Choose another --augmentation.local-size."
            )
