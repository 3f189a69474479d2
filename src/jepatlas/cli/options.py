"""Command lines from frozen dataclasses, parsed by tyro.

A field that offers several kinds, such as `objective`, is chosen by `--objective KIND`. The options of that kind are
then `--objective.weight` and so on. Because the kinds decide which options there are, a command line is parsed more than
once: first `--recipe FILE` and the kinds, each time ignoring all other options, then everything, strictly.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import tyro

from jepatlas.core.config import choices, from_plain, to_plain
from jepatlas.core.errors import InputError, did_you_mean

__all__ = ["RecipeFile", "Subject", "parse", "parse_known", "parse_recipe"]

T = TypeVar("T")
R = TypeVar("R")

Subject = Callable[[str, Any], Any]
"""(first positional, recipe) → the recipe for it, or None if the word names nothing that the command knows."""


def parse(cls: type[T], command: str, args: Sequence[str], default: T | None = None) -> T:
    """Parse the options of a command. tyro prints help and usage errors, and exits with code 0 or 2."""
    options: Any = {} if default is None else {"default": default}
    return tyro.cli(cls, args=args, prog=f"jepatlas {command}", config=(tyro.conf.AvoidSubcommands,), **options)


def parse_known(cls: type[T], args: Sequence[str]) -> tuple[T, list[str]]:
    """Parse the options that `cls` has, and return the other words as they are."""
    return tyro.cli(cls, args=args, return_unknown_args=True, add_help=False, config=(tyro.conf.AvoidSubcommands,))


@dataclass(frozen=True)
class RecipeFile:
    recipe_file: Annotated[Path | None, tyro.conf.arg(name="recipe", metavar="FILE")] = None
    """Start from a saved recipe. Other options change it."""


def parse_recipe(options: T, name: str, command: str, args: Sequence[str], subject: Subject | None = None) -> T:
    """Parse a command whose field `name` offers choices of kind; `options` has the default values.

    `subject` changes the recipe according to the first positional argument, a field named `subject`. Options come after
    it: they change the recipe of that subject.
    """
    recipe = getattr(options, name)
    if isinstance(options, RecipeFile):
        file = parse_known(RecipeFile, args)[0].recipe_file
        if file is not None:
            from jepatlas.recipes import read_recipe

            recipe = read_recipe(file, type(recipe))
    recipe = _choose(recipe, args)
    if subject is not None:
        recipe = _with_subject(options, name, recipe, args, subject)
    return _parse_all(options, name, recipe, command, args)


def _with_subject(options: Any, name: str, recipe: R, args: Sequence[str], subject: Subject) -> R:
    """The recipe for the first word that names a subject and is not the value of an option."""
    plain = make_dataclass("Plain", [(name, Annotated[type(recipe), tyro.conf.arg(name="")], recipe)], frozen=True)
    fields = [f for f in dataclasses.fields(options) if f.name not in (name, "subject")]
    hints = typing.get_type_hints(type(options), include_extras=True)
    others = [(f.name, hints[f.name], f) for f in fields]
    known = make_dataclass("Known", others, bases=(plain,), frozen=True, kw_only=True)
    kinds = _Choices.of(recipe).selector()
    for cls in (known, kinds):
        _, args = parse_known(cls, args)
    for word in args:
        found = subject(word, recipe)
        if found is not None:
            return found
    return recipe


def _parse_all(options: T, name: str, recipe: Any, command: str, args: Sequence[str]) -> T:
    """The strict parse. Choices are options of their own, so that help lists them and misspellings are found."""
    options = dataclasses.replace(options, **{name: recipe})  # pyright: ignore[reportArgumentType]
    chosen = _Choices.of(recipe)
    fields = [
        (
            f"choice_{number}",
            Annotated[Literal[*choice.kinds], tyro.conf.arg(name=choice.option, help=choice.help)],
            field(default=choice.kind),
        )
        for number, choice in enumerate(chosen.choices)
    ]
    inner = Annotated[type(options), tyro.conf.arg(name="")]
    cls = make_dataclass("Options", [*fields, ("options", inner, field(default_factory=lambda: options))], frozen=True)
    cls.__doc__ = type(options).__doc__
    return parse(cls, command, args, cls()).options


@dataclass(frozen=True)
class _Choice:
    """A field of a recipe that offers several kinds."""

    path: tuple[str, ...]
    kinds: tuple[str, ...]
    kind: str

    @property
    def option(self) -> str:
        return self.path[-1].replace("_", "-")

    @property
    def help(self) -> str:
        return f"Kind of {self.path[-1].replace('_', ' ')}."


@dataclass(frozen=True)
class _Choices:
    choices: tuple[_Choice, ...]

    @classmethod
    def of(cls, recipe: Any) -> _Choices:
        """The choices of a recipe, outer ones before inner ones; of two with the same name the outer one."""
        found: dict[str, _Choice] = {}
        for choice in _choices(recipe):
            found.setdefault(choice.option, choice)
        return cls(tuple(found.values()))

    def selector(self) -> type:
        """Options that select kinds; None if not given."""
        fields = [
            (f"choice_{number}", Annotated[str | None, tyro.conf.arg(name=choice.option)], field(default=None))
            for number, choice in enumerate(self.choices)
        ]
        return make_dataclass("Selector", fields, frozen=True)


def _choices(recipe: Any, path: tuple[str, ...] = ()) -> list[_Choice]:
    own: list[_Choice] = []
    inner: list[_Choice] = []
    hints = typing.get_type_hints(type(recipe))
    for f in dataclasses.fields(recipe):
        value = getattr(recipe, f.name)
        kinds = tuple(choices(hints[f.name]))
        if kinds and type(None) in typing.get_args(hints[f.name]):
            kinds = (*kinds, "none")
        if len(kinds) > 1:
            own.append(_Choice((*path, f.name), kinds, "none" if value is None else value.kind))
        if dataclasses.is_dataclass(value):
            inner += _choices(value, (*path, f.name))
    return own + inner


def _choose(recipe: R, args: Sequence[str]) -> R:
    """The recipe with the kinds that the arguments select."""
    done: set[str] = set()
    while True:
        available = _Choices.of(recipe)
        selected, _ = parse_known(available.selector(), args)
        remaining = [
            (choice, kind)
            for choice, kind in zip(available.choices, dataclasses.astuple(selected), strict=True)
            if kind is not None and choice.option not in done
        ]
        if not remaining:
            return recipe
        choice, kind = remaining[0]  # one by one: the kind that is chosen may offer choices of its own
        done.add(choice.option)
        recipe = _with_kind(recipe, choice, kind)


def _with_kind(recipe: R, choice: _Choice, kind: str) -> R:
    if kind not in choice.kinds:
        raise InputError(f"--{choice.option}: there is no kind '{kind}'. {did_you_mean(kind, choice.kinds)}")
    if kind == choice.kind:
        return recipe
    plain: dict[str, Any] = to_plain(recipe)
    owner = plain
    for name in choice.path[:-1]:
        owner = owner[name]
    owner[choice.path[-1]] = None if kind == "none" else {"kind": kind}
    return from_plain(type(recipe), plain)
