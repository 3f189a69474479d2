"""`jepatlas train world-model`: train a world model on episodes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import tyro

from jepatlas.cli.options import RecipeFile, mentions, parse_choices
from jepatlas.cli.output import defer_interrupts, say, show_verdicts
from jepatlas.cli.training_runs import Answer, RunOptions, resume, run_argument, say_default, train_and_report
from jepatlas.core.config import choices
from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.core.plugins import is_plugin_name, name_plugin
from jepatlas.energy.energy_configs import LeastActionConfig
from jepatlas.nn import ConvConfig, MLPConfig
from jepatlas.recipes import AnyActionWorld, EpisodeSource, Predictive, WalkedWorld, WorldModelRecipe

if TYPE_CHECKING:
    from rich.console import Console

    from jepatlas.training import Outcome

COMMAND = "train world-model"


@dataclass(frozen=True)
class TrainWorldModel(RecipeFile, RunOptions):
    """Train a world model: an encoder, and latent dynamics that predict future latents from actions.

    Example: jepatlas train world-model rooms --steps 1000 --out runs/rooms

    Example: jepatlas train world-model episodes.h5 --energy energy --out runs/mine

    Example: jepatlas train world-model rooms --energy least-action --out runs/rooms

    A world is explored by random actions. For planning, the number of steps from one latent to another is learned as
    well (--energy energy), or computed afterwards from the observed steps (--energy least-action). Pictures are
    observed if there are any; the default encoder is conv for pictures and mlp for vectors.

    Each kind has its own options: --encoder conv --help shows those of the convolutional encoder.
    """

    most_used: ClassVar[str] = "world encoder model dynamics energy steps batch-size seed out resume"

    subject: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="SOURCE")] = None
    """A world (rooms, maze, reacher, linear-quadratic), or episodes: an HDF5 file as 'jepatlas collect' writes it, or a
    folder of LeRobot, Minari, Lance, or of one .npz per episode. By default the world 'rooms'."""
    recipe: Annotated[WorldModelRecipe, tyro.conf.arg(name="")] = field(default_factory=WorldModelRecipe)
    out: Path | None = None
    """The run folder; by default runs/SOURCE-MODEL-sSEED."""


def main(args: list[str]) -> int:
    code = resume(COMMAND, args, _report)
    if code is not None:
        return code
    options = parse_choices(TrainWorldModel(), COMMAND, args, _with_source)
    if options.recipe_file is None and not mentions(args, "encoder"):
        options = replace(options, recipe=_with_default_encoder(options.recipe))
    return train_and_report(COMMAND, options, lambda console: _start(options, console), _report)


def _with_source(word: str, options: TrainWorldModel) -> TrainWorldModel:
    """The options for a world or a file of episodes."""
    worlds = choices(AnyActionWorld)
    if is_plugin_name(word):
        worlds[word] = name_plugin(word)
    if word in worlds:
        source: WalkedWorld | EpisodeSource = WalkedWorld(worlds[word]())
    elif Path(word).is_file() or _is_episodes(Path(word)):
        source = EpisodeSource(word)
    else:
        raise InputError(f"'{word}' is neither a file nor a world. {did_you_mean(word, worlds)}")
    return replace(options, recipe=replace(options.recipe, source=source))


def _is_episodes(path: Path) -> bool:
    from jepatlas.data import is_episodes

    return is_episodes(path)


def _with_default_encoder(recipe: WorldModelRecipe) -> WorldModelRecipe:
    """An MLP instead of the default encoder if observations are vectors."""
    if recipe.encoder != ConvConfig():
        return recipe
    return replace(recipe, encoder=MLPConfig()) if recipe.source.observes_vectors else recipe


def _start(options: TrainWorldModel, console: Console) -> tuple[Path, Outcome]:
    with defer_interrupts():
        from jepatlas.core.distributed import is_main_process
        from jepatlas.workflows.runs import start_run

    recipe = options.recipe.sealed()
    default = recipe.source.name == TrainWorldModel().recipe.source.name
    if default and options.subject is None and options.recipe_file is None:
        say_default(console, recipe.source.name)
    if is_main_process():
        _report_short_episodes(console, recipe)
    folder = options.out or Path("runs") / recipe.run_name
    return folder, start_run(recipe, folder, console)


def _report_short_episodes(console: Console, recipe: WorldModelRecipe) -> None:
    from jepatlas.data import open_episodes
    from jepatlas.recipes import episodes_too_short

    if not isinstance(recipe.source, EpisodeSource):
        return
    lengths = open_episodes(recipe.source.path).lengths
    short = episodes_too_short(recipe, lengths)
    if 0 < short < len(lengths):  # if all are too short, training fails with a message
        say(
            console,
            f"{short} of {len(lengths)} episodes are shorter than a training window (--stride, --model.horizon) and "
            "are not used.",
        )


def _report(console: Console, folder: Path, step: int) -> Answer:
    from jepatlas.recipes import load_recipe

    _save_least_action(console, folder)
    say(console, f"Trained {step} steps: {folder}. {_next_step(folder, load_recipe(folder, WorldModelRecipe))}")
    return {}


def _save_least_action(console: Console, folder: Path) -> None:
    """Write the computed energy of the run, if it has one, as energy.safetensors."""
    from jepatlas.recipes import load_recipe

    model = load_recipe(folder, WorldModelRecipe).model
    if not isinstance(model, Predictive) or not isinstance(model.energy, LeastActionConfig):
        return
    with defer_interrupts():
        from jepatlas.workflows.energy import SavedEnergy, save_energy
        from jepatlas.workflows.plan import load_world_model

    energy = load_world_model(folder).least_action
    assert energy is not None
    save_energy(SavedEnergy.computed(energy), folder / "energy.safetensors")
    show_verdicts(console, "Least action", energy.verdicts, full=True)


def _next_step(folder: Path, recipe: WorldModelRecipe) -> str:
    from jepatlas.data import open_episodes
    from jepatlas.recipes import world_of_file

    if not isinstance(recipe.model, Predictive):
        return f"Next: jepatlas certify {run_argument(folder)}"
    command = f"Next: jepatlas plan {run_argument(folder)}"
    if isinstance(recipe.source, WalkedWorld):
        return command
    file = open_episodes(recipe.source.path)
    if world_of_file(file) is not None:
        return command
    if "environment" in file.about:
        name = str(file.about["environment"])
        return f"{command} --environment {name}" if ":" in name else command
    python = (
        "plan from Python: jepatlas.workflows.plan.agent_of gives the encoder and the dynamics, and "
        "jepatlas.planning.receding_horizon plans and calls your function for each step."
    )
    worlds = ", ".join(choices(AnyActionWorld))
    return f"{command} --world WORLD, if the episodes are of a world of jepatlas ({worlds}). Otherwise {python}"
