"""The recipe of an agent: what is trained, on which world, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import tyro
from torch import nn

from jepatlas.core.distributed import rank, world_size
from jepatlas.core.errors import InputError
from jepatlas.core.seeding import forked_rng
from jepatlas.data import PairStream, Siblings, Transitions
from jepatlas.nn import CouplingConfig, MLPConfig
from jepatlas.objectives import (
    CovarianceConfig,
    InfoNCEConfig,
    LeJEPAConfig,
    PairObjective,
    Parts,
    VICRegConfig,
    WhiteningConfig,
)
from jepatlas.training import TrainingConfig, check_batch_size, check_no_running_statistics
from jepatlas.worlds import LatentWorld

__all__ = ["Recipe", "build_batches", "build_objective"]

Unprefixed = tyro.conf.arg(name="")


@dataclass(frozen=True)
class Recipe:
    """What is trained, on which world, and how."""

    seed: int = 0
    """From which everything random is derived."""
    world: Annotated[LatentWorld, Unprefixed] = field(default_factory=LatentWorld)
    pairs: Transitions | Siblings = field(default_factory=Transitions)
    """Which two states a learner sees together."""
    pool: int | None = None
    """Distinct pairs to learn from; where it is not given, every step draws fresh ones."""
    encoder: MLPConfig | CouplingConfig = field(default_factory=MLPConfig)
    latent_dim: int | None = None
    """Width of the latents; the world's own where it is not given."""
    projector: MLPConfig | None = None
    """A network between the latents and the loss."""
    objective: LeJEPAConfig | VICRegConfig | CovarianceConfig | InfoNCEConfig | WhiteningConfig = field(
        default_factory=LeJEPAConfig
    )
    training: Annotated[TrainingConfig, Unprefixed] = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        if self.latent_dim is not None and not self.latent_dim >= 1:
            raise InputError(f"latent_dim must be at least 1, but {self.latent_dim} was given.")
        if self.pool is not None and not self.pool >= self.training.batch_size:
            raise InputError(
                f"A pool of {self.pool} pairs is smaller than one batch of {self.training.batch_size}. Raise --pool, "
                "or lower --batch-size."
            )


def build_objective(recipe: Recipe) -> PairObjective:
    """The objective with fresh weights, derived from the recipe's seed."""
    world, dim = recipe.world, recipe.latent_dim or recipe.world.dim
    with forked_rng(recipe.seed, "weights"):
        encoder: nn.Module = recipe.encoder.build(world.observed_dim, dim)
        projector = recipe.projector.build(dim, recipe.projector.width) if recipe.projector else None
        objective = recipe.objective.build(Parts(encoder, dim, projector, recipe.seed))
    if recipe.training.ema:
        check_no_running_statistics(objective)
    check_batch_size(objective, recipe.training.batch_size // recipe.training.accumulate, dim)
    return objective


def build_batches(recipe: Recipe) -> PairStream:
    """The stream of this process's share of every (micro-)batch."""
    rows = recipe.training.batch_size // recipe.training.accumulate
    return PairStream(
        recipe.world, recipe.pairs, rows, recipe.seed, recipe.training.device, rank(), world_size(), recipe.pool
    )
