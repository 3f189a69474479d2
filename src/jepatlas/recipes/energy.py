"""The recipe of an energy: what it is learned from, on which latents, with which head and objective."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import tyro

from jepatlas.core.distributed import rank, world_size
from jepatlas.core.errors import InputError
from jepatlas.core.seeding import forked_rng
from jepatlas.data import StepStream
from jepatlas.energy.heads import HeadConfig, IQEConfig
from jepatlas.energy.learn import IEJEPA, EmbeddedEnergy, ExpectileConfig, IEJEPAConfig, QRLConfig
from jepatlas.nn import MLPConfig
from jepatlas.objectives import CovarianceConfig, LeJEPAConfig, Parts, VICRegConfig, WhiteningConfig
from jepatlas.recipes.experience import AnySource, Gathered, StepFile, WalkConfig, gather
from jepatlas.training import TrainingConfig, check_batch_size, check_no_running_statistics
from jepatlas.worlds import AnyMixing, OneWayGrid

__all__ = ["AgentConfig", "EnergyRecipe", "build_energy", "build_steps", "gathered"]


@dataclass(frozen=True)
class AgentConfig:
    """A JEPA whose latents the energy lives on, and how the two are trained together."""

    kind: ClassVar[str] = "jepa"

    encoder: MLPConfig = field(default_factory=MLPConfig)
    """From observations to latents."""
    dim: int = 2
    """Width of the latents."""
    objective: LeJEPAConfig | VICRegConfig | CovarianceConfig | WhiteningConfig = field(default_factory=LeJEPAConfig)
    """What the JEPA itself minimises, on steps as pairs."""
    together: IEJEPAConfig = field(default_factory=IEJEPAConfig)
    """Whether the energy shapes the encoder, too."""

    def __post_init__(self) -> None:
        if not self.dim >= 1:
            raise InputError(f"dim, the width of the latents, must be at least 1, but {self.dim} was given.")


@dataclass(frozen=True)
class EnergyRecipe:
    """What an energy is learned from, and how."""

    kind: ClassVar[str] = "energy"

    seed: int = 0
    """From which everything random is derived."""
    source: AnySource = field(default_factory=OneWayGrid)
    """Where steps and their costs come from."""
    walk: WalkConfig = field(default_factory=WalkConfig)
    """How a world is explored; a file's steps are taken as they are."""
    mixing: AnyMixing | None = None
    """What the observations are seen through; as they are where not given."""
    agent: AgentConfig | None = None
    """A JEPA that is trained on the same steps, with the energy on its latents; without one, on the observations."""
    embedding: MLPConfig = field(default_factory=lambda: MLPConfig(width=128, depth=2))
    """From observations or latents to what the head compares."""
    width: int = 256
    """Width of what the head compares."""
    floor: float = 0.0
    """c of E ≥ c‖x − y‖: above 0, distinct points are never at energy 0."""
    head: HeadConfig = field(default_factory=IQEConfig)
    learning: QRLConfig | ExpectileConfig = field(default_factory=QRLConfig)
    """The objective that steps are learned by."""
    future: float = 0.0
    """Share of goals that are drawn from what came later in the same episode; the others from all states."""
    jitter: float = 0.0
    """How far steps are moved at most while learning, in step lengths: for use on latents that come through a map."""
    training: Annotated[TrainingConfig, tyro.conf.arg(name="")] = field(
        default_factory=lambda: TrainingConfig(lr=1e-3, weight_decay=0.0, clip=None, collapse=0.0)
    )

    def __post_init__(self) -> None:
        if not self.width >= 1:
            raise InputError(f"width must be at least 1, but {self.width} was given.")
        if isinstance(self.source, StepFile) and self.walk != WalkConfig():
            raise InputError("A file's steps are taken as they are: leave out --walk, which is for worlds.")


def gathered(recipe: EnergyRecipe) -> Gathered:
    return gather(recipe.source, recipe.walk, recipe.mixing, recipe.seed)


def build_energy(recipe: EnergyRecipe, data: Gathered) -> Any:
    """The objective with fresh weights: the learning of the energy, within an IE-JEPA where there is an agent."""
    agent = recipe.agent
    with forked_rng(recipe.seed, "weights"):
        given = data.width if agent is None else agent.dim
        energy = EmbeddedEnergy(
            recipe.head.build(recipe.width), recipe.embedding.build(given, recipe.width), recipe.floor
        )
        objective: Any = recipe.learning.build(energy, data.unit)
        if agent is not None:
            encoder = agent.encoder.build(data.width, agent.dim)
            jepa = agent.objective.build(Parts(encoder, agent.dim, None, recipe.seed))
            objective = IEJEPA(jepa, objective, agent.together)
    if recipe.training.ema:
        check_no_running_statistics(objective)
    check_batch_size(objective, recipe.training.batch_size // recipe.training.accumulate, given)
    return objective


def build_steps(recipe: EnergyRecipe, data: Gathered) -> StepStream:
    """The stream of this process's share of every (micro-)batch."""
    rows = recipe.training.batch_size // recipe.training.accumulate
    place = (recipe.training.device, rank(), world_size())
    return StepStream(data.learnt, rows, recipe.seed, *place, recipe.future, recipe.jitter)
