"""`train`, `load`, `encode` and `drive`: runs, and what was trained in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args

import numpy as np
from rich.console import Console
from safetensors import SafetensorError, safe_open
from torch import nn

from jepatlas.alignment import Atlas, LinearProbe, load_atlas
from jepatlas.api.energy_functions import EnergyAudit
from jepatlas.api.export_function import export
from jepatlas.api.hub_function import push_to_hub
from jepatlas.api.inputs import as_array, as_folder, as_path
from jepatlas.api.record_files import read_saved_record
from jepatlas.core.arrays import read_arrays
from jepatlas.core.config import choices
from jepatlas.core.errors import InputError, check_count, did_you_mean
from jepatlas.core.linear_map import LinearMap
from jepatlas.planning import LQRConfig, PlannerConfig
from jepatlas.recipes import (
    AnyActionWorld,
    AnyRecipe,
    EnergyRecipe,
    PairsRecipe,
    Recipe,
    VisionRecipe,
    WorldModelRecipe,
    any_recipe,
    load_recipe,
    read_any_recipe,
    recipe_from_plain,
)
from jepatlas.reporting import write_report
from jepatlas.results import Result
from jepatlas.training import Outcome
from jepatlas.workflows.certify import Certificate, CertificateRecord
from jepatlas.workflows.encoder_files import is_encoder_file, load_encoder_file
from jepatlas.workflows.energy import FittedEnergy, SavedEnergy, is_energy_file, load_energy_file, load_fitted
from jepatlas.workflows.hub import ATLAS, CARD, FILES, download, is_repository_name
from jepatlas.workflows.pairs_training import load_pairs_objective, train_on_pairs
from jepatlas.workflows.plan import (
    Drive,
    DrivingConfig,
    Tasks,
    TrainedModel,
    agent_of,
    check_film,
    check_reachable,
    draw_tasks,
    drive_at_random,
    drive_environment,
    film_rows,
    imagined_films,
    load_world_model,
    place_of,
    planning_record,
    write_film,
)
from jepatlas.workflows.plan import drive as drive_tasks
from jepatlas.workflows.runs import load_objective, load_weights_into, start_run
from jepatlas.workflows.vision import load_agent

__all__ = ["Planning", "Run", "drive", "load", "load_weights", "train"]

Loaded = nn.Module | FittedEnergy | SavedEnergy | LinearMap | LinearProbe | Atlas | Result
TRAINABLE = Recipe | EnergyRecipe | WorldModelRecipe | VisionRecipe
M = TypeVar("M", bound=nn.Module)
PROBE = "jepatlas.LinearProbe"  # in the metadata of its file


@dataclass(frozen=True, repr=False)
class Run(Result):
    """A training run in a folder."""

    folder: Path
    outcome: Outcome

    record_name: ClassVar[str] = "outcome"

    @property
    def passed(self) -> bool | None:
        """Whether the run finished; None if it was interrupted."""
        return {"finished": True, "failed": False, "interrupted": None}[self.outcome.status]

    def load(self) -> Loaded:
        """What was trained (see `load`)."""
        return load(self.folder)

    def export(self, path: Path | str) -> Path:
        """Write the encoder as ONNX (.onnx) or as a torch.export program (.pt2)."""
        return export(self.folder, path)

    def push_to_hub(self, repository: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload the encoder, or the energy, with the records of the run (see `push_to_hub`)."""
        return push_to_hub(self.folder, repository, private=private, token=token)

    def report(self, path: Path | str) -> Path:
        """Write a page with all records of the run and its training curves."""
        return write_report([self.folder], path, title=self.folder.name)

    def report_folder(self, place: Path) -> Path:
        """The run folder."""
        del place
        return self.folder


def train(
    recipe: AnyRecipe | Mapping[str, Any] | Path | str,
    out: Path | str,
    console: Console | None = None,
    *,
    data: Any = None,
    held: Any = None,
    encoder: nn.Module | None = None,
    resume: bool = False,
) -> Run:
    """Train a recipe in the new run folder `out`. With a `console`, progress is shown.

    A recipe is an object (`Recipe`, `EnergyRecipe`, `WorldModelRecipe`, `VisionRecipe`), plain data, or a YAML file.
    The command line can resume, certify and report the run.

    A `PairsRecipe` trains on your own pairs: `data` are arrays (x, x_next), a mapping with x and x_next (and the true
    states z, if known), a file of these arrays, a torch Dataset whose items are such pairs, or a DataLoader of them.
    `held` are pairs for the certificate (by default the last tenth of the data; of a DataLoader none), and `encoder` is
    your own module instead of the recipe's. `resume` continues such a run after an interruption.
    """
    folder = as_folder("out", out)
    path = as_path("recipe", recipe) if isinstance(recipe, str | Path) else None
    if path is not None:
        recipe = read_any_recipe(path)
    elif isinstance(recipe, Mapping):
        recipe = recipe_from_plain(dict(recipe))
    if isinstance(recipe, PairsRecipe):
        pairs = _pairs("data", data)
        outcome = train_on_pairs(
            recipe, folder, pairs, held=_pairs("held", held), encoder=encoder, resume=resume, console=console
        )
        return Run(read_saved_record(folder / "records" / "outcome.json"), folder, outcome)
    given = {"data": data, "held": held, "encoder": encoder, "resume": resume or None}
    for name, value in given.items():
        if value is not None:
            raise InputError(f"'{name}' is for a PairsRecipe, but the recipe is a {type(recipe).__name__}.")
    if not isinstance(recipe, TRAINABLE):
        known = ", ".join(kind.__name__ for kind in get_args(TRAINABLE))
        raise InputError(f"'recipe' must be a recipe ({known}), not a {type(recipe).__name__}.")
    outcome = start_run(recipe.sealed(), folder, console)
    return Run(read_saved_record(folder / "records" / "outcome.json"), folder, outcome)


def _pairs(name: str, given: Any) -> Any:
    """The arrays of a file, or what was given."""
    path = as_path(name, given)
    return given if path is None else read_arrays(path)


def load_weights(run: Path | str, module: M) -> M:
    """Load the weights of a run's encoder into your own module of the same structure; returns the module."""
    place = as_folder("run", run)
    if not isinstance(module, nn.Module):
        raise InputError(f"'module' must be an nn.Module, not a {type(module).__name__}.")
    return load_weights_into(module, place)


def load(path: Path | str) -> Loaded:
    """Load what jepatlas wrote.

    run folder                  the trained `nn.Module`, in evaluation mode, with `encode(tensor)`
    run of an energy            its `FittedEnergy`, with `between(x, y)` and `matrix(x)`
    atlas folder                the `Atlas`
    map.safetensors             the `LinearMap`
    probe.safetensors           the `LinearProbe`
    energy.safetensors          the `SavedEnergy`; its `model()` is an `nn.Module`
    encoder.safetensors         the `SavedEncoder`, an `nn.Module` with `encode(x)`
    user/name, user/name@tag    any of these from the HuggingFace Hub, as `push_to_hub` wrote it
    records/NAME.json           the `Certificate`, the `EnergyAudit` without its matrix, or another `Result`
    folder of a saved result    its only record
    """
    if isinstance(path, str) and is_repository_name(path) and not Path(path).parent.is_dir():
        return _load_folder(download(path))
    place = as_path("path", path)
    if place is None:
        raise InputError(f"'path' must be a path, not a {type(path).__name__}.")
    if place.is_dir():
        return _load_folder(place)
    if place.suffix == ".json":
        return _load_record(place)
    if place.suffix != ".safetensors":
        raise InputError(f"{place} cannot be loaded: give a folder, or a .safetensors or .json file of jepatlas.")
    if is_energy_file(place):
        return load_energy_file(place)
    if is_encoder_file(place):
        return load_encoder_file(place)
    return LinearProbe.load(place) if _is_probe_file(place) else LinearMap.load(place)


def _is_probe_file(path: Path) -> bool:
    try:
        with safe_open(path, "numpy") as file:
            return PROBE in (file.metadata() or {})
    except SafetensorError as error:
        raise InputError(f"{path} is not a safetensors file: {error}") from error


def _load_folder(folder: Path) -> Loaded:
    if (folder / "atlas.json").is_file():
        return load_atlas(folder)
    if (folder / ATLAS / "atlas.json").is_file():
        return load_atlas(folder / ATLAS)
    for name in FILES:
        if (folder / f"{name}.safetensors").is_file() and (folder / CARD).is_file():
            return load(folder / f"{name}.safetensors")
    if not (folder / "recipe.yaml").is_file():
        return _load_only_record(folder)
    kind = any_recipe(folder).kind
    if kind not in LOADERS:
        raise InputError(f"{folder} is a run of kind '{kind}'. Load one of its agents, a folder in {folder}.")
    return LOADERS[kind](folder)


def _load_only_record(folder: Path) -> Result:
    """The record of a folder in which a result was saved."""
    records = sorted((folder / "records").glob("*.json"))
    if len(records) == 1:
        return _load_record(records[0])
    if records:
        listed = ", ".join(path.name for path in records)
        raise InputError(f"{folder} contains several records: {listed}. Load one of them, as {records[0]}.")
    raise InputError(
        f"{folder} is neither a run (it has no recipe.yaml) nor an atlas (it has no atlas.json), and it has no record "
        "(records/NAME.json)."
    )


LOADERS: dict[str, Callable[[Path], Loaded]] = {
    Recipe.kind: lambda folder: load_objective(folder)[1],
    EnergyRecipe.kind: load_fitted,
    WorldModelRecipe.kind: lambda folder: load_world_model(folder).objective,
    VisionRecipe.kind: lambda folder: load_agent(folder).objective,
    PairsRecipe.kind: lambda folder: load_pairs_objective(folder, load_recipe(folder, PairsRecipe)),
}
"""How the run of each kind of recipe is loaded."""


def _load_record(path: Path) -> Result:
    record = read_saved_record(path)
    if isinstance(record, CertificateRecord):
        return Certificate(record)
    return EnergyAudit(record) if path.stem == EnergyAudit.record_name else Result(record)


@dataclass(frozen=True, repr=False)
class Planning(Result):
    """Episodes of an agent that plans, and which goals random actions reach."""

    drive: Drive
    chance: np.ndarray  # (b,) bool

    record_name: ClassVar[str] = "planning"

    @property
    def success_rate(self) -> float:
        return float(self.drive.reached.mean())

    def film(self, path: Path | str) -> Path:
        """Write some episodes, with the imagined frames below them, as .gif or .mp4."""
        write_film(Path(path), *film_rows(self.record.arrays))
        return Path(path)


def drive(
    run: Path | str,
    *,
    tasks: int = 50,
    start: Any = None,
    goal: Any = None,
    planner: str | PlannerConfig | None = None,
    steps: int | None = None,
    config: DrivingConfig | None = None,
    world: AnyActionWorld | None = None,
    environment: str | None = None,
    film: Path | str | None = None,
    seed: int = 0,
) -> Planning:
    """Drive to goals by planning in the latents of a world model, as `jepatlas plan` does.

    `run` is the folder of a world model. `tasks` starts and goals are drawn, unless `start` and `goal` are given.
    `planner` is a name ("mppi", "cem", ...) or a configuration, `steps` the maximal length of an episode; `config`
    holds all settings. The world is that of the run unless another one with the same observations and actions is given.
    `film` is the .gif or .mp4 file of some episodes.

    A run that was trained on episodes of a gymnasium environment drives there. `environment` is the name of another one
    with the same observations and actions, or of one whose module is to be imported, such as "my_env:Dot-v0". There
    goals are observations of random episodes from the same starts.
    """
    folder = as_folder("run", run)
    config = _driving(config or DrivingConfig(), planner, steps)
    if film is not None:
        check_film(Path(film))
    model = load_world_model(folder)
    name = environment or (model.environment if world is None else None)
    if name is not None:
        _refuse_for_environment(name, environment, world=world, start=start, goal=goal)
        return _drive_in_environment(folder, name, model, config, tasks=tasks, film=film, seed=seed)
    place = place_of(model, world, str(folder))
    if film is not None:
        check_film(Path(film), place.world)
    chosen, warning = _tasks(place.world, tasks, start, goal, seed)
    agent = agent_of(model, config.planner)
    driven = drive_tasks(place.world, agent, chosen, config, seed)
    chance = drive_at_random(place.world, chosen, config.steps, seed, model.explored)
    record = planning_record(
        f"Planning of {folder.name}",
        place.world,
        {"the agent": driven},
        chance,
        seed=seed,
        agent=agent,
        explored=model.explored,
        films=[imagined_films(model, agent, 3)],
        about={"run": folder.name, "world": place.world.kind, "planner": config.planner.kind},
        notes=(place.note, warning, _planner_note(config.planner)),
    )
    planning = Planning(record, driven, chance)
    if film is not None:
        planning.film(film)
    return planning


def _refuse_for_environment(name: str, given: str | None, **arguments: Any) -> None:
    for argument, value in arguments.items():
        if value is not None:
            raise InputError(f"'{argument}' is for the worlds of jepatlas. In '{name}' tasks are drawn. Leave it out.")
    if given is None and ":" in name:
        raise InputError(
            f"The run was trained in '{name}', a name that imports a module. To allow that, add --environment {name} "
            f"(in Python environment={name!r})."
        )


def _drive_in_environment(
    folder: Path,
    name: str,
    model: TrainedModel,
    config: DrivingConfig,
    *,
    tasks: int,
    film: Path | str | None,
    seed: int,
) -> Planning:
    check_count("tasks", tasks)
    agent = agent_of(model, config.planner)
    found = drive_environment(name, model, agent, tasks, config, seed=seed)
    if film is not None and not found.films[1].panels:
        raise InputError(f"'{name}' cannot be rendered, so it has no film. Leave film out.")
    returns = ""
    if found.returns.any() or found.chance_returns.any():
        returns = (
            f"Mean sum of rewards: {found.returns.mean():.4g}; of random actions {found.chance_returns.mean():.4g}."
        )
    record = planning_record(
        f"Planning of {folder.name}",
        None,
        {"the agent": found.drive},
        found.chance,
        seed=seed,
        agent=agent,
        explored=model.explored,
        films=[found.films],
        about={"run": folder.name, "environment": name, "planner": config.planner.kind},
        notes=(returns, _planner_note(config.planner)),
    )
    planning = Planning(record, found.drive, found.chance)
    if film is not None:
        planning.film(film)
    return planning


def _planner_note(planner: PlannerConfig) -> str:
    if isinstance(planner, LQRConfig) and planner.infinite:
        return (
            "With an infinite horizon, LQR steers to the latent nearest to the goal's, by least squares, at which an "
            "action can hold it."
        )
    return ""


def _driving(config: DrivingConfig, planner: str | PlannerConfig | None, steps: int | None) -> DrivingConfig:
    if isinstance(planner, str):
        known = choices(PlannerConfig)
        if planner not in known:
            raise InputError(f"planner is '{planner}', which is unknown. {did_you_mean(planner, known)}")
        planner = known[planner]()
    if planner is not None:
        config = replace(config, planner=planner)
    return config if steps is None else replace(config, steps=steps)


def _tasks(world: AnyActionWorld, tasks: int, start: Any, goal: Any, seed: int) -> tuple[Tasks, str]:
    """The given task, or random ones, and a warning about it or an empty string."""
    if start is None and goal is None:
        check_count("tasks", tasks)
        return draw_tasks(world, tasks, seed), ""
    if start is None or goal is None:
        raise InputError("'start' and 'goal' belong together: give both, or neither to draw tasks.")
    first = _state(world, "start", start)
    last = _state(world, "goal", goal)
    return Tasks(first, last), check_reachable(world, first, last)


def _state(world: AnyActionWorld, name: str, given: Any) -> np.ndarray:
    state = as_array(name, given).astype(np.float64).reshape(1, -1)
    if state.shape[1] != world.state_dim or not world.admits(state)[0]:
        raise InputError(
            f"'{name}' {state[0].tolist()} is not a state of '{world.kind}': give {world.state_dim} numbers, inside "
            "the world and not in a wall."
        )
    return state
