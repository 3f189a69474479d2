"""Verbs with commands of their own: `jepatlas atlas build …`. A command's module is imported when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from jepatlas.core.errors import InputError, did_you_mean

__all__ = ["run_command"]


def run_command(verb: str, commands: Mapping[str, str], words: list[str], *, example: str) -> int:
    """Run `verbs/VERB/COMMAND.py`, or print the commands with a line on each."""
    if not words or words[0] in ("-h", "--help"):
        lines = "\n".join(f"  {name:10} {line}" for name, line in commands.items())
        print(
            f"usage: jepatlas {verb} COMMAND [options]     (--help after a command explains it)\n\n{lines}\n\n"
            f"Example: jepatlas {verb} {example}\n\n"
            "All take --json PATH (- for standard output); --seed where something is drawn, --out where it is written."
        )
        return 0
    if words[0] not in commands:
        raise InputError(f"there is no command '{words[0]}'. {did_you_mean(words[0], commands)}")
    return importlib.import_module(f"jepatlas.cli.{verb}.{words[0]}").main(words[1:])
