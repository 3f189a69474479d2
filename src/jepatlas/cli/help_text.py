"""The help of a command as plain text: the options that are used most, and the others in groups."""

from __future__ import annotations

import argparse
import re
import shutil
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import tyro

__all__ = ["command_help", "paragraphs"]

FEW = 12  # a command with at most so many options has one group of them
INVOCATION = 26  # letters of an option and its value that stand beside the explanation
CHOICES = 24  # letters of the values to choose from that stand beside the option
UNSAID = ("None", "", "False")  # defaults that the help does not state
DEFAULT = re.compile(r"\s*\(default: (.*)\)$", re.DOTALL)
REPEATED = re.compile(r"\{?\[(.+) \[\1 \.\.\.\]\]\}?")


def command_help(cls: type, prog: str, description: str, most_used: Sequence[str], **options: Any) -> str:
    """The help of a command whose options are the fields of `cls`; `most_used` names those that come first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there is no other way to tyro's list of options
        parser = tyro.extras.get_parser(cls, prog=prog, **options)
    width = shutil.get_terminal_size().columns
    groups = list(_grouped(parser, most_used))
    positional = [action for _, _, actions in groups for action in actions if not action.option_strings]
    usage = " ".join([f"usage: {prog} [options]", *_positional_names(positional)])
    parts = [usage, _description(description, width)]
    for title, about, actions in groups:
        names = _positional_names(positional) if title == "arguments" else [_invocation(one) for one in actions]
        lines = [line for name, one in zip(names, actions, strict=True) for line in _entry(name, one, width)]
        intro = textwrap.wrap(about, width - 2, initial_indent="  ", subsequent_indent="  ")
        parts.append("\n".join([f"{title}:", *intro, *lines]))
    return "\n\n".join(parts) + "\n"


def paragraphs(text: str) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text.strip())]


def _description(text: str, width: int) -> str:
    """Paragraphs that fill the terminal; examples stay on one line, so that they can be pasted."""
    return "\n\n".join(one if one.startswith("Example:") else textwrap.fill(one, width) for one in paragraphs(text))


Group = tuple[str, str, list[argparse.Action]]


def _grouped(parser: Any, most_used: Sequence[str]) -> Iterator[Group]:
    """Titles, descriptions and options of the groups. Options without a prefix are grouped by the field they are in."""
    plain: list[argparse.Action] = []
    nested: list[Group] = []
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
        if group.title == "positional arguments" and actions:
            yield "arguments", "", actions
        elif group.title == "options":
            plain = actions
        elif actions:
            nested.append((str(group.title), " ".join((group.description or "").split()), actions))
    help_option, *others = plain
    by_name = {_name(action): action for action in others}
    leading = list(most_used) if most_used and len(others) > FEW else list(by_name)
    first = [by_name.pop(name) for name in leading if name in by_name]  # some belong to one kind of recipe only
    yield "options", "", [*first, help_option]
    remaining: dict[str, list[argparse.Action]] = {}
    for action in by_name.values():
        remaining.setdefault(_field(action), []).append(action)
    for title, actions in remaining.items():
        yield title, "", actions
    yield from nested


def _name(action: argparse.Action) -> str:
    return action.option_strings[0].removeprefix("--")


def _field(action: argparse.Action) -> str:
    """The title for an option that has the prefix of no group, by the field that holds it."""
    *_, owner = ["options", *action.dest.split(".")[:-1]]
    return "more options" if owner in ("options", "recipe") else f"{owner.replace('-', ' ')} options"


def _positional_names(actions: Sequence[argparse.Action]) -> list[str]:
    shown = [_value(str(action.metavar)).strip("[]") for action in actions]
    names = []
    for action, value in zip(actions, shown, strict=True):
        name = action.dest.split(".")[-1].upper() if shown.count(value) > 1 else value
        names.append(name if action.required else f"[{name}]")
    return names


def _value(metavar: str) -> str:
    """How the value of an option is shown: PATH for {None}|PATH, and FLOAT ... for any number of them."""
    value = REPEATED.sub(r"\1 ...", metavar.replace("{None}|", ""))
    return value.replace("STR", "TEXT")


def _invocation(action: argparse.Action) -> str:
    names = list(action.option_strings)
    if action.nargs == 0 and action.default is False:
        names = names[:1]  # the negative form of a flag that is off has no use
    value = "" if action.metavar is None else _value(str(action.metavar))
    if value.startswith("{") and len(value) > CHOICES:
        value = "KIND"
    return " ".join(filter(None, [", ".join(names), value]))


def _entry(name: str, action: argparse.Action, width: int) -> list[str]:
    """An option or argument and its explanation, in two columns."""
    text = " ".join((action.help or "").replace("%%", "%").split())
    found = DEFAULT.search(text)
    default = found[1] if found else ""
    text = DEFAULT.sub("", text).removesuffix("(required)").strip()
    value = "" if action.metavar is None else _value(str(action.metavar))
    if value.startswith("{") and name.endswith("KIND"):
        text = f"{text.removesuffix('.')}: {', '.join(value.strip('{}').split(','))}."
    if default not in UNSAID:
        text = f"{text} (default: {default})"
    column = INVOCATION + 4
    lines = textwrap.wrap(text, max(width - column, 30), break_on_hyphens=False)
    if len(name) > INVOCATION:
        return [f"  {name}", *(" " * column + line for line in lines)]
    start, *more = lines or [""]
    return [f"  {name:{column - 2}}{start}".rstrip(), *(" " * column + line for line in more)]
