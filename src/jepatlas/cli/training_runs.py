"""Shared by all commands that train: start a run or resume one, then report the outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from jepatlas.cli.options import mentions, parse_known
from jepatlas.cli.output import console_for, defer_interrupts, emit, say
from jepatlas.core.errors import InputError
from jepatlas.core.plugins import PLUGINS

if TYPE_CHECKING:
    from rich.console import Console

    from jepatlas.recipes import ViewImages, VisionRecipe
    from jepatlas.training import Outcome

__all__ = ["Answer", "RunOptions", "decode_images", "resume", "run_argument", "say_default", "train_and_report"]

Answer = Mapping[str, Any]
"""What a command adds to the JSON of a finished run."""

JUDGED = "energy fit"
"""The command that judges what it trained, and takes --full."""

EXIT_CODES = {"finished": 0, "failed": 1, "interrupted": 130}


@dataclass(frozen=True)
class RunOptions:
    """Options of every command that trains."""

    resume: Path | None = None
    """Resume the run in this folder with its own recipe, whichever command started it."""
    json: str | None = None
    """Write the outcome as JSON to this file (- for standard output)."""


@dataclass(frozen=True)
class _ResumeOptions(RunOptions):
    full: bool = False


def resume(
    command: str,
    args: Sequence[str],
    report: Callable[[Console, Path, int], Answer],
    prepare: Callable[[Console, Path], object] = lambda console, folder: None,
) -> int | None:
    """Resume a run if `--resume` is given, and return the exit code; otherwise None.

    A run of another command is resumed by that command, so that 'jepatlas train --resume' works for all runs.
    """
    if not mentions(args, "resume") or mentions(args, "help") or "-h" in args:
        return None
    options, others = parse_known(_ResumeOptions, args)
    folder = options.resume
    if folder is None:
        return None
    from jepatlas.recipes import verb_of

    own = verb_of(folder) if (folder / "recipe.yaml").is_file() else command
    if options.full and own != JUDGED:
        others.append("--full")
    if others:
        given = [word.split("=")[0] for word in others if word.startswith("--")] or others
        recipe = quote(str(folder / "recipe.yaml"))
        raise InputError(
            f"--resume uses the run's own recipe and folder: leave out {', '.join(given)}. For other options, "
            f"start a new run: jepatlas {own} --recipe {recipe} --out ..."
        )
    if own != command:
        from jepatlas.cli import run_command

        return run_command([*own.split(), *args])
    with defer_interrupts():
        from jepatlas.workflows.runs import resume_run

    def run(console: Console) -> tuple[Path, Outcome]:
        prepare(console, folder)
        return folder, resume_run(folder, console)

    return train_and_report(command, options, run, report)


def train_and_report(
    command: str,
    options: RunOptions,
    run: Callable[[Console], tuple[Path, Outcome]],
    report: Callable[[Console, Path, int], Answer],
) -> int:
    """Train, then print and write the outcome. `report` adds the results of a finished run."""
    with defer_interrupts():
        from jepatlas.core.distributed import is_main_process

    console = console_for(options.json)
    folder, outcome = run(console)
    if is_main_process():
        answer: dict[str, Any] = {
            "run": str(folder),
            "status": outcome.status,
            "step": outcome.step,
            "verdicts": [],
        }
        if outcome.status == "finished":
            answer |= report(console, folder, outcome.step)
        elif outcome.verdict is not None:
            console.print(f"[red]{outcome.verdict.advice}", highlight=False)
            answer["verdicts"] = [outcome.verdict.to_json()]
        else:
            say(
                console,
                f"Saved after step {outcome.step}. Resume with: jepatlas {command} --resume {run_argument(folder)}",
            )
        emit(options.json, answer)
    return EXIT_CODES[outcome.status]


def run_argument(folder: Path) -> str:
    """A run folder as another command takes it, with --trust if the recipe names user-defined classes."""
    trust = " --trust" if (folder / PLUGINS).is_file() else ""
    return f"{quote(str(folder))}{trust}"


def say_default(console: Console, name: str) -> None:
    """Say which source is used because none was given. Only the main process does so."""
    from jepatlas.core.distributed import is_main_process

    if is_main_process():
        say(console, f"No SOURCE was given: training on the world '{name}', the default.")


def decode_images(console: Console, *agents: VisionRecipe) -> list[ViewImages]:
    """Decode the images of each agent before training, and report unreadable ones. Only the main process does so."""
    from rich.progress import Progress

    from jepatlas.core.distributed import is_main_process
    from jepatlas.recipes import read_images

    if not is_main_process():
        return []
    decoded = []
    for agent in agents:
        with Progress(console=console, transient=True, disable=not console.is_interactive) as bar:
            task = bar.add_task("decoding images", total=None)
            images = read_images(agent, lambda done, total: bar.update(task, completed=done, total=total))  # noqa: B023
        if images.message:
            say(console, images.message)
        decoded.append(images)
    return decoded
