"""What the verbs that train have in common: a run is begun or resumed, and what became of it is said and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import Any

from rich.console import Console

from jepatlas.cli.options import console_for, emit, say
from jepatlas.core.distributed import is_main_process
from jepatlas.core.errors import InputError
from jepatlas.recipes import verb_of
from jepatlas.training import Outcome
from jepatlas.workflows.runs import resume_run

__all__ = ["RunOptions", "train_and_tell"]

BESIDE_RESUME = ("--resume", "--json", "--full")
CODES = {"finished": 0, "failed": 1, "interrupted": 130}
Answer = Mapping[str, Any]


@dataclass(frozen=True)
class RunOptions:
    """What can be asked of every run."""

    resume: Path | None = None
    """Go on with the run in this folder, whichever verb began it; its own recipe is used."""
    json: str | None = None
    """Write the outcome as JSON to this file (- for standard output)."""


def train_and_tell(
    verb: str,
    words: list[str],
    options: RunOptions,
    begin: Callable[[Console], tuple[Path, Outcome]],
    tell: Callable[[Console, Path, int], Answer],
    *,
    again: Callable[[Console, Path], object] = lambda console, folder: None,
) -> int:
    """Go on where `options` ask for that, after what there is to say `again`, else `begin`; of a run that finished
    `tell` says what came of it, and gives what is to be written beside its status. The exit code.

    A run that another verb began is gone on with by that verb, so that 'jepatlas train --resume' is right for all.
    """
    console = console_for(options.json)
    if options.resume is not None:
        own = verb_of(options.resume) if (options.resume / "recipe.yaml").is_file() else verb
        _refuse_changes(words, options.resume, own)
        if own != verb:
            return _by(own, words)
        again(console, options.resume)
        folder, outcome = options.resume, resume_run(options.resume, console)
    else:
        folder, outcome = begin(console)
    if is_main_process():
        finished = outcome.status == "finished"
        told = tell(console, folder, outcome.step) if finished else _unfinished(console, verb, folder, outcome)
        emit(options.json, {"run": str(folder), "status": outcome.status, "step": outcome.step, "verdicts": [], **told})
    return CODES[outcome.status]


def _by(verb: str, words: list[str]) -> int:
    """By the verb that knows what is to be done at the end of such a run."""
    first, *command = verb.split()
    return import_module(f"jepatlas.cli.{first}").main([*command, *words])


def _unfinished(console: Console, verb: str, folder: Path, outcome: Outcome) -> Answer:
    if outcome.verdict is None:
        say(console, f"Saved after step {outcome.step}. Go on with: jepatlas {verb} --resume {quote(str(folder))}")
        return {}
    console.print(f"[red]{outcome.verdict.advice}", highlight=False)
    return {"verdicts": [outcome.verdict.to_json()]}


def _refuse_changes(words: list[str], run: Path, verb: str) -> None:
    """What was typed counts, not what came of it: an option that asks for a default asks for something, too."""
    typed = [flag for word in words if word.startswith("--") and (flag := word.split("=")[0]) not in BESIDE_RESUME]
    if typed:
        raise InputError(
            f"--resume goes on with the run's own recipe and folder: leave out {', '.join(typed)}. To train otherwise, "
            f"begin a new run with those options: jepatlas {verb} --recipe {quote(str(run / 'recipe.yaml'))} --out ..."
        )
