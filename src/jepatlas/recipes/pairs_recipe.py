"""Recipe of an encoder trained on the user's own pairs, which are given in Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar, NoReturn

import tyro

from jepatlas.core.errors import InputError, check_count
from jepatlas.nn import ConvConfig, CouplingConfig, MLPConfig
from jepatlas.objectives import CovarianceConfig, InfoNCEConfig, LeJEPAConfig, VICRegConfig, WhiteningConfig
from jepatlas.training import TrainingConfig

if TYPE_CHECKING:
    from torch import nn

    from jepatlas.objectives import PairObjective

__all__ = ["GivenModule", "PairsRecipe", "build_pairs_objective"]


@dataclass(frozen=True)
class GivenModule:
    """An encoder that is a user-defined `nn.Module`. The run has its weights, but not its code."""

    kind: ClassVar[str] = "module"

    name: str = ""
    """Its class, for the record."""

    def build(self, in_shape: object, out_dim: int) -> NoReturn:
        raise InputError(
            f"The encoder of this run is your own module ({self.name}), which a recipe cannot build. Build it, "
            "and load its weights: jepatlas.load_weights(run, module)."
        )


@dataclass(frozen=True)
class PairsRecipe:
    """How an encoder is trained on given pairs."""

    kind: ClassVar[str] = "pairs"

    seed: int = 0
    """Seed of the order of the rows and of the initial weights."""
    shape: tuple[int, ...] = ()
    """Shape of one observation; it is taken from the data."""
    pixels: bool = False
    """Whether observations are in uint8; it is taken from the data."""
    encoder: MLPConfig | ConvConfig | CouplingConfig | GivenModule = field(default_factory=MLPConfig)
    latent_dim: int = 8
    """Width of the latents."""
    projector: MLPConfig | None = None
    """Network between the latents and the loss."""
    objective: LeJEPAConfig | VICRegConfig | CovarianceConfig | InfoNCEConfig | WhiteningConfig = field(
        default_factory=LeJEPAConfig
    )
    training: Annotated[TrainingConfig, tyro.conf.arg(name="")] = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        check_count("latent_dim", self.latent_dim)

    def build(self) -> NoReturn:
        raise InputError(
            "The pairs of this run were given in Python, so only Python can train it: jepatlas.train(recipe, out, "
            "data=..., resume=True)."
        )


def build_pairs_objective(recipe: PairsRecipe, encoder: nn.Module | None = None) -> PairObjective:
    """The objective with initial weights, for the encoder of the recipe or for a given module."""
    from jepatlas.core.seeding import forked_rng
    from jepatlas.objectives import Parts
    from jepatlas.training import check_batch_size, check_no_running_statistics

    training = recipe.training
    with forked_rng(recipe.seed, "weights"):
        if encoder is None:
            encoder = _build_encoder(recipe)
        width = recipe.latent_dim
        projector = recipe.projector.build(width, recipe.projector.width) if recipe.projector else None
        objective = recipe.objective.build(Parts(encoder, width, projector, recipe.seed))
    if training.ema:
        check_no_running_statistics(objective)
    check_batch_size(objective, training.batch_size // training.accumulate, recipe.latent_dim)
    return objective


def _build_encoder(recipe: PairsRecipe) -> nn.Module:
    shape = recipe.shape
    images = isinstance(recipe.encoder, ConvConfig)
    if images and len(shape) != 3:
        raise InputError(f"The encoder 'conv' takes images (channels, height, width), but x has the shape {shape}.")
    if isinstance(recipe.encoder, MLPConfig | CouplingConfig) and len(shape) != 1:
        raise InputError(
            f"The encoder '{recipe.encoder.kind}' takes vectors, but x has the shape {shape}. Choose the encoder "
            "'conv' for images, or give your own module: encoder=module."
        )
    in_shape = shape if len(shape) != 1 else shape[0]
    return recipe.encoder.build(in_shape, recipe.latent_dim)  # pyright: ignore[reportArgumentType]
