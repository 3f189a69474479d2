"""`jepatlas completion`: shell scripts that complete commands, options and files."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass
from typing import Literal

import tyro

from jepatlas.cli.options import parse
from jepatlas.cli.output import emit

INVOCATION = re.compile(r"^  (?:-h, )?(--.*?)(?:  |$)", re.MULTILINE)  # an option at the beginning of its explanation
OPTION = re.compile(r"--[a-z][\w.-]*")

BASH = """\
_jepatlas() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" command="" words=""
    if [ "$COMP_CWORD" -gt 2 ]; then command="${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}"; fi
    case "$command" in
{two}
    esac
    if [ -z "$words" ] && [ "$COMP_CWORD" -gt 1 ]; then
        case "${{COMP_WORDS[1]}}" in
{one}
        esac
    elif [ -z "$words" ]; then
        words="{verbs}"
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [ "$COMP_CWORD" -gt 1 ]; then COMPREPLY+=($(compgen -f -- "$current")); fi
}}
complete -o filenames -F _jepatlas jepatlas
"""
ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


@dataclass(frozen=True)
class Completion:
    """Print a script that completes commands, options and files in a shell.

    Example: jepatlas completion bash > ~/.local/share/bash-completion/completions/jepatlas

    For zsh, write 'source <(jepatlas completion zsh)' to ~/.zshrc; for fish, save the script as
    ~/.config/fish/completions/jepatlas.fish.
    """

    shell: tyro.conf.Positional[Literal["bash", "zsh", "fish"]]
    """The shell."""
    json: str | None = None
    """Write the options of each command as JSON to this file (- for standard output)."""


def main(args: list[str]) -> int:
    options = parse(Completion, "completion", args)
    known = _options_by_command()
    emit(options.json, known)
    if options.json == "-":
        return 0
    scripts = {"bash": _bash, "zsh": lambda found: ZSH + _bash(found), "fish": _fish}
    print(scripts[options.shell](known), end="")
    return 0


def _options_by_command() -> dict[str, list[str]]:
    """The options that the help of each command lists, for its default kinds."""
    from jepatlas.cli import COMMANDS, run_command

    found: dict[str, list[str]] = {}
    for name in COMMANDS:
        text = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
        with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
            run_command([*name.split(), "--help"])
        text.seek(0)
        listed = [option for one in INVOCATION.findall(text.read()) for option in OPTION.findall(one)]
        found[name] = sorted({"--help", "--debug", "--trust", *listed})
    return found


def _verbs(known: dict[str, list[str]]) -> dict[str, list[str]]:
    """The second words of each verb; empty for verbs that are commands alone."""
    words: dict[str, list[str]] = {}
    for name in known:
        verb, _, second = name.partition(" ")
        words.setdefault(verb, []).extend([second] if second else [])
    return words


def _bash(known: dict[str, list[str]]) -> str:
    verbs = _verbs(known)
    two = [f'        "{name}") words="{" ".join(options)}" ;;' for name, options in known.items() if " " in name]
    one = []
    for verb, seconds in verbs.items():
        one.append(f'            {verb}) words="{" ".join([*seconds, *known.get(verb, [])])}" ;;')
    return BASH.format(two="\n".join(two), one="\n".join(one), verbs=" ".join(verbs))


def _fish(known: dict[str, list[str]]) -> str:
    verbs = _verbs(known)
    lines = [f"complete -c jepatlas -n __fish_use_subcommand -f -a '{' '.join(verbs)}'"]
    for verb, seconds in verbs.items():
        if seconds:
            lines.append(f"complete -c jepatlas -n '__fish_seen_subcommand_from {verb}' -a '{' '.join(seconds)}'")
    for name, options in known.items():
        condition = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in name.split())
        lines += [f"complete -c jepatlas -n '{condition}' -l {option.removeprefix('--')}" for option in options]
    return "\n".join(lines) + "\n"
