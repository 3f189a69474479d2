"""Recipes from the command line: a file, choices of kind (`--mixing coupling`), and the options of the kinds chosen."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from jepatlas.core.config import choices, from_plain, to_plain
from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.recipes import read_recipe

__all__ = ["choices_help", "choose_recipe"]

R = TypeVar("R")
ALIKE = 0.85  # of two names of which one may be a slip of the other


def choose_recipe(words: list[str], recipe: R) -> tuple[list[str], R]:
    """Take `--recipe FILE` and every choice of kind (`--mixing coupling`) out of the words.

    What is left are options of the kinds that were chosen, for `parse` with the returned recipe as default. `recipe` is
    what to begin with where no file is given.
    """
    files, words = _take("--recipe", words)
    recipe = read_recipe(Path(files[-1]), type(recipe)) if files else recipe
    done: set[str] = set()
    while left := [choice for choice in _choices(recipe) if choice.flag not in done]:
        choice = left[0]  # one by one: what was chosen may offer choices of its own
        done.add(choice.flag)
        kinds, words = _take(choice.flag, words)
        if kinds:
            recipe = choice.set(recipe, kinds[-1])
    _refuse_misspelt(words, done)
    return words, recipe


def _refuse_misspelt(words: list[str], flags: set[str]) -> None:
    """Options of the kinds are the parser's to check, which does not know of the choices themselves."""
    for word in words:
        name = word.partition("=")[0]
        if name.startswith("--") and "." not in name and (meant := get_close_matches(name, flags, 1, ALIKE)):
            raise InputError(f"There is no option {name}. Did you mean {meant[0]}?")


@dataclass(frozen=True)
class _Choice:
    """A field of the recipe that offers several kinds."""

    path: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def flag(self) -> str:
        return f"--{self.path[-1].replace('_', '-')}"

    def set(self, recipe: R, kind: str) -> R:
        if kind not in self.kinds:
            raise InputError(f"{self.flag}: there is no kind '{kind}'. {did_you_mean(kind, self.kinds)}")
        plain = to_plain(recipe)
        owner = plain
        for name in self.path[:-1]:
            owner = owner[name]
        now = owner[self.path[-1]]
        if kind == "none":
            owner[self.path[-1]] = None
        elif now is None or now["kind"] != kind:
            owner[self.path[-1]] = {"kind": kind}
        return from_plain(type(recipe), plain)


def _choices(recipe: Any, path: tuple[str, ...] = ()) -> list[_Choice]:
    """Those of a recipe as it is, outer ones before inner ones."""
    found, inner = [], []
    hints = typing.get_type_hints(type(recipe))
    for field in dataclasses.fields(recipe):
        here, value = (*path, field.name), getattr(recipe, field.name)
        kinds = choices(hints[field.name])
        optional = type(None) in typing.get_args(hints[field.name])
        if len(kinds) > 1 or (kinds and optional):
            found.append(_Choice(here, (*kinds, "none") if optional else tuple(kinds)))
        if dataclasses.is_dataclass(value):
            inner += _choices(value, here)
    return found + inner


def choices_help(recipe: Any) -> str:
    """One line a choice, for the help of verbs that take a recipe."""
    return "\n".join(f"  {choice.flag} {{{','.join(choice.kinds)}}}" for choice in _choices(recipe))


def _take(flag: str, words: list[str]) -> tuple[list[str], list[str]]:
    """Pull `flag VALUE` and `flag=VALUE` out of the words."""
    taken, left, queue = [], [], list(words)
    while queue:
        word = queue.pop(0)
        if word == flag:
            if not queue:
                raise InputError(f"{flag} needs a value.")
            taken.append(queue.pop(0))
        elif word.startswith(f"{flag}="):
            taken.append(word.removeprefix(f"{flag}="))
        else:
            left.append(word)
    return taken, left
