"""Recipe of an encoder trained on pairs of states of a world with known truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar

import tyro

from jepatlas.core.errors import InputError
from jepatlas.core.plugins import short_name
from jepatlas.data import Siblings, Transitions
from jepatlas.nn import CouplingConfig, MLPConfig
from jepatlas.objectives import CovarianceConfig, InfoNCEConfig, LeJEPAConfig, VICRegConfig, WhiteningConfig
from jepatlas.training import TrainingConfig
from jepatlas.worlds import LatentWorld

if TYPE_CHECKING:
    from jepatlas.data import PairStream
    from jepatlas.objectives import PairObjective

__all__ = ["Recipe", "build_batches", "build_objective"]


@dataclass(frozen=True)
class Recipe:
    """What is trained, on which world, and how."""

    kind: ClassVar[str] = "agent"
    later: ClassVar[dict[str, str]] = {"kind": "agent"}  # recipe files of agents do not name their kind

    seed: int = 0
    """Seed of the samples and of the initial weights."""
    world: Annotated[LatentWorld, tyro.conf.arg(name="")] = field(default_factory=LatentWorld)
    pairs: Transitions | Siblings = field(default_factory=Transitions)
    """Which two states form a positive pair."""
    pool: int | None = None
    """Number of distinct pairs to train on. By default every step draws fresh pairs."""
    encoder: MLPConfig | CouplingConfig = field(default_factory=MLPConfig)
    latent_dim: int | None = None
    """Width of the latents. By default the dimension of the world."""
    projector: MLPConfig | None = None
    """Network between the latents and the loss."""
    objective: LeJEPAConfig | VICRegConfig | CovarianceConfig | InfoNCEConfig | WhiteningConfig = field(
        default_factory=LeJEPAConfig
    )
    training: Annotated[TrainingConfig, tyro.conf.arg(name="")] = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        if self.latent_dim is not None and not self.latent_dim >= 1:
            raise InputError(f"latent_dim must be at least 1, but {self.latent_dim} was given.")
        if self.pool is not None and not self.pool >= self.training.batch_size:
            raise InputError(
                f"pool is {self.pool} pairs, but must be at least the batch size of {self.training.batch_size}. Raise "
                "--pool, or lower --batch-size."
            )

    @property
    def run_name(self) -> str:
        """The name of its run folder by default."""
        return f"{short_name(self.world.mixing)}-{short_name(self.objective)}-s{self.seed}"

    def sealed(self) -> Recipe:
        """The recipe itself: it reads no files."""
        return self

    def build(self) -> tuple[PairObjective, PairStream]:
        """The objective with initial weights, and the stream of its batches."""
        return build_objective(self), build_batches(self)


def build_objective(recipe: Recipe) -> PairObjective:
    """The objective with initial weights, which follow from the recipe's seed."""
    from jepatlas.core.seeding import forked_rng
    from jepatlas.objectives import Parts
    from jepatlas.training import check_batch_size, check_no_running_statistics

    world = recipe.world
    training = recipe.training
    dim = recipe.latent_dim or world.dim
    with forked_rng(recipe.seed, "weights"):
        encoder = recipe.encoder.build(world.observed_dim, dim)
        projector = recipe.projector.build(dim, recipe.projector.width) if recipe.projector else None
        objective = recipe.objective.build(Parts(encoder, dim, projector, recipe.seed))
    if training.ema:
        check_no_running_statistics(objective)
    check_batch_size(objective, training.batch_size // training.accumulate, dim)
    return objective


def build_batches(recipe: Recipe) -> PairStream:
    """The stream of this process's share of every (micro-)batch."""
    from jepatlas.core.distributed import rank, world_size
    from jepatlas.data import PairStream

    training = recipe.training
    rows = training.batch_size // training.accumulate
    return PairStream(recipe.world, recipe.pairs, rows, recipe.seed, training.device, rank(), world_size(), recipe.pool)
