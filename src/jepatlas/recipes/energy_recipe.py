"""Recipe of an energy: the steps it is learned from, its head and its objective."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import tyro

from jepatlas.core.arrays import read_arrays
from jepatlas.core.errors import InputError, check_count
from jepatlas.core.plugins import short_name
from jepatlas.core.records import Experience
from jepatlas.core.sealing import check_unchanged, seal_file
from jepatlas.core.seeding import numpy_generator
from jepatlas.energy.energy_configs import LeastActionConfig
from jepatlas.energy.heads import HeadConfig, IQEConfig
from jepatlas.energy.learn import ExpectileConfig, IEJEPAConfig, QRLConfig
from jepatlas.nn import MLPConfig
from jepatlas.objectives import CovarianceConfig, LeJEPAConfig, VICRegConfig, WhiteningConfig
from jepatlas.training import TrainingConfig
from jepatlas.worlds import AnyMixing, CurrentWorld, GymTable, OneWayGrid

if TYPE_CHECKING:
    from jepatlas.data import StepStream
    from jepatlas.energy.learn import IEJEPA, QRL, Expectile

    EnergyObjective = QRL | Expectile | IEJEPA

__all__ = [
    "AgentConfig",
    "AnySource",
    "EnergyRecipe",
    "EnergyWorld",
    "ExperienceSplit",
    "StepFile",
    "WalkConfig",
    "apply_mixing",
    "build_energy",
    "build_steps",
    "gather_experience",
]

HELD = 0.1  # share of the episodes that is held out
FEWEST = 2  # steps, so that an interval can be computed


@dataclass(frozen=True)
class StepFile:
    """A file of steps: x, x_next and cost for each step; or x, episode and cost for each state. Or episodes."""

    kind: ClassVar[str] = "file"
    later: ClassVar[dict[str, None]] = {"column": None}

    path: str = ""
    """The file: .npz, .safetensors, .csv or .parquet; or episodes: HDF5, LeRobot (version 3), Minari, Lance, .npz."""
    column: str | None = None
    """Of episodes: the column of states or latents. By default the first of 'state' and 'observation'. A step costs 1,
    or what the column 'cost' says."""
    sha256: str | None = None
    """Hash of the file. It is set when a run starts, and checked when the run is resumed."""

    def read(self) -> dict[str, np.ndarray]:
        from jepatlas.data import is_episodes, open_episodes, states_of_episodes

        place = check_unchanged(self.path, self.sha256)
        if is_episodes(place) or place.suffix in (".h5", ".hdf5"):
            return states_of_episodes(open_episodes(place), self.column)
        if self.column is not None:
            raise InputError(f"source.column is '{self.column}', but {self.path} is a file of steps, not of episodes.")
        return read_arrays(place)

    def sealed(self) -> StepFile:
        """With the absolute path and the hash of the file."""
        path, sha256 = seal_file(self.path)
        return replace(self, path=path, sha256=sha256)


EnergyWorld = OneWayGrid | GymTable | CurrentWorld
AnySource = OneWayGrid | GymTable | CurrentWorld | StepFile


@dataclass(frozen=True)
class WalkConfig:
    """How a world is explored. Not for files."""

    episodes: int = 1000
    """Number of random walks."""
    length: int = 50
    """Maximal number of steps of each."""
    coverage: float = 1.0
    """Share of the world's steps that are ever taken."""

    def __post_init__(self) -> None:
        for name in ("episodes", "length"):
            if not 1 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} must be at least 1, but {getattr(self, name)} was given.")
        if not 0 < self.coverage <= 1:
            raise InputError(f"coverage must be in (0, 1], but {self.coverage} was given.")


@dataclass(frozen=True)
class AgentConfig:
    """A JEPA whose latents the energy is defined on."""

    kind: ClassVar[str] = "jepa"

    encoder: MLPConfig = field(default_factory=MLPConfig)
    """Network from observations to latents."""
    dim: int = 2
    """Width of the latents."""
    objective: LeJEPAConfig | VICRegConfig | CovarianceConfig | WhiteningConfig = field(default_factory=LeJEPAConfig)
    """Objective of the JEPA, with steps as pairs."""
    together: IEJEPAConfig = field(default_factory=IEJEPAConfig)
    """How the JEPA and the energy are trained together."""

    def __post_init__(self) -> None:
        if not self.dim >= 1:
            raise InputError(f"dim, the width of the latents, must be at least 1, but {self.dim} was given.")


@dataclass(frozen=True)
class EnergyRecipe:
    """What an energy is learned from, and how."""

    kind: ClassVar[str] = "energy"

    seed: int = 0
    """Seed of the walks, the samples and the initial weights."""
    source: AnySource = field(default_factory=OneWayGrid)
    """Where steps and their costs come from."""
    walk: WalkConfig = field(default_factory=WalkConfig)
    """How a world is explored. Not for files."""
    mixing: AnyMixing | None = None
    """Map from states to observations. By default states are observed directly."""
    agent: AgentConfig | None = None
    """Train a JEPA on the same steps and learn the energy on its latents. By default the energy is learned on the
    observations."""
    embedding: MLPConfig = field(default_factory=lambda: MLPConfig(width=128, depth=2))
    """Network from observations or latents to the input of the head."""
    width: int = 256
    """Width of the input of the head."""
    floor: float = 0.0
    """c of E ≥ c‖x − y‖. Above 0, distinct points never have energy 0."""
    head: HeadConfig = field(default_factory=IQEConfig)
    learning: QRLConfig | ExpectileConfig | LeastActionConfig = field(default_factory=QRLConfig)
    """Objective of the energy. With least-action nothing is trained, and the options of the head, the embedding and the
    training are not used."""
    future: float = 0.0
    """Share of goals drawn from later states of the same episode. The others are drawn from all states."""
    jitter: float = 0.0
    """Largest random displacement of steps during training, in step lengths. For energies that will be used on latents
    mapped from another model."""
    training: Annotated[TrainingConfig, tyro.conf.arg(name="")] = field(
        default_factory=lambda: TrainingConfig(lr=1e-3, weight_decay=0.0, clip=None, collapse=0.0)
    )

    def __post_init__(self) -> None:
        check_count("width", self.width)
        if isinstance(self.source, StepFile) and self.walk != WalkConfig():
            raise InputError("--walk options are for worlds, but the source is a file. Leave them out.")

    @property
    def computed(self) -> bool:
        """Whether the energy is computed from the steps, and not trained."""
        return isinstance(self.learning, LeastActionConfig)

    @property
    def energy_name(self) -> str:
        return short_name(self.learning if self.computed else self.head)

    @property
    def run_name(self) -> str:
        """The name of its run folder by default."""
        source = Path(self.source.path).stem if isinstance(self.source, StepFile) else short_name(self.source)
        return f"{source}-{self.energy_name}-s{self.seed}"

    def sealed(self) -> EnergyRecipe:
        """With the hash of the file that it reads, if any."""
        return replace(self, source=self.source.sealed()) if isinstance(self.source, StepFile) else self

    def build(self) -> tuple[EnergyObjective, StepStream]:
        """The objective with initial weights, and the stream of its batches."""
        if self.computed:
            raise InputError("A least-action energy is not trained. Fit it with 'jepatlas energy fit'.")
        data = gather_experience(self)
        return build_energy(self, data), build_steps(self, data)


@dataclass(frozen=True)
class ExperienceSplit:
    """Steps for training, and steps of other episodes that are held out."""

    learnt: Experience
    held: Experience

    @property
    def width(self) -> int:
        return self.learnt.x.shape[1]

    @property
    def unit(self) -> float:
        """The mean of all positive costs: the unit of the energy."""
        return float(self.learnt.cost[self.learnt.cost > 0].mean())


def gather_experience(recipe: EnergyRecipe) -> ExperienceSplit:
    """The steps of a recipe, split into training and held-out episodes."""
    from jepatlas.data import experience_from_arrays

    source = recipe.source
    if not isinstance(source, StepFile):
        walk = recipe.walk
        experience = source.walk(walk.episodes, walk.length, recipe.seed, walk.coverage)
        return _split_by_episode(_observed(recipe.mixing, experience), recipe.seed)
    arrays = source.read()
    try:
        return _split_by_episode(_observed(recipe.mixing, experience_from_arrays(arrays)), recipe.seed)
    except InputError as error:
        raise InputError(f"{source.path}: {error}") from error


def _observed(mixing: AnyMixing | None, experience: Experience) -> Experience:
    if mixing is None:
        return experience
    return replace(experience, x=apply_mixing(mixing, experience.x), x_next=apply_mixing(mixing, experience.x_next))


def apply_mixing(mixing: AnyMixing, x: np.ndarray) -> np.ndarray:
    """Observations of the states x, (n, d) → (n, observed)."""
    import torch

    mixing.observed_dim(x.shape[1])  # raises InputError for another width
    return mixing(torch.as_tensor(x, dtype=torch.float32)).double().numpy()


def _split_by_episode(experience: Experience, seed: int) -> ExperienceSplit:
    """Hold out whole episodes, because steps of one walk are alike. Of a single episode the last part is held out."""
    names = np.unique(experience.episode)
    if len(names) > 1:
        count = max(1, round(HELD * len(names)))
        held = np.isin(experience.episode, numpy_generator(seed, "held episodes").permutation(names)[:count])
    else:
        held = np.arange(len(experience.cost)) >= (1 - HELD) * len(experience.cost)
    if held.all() or not held.any():
        raise InputError(
            f"{len(experience.cost)} step(s) in {len(names)} episode(s) are too few to hold some out. Give more."
        )
    split = ExperienceSplit(_rows(experience, ~held), _rows(experience, held))
    for name, part in (("training", split.learnt), ("held-out", split.held)):
        moving = int(((part.x != part.x_next).any(1) & (part.cost > 0)).sum())
        if moving < FEWEST:
            raise InputError(
                f"Of the {len(part.cost)} {name} step(s), {moving} have a positive cost and change the state, but at "
                f"least {FEWEST} are needed to define a scale. Give more episodes."
            )
    return split


def _rows(experience: Experience, rows: np.ndarray) -> Experience:
    e = experience
    z = None if e.z is None else e.z[rows]
    z_next = None if e.z_next is None else e.z_next[rows]
    return Experience(e.x[rows], e.x_next[rows], e.cost[rows], e.episode[rows], z, z_next)


def build_energy(recipe: EnergyRecipe, data: ExperienceSplit) -> EnergyObjective:
    """The objective with initial weights: that of the energy, or an IE-JEPA if the recipe has an agent."""
    from jepatlas.core.seeding import forked_rng
    from jepatlas.energy.learn import EmbeddedEnergy
    from jepatlas.objectives import Parts
    from jepatlas.training import check_batch_size, check_no_running_statistics

    agent = recipe.agent
    training = recipe.training
    width = data.width if agent is None else agent.dim
    with forked_rng(recipe.seed, "weights"):
        head = recipe.head.build(recipe.width)
        energy = EmbeddedEnergy(head, recipe.embedding.build(width, recipe.width), recipe.floor)
        assert not isinstance(recipe.learning, LeastActionConfig)
        objective: EnergyObjective = recipe.learning.build(energy, data.unit)
        if agent is not None:
            encoder = agent.encoder.build(data.width, agent.dim)
            jepa = agent.objective.build(Parts(encoder, agent.dim, None, recipe.seed))
            objective = agent.together.build(jepa, objective)
    if training.ema:
        check_no_running_statistics(objective)
    check_batch_size(objective, training.batch_size // training.accumulate, width)
    return objective


def build_steps(recipe: EnergyRecipe, data: ExperienceSplit) -> StepStream:
    """The stream of this process's share of every (micro-)batch."""
    from jepatlas.core.distributed import rank, world_size
    from jepatlas.data import StepStream

    training = recipe.training
    rows = training.batch_size // training.accumulate
    return StepStream(
        data.learnt, rows, recipe.seed, training.device, rank(), world_size(), recipe.future, recipe.jitter
    )
