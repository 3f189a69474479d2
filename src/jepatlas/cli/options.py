"""Command lines from frozen dataclasses, parsed by tyro.

A field that offers several kinds, such as `objective`, is chosen by `--objective KIND`. The options of that kind are
then `--objective.weight` and so on. Because the kinds decide which options there are, a command line is parsed more
than once: first `--recipe FILE` and the kinds, each time ignoring all other options, then everything, strictly.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import tyro

from jepatlas.cli.help_text import command_help
from jepatlas.core.config import choices, choose_kind
from jepatlas.core.errors import InputError
from jepatlas.core.plugins import Plugin, is_plugin_name, name_plugin

__all__ = ["Pairing", "RecipeFile", "mentions", "parse", "parse_choices", "parse_global", "parse_known"]

T = TypeVar("T")


def parse(cls: type[T], command: str, args: Sequence[str], default: T | None = None) -> T:
    """Parse the options of a command. tyro prints help and usage errors, and exits with code 0 or 2."""
    options: Any = {"prog": f"jepatlas {command}", "config": (tyro.conf.AvoidSubcommands,)}
    if default is not None:
        options["default"] = default
    with _admitted_plugins(default):
        if {"-h", "--help"} & set(args):
            most_used = getattr(cls, "most_used", "").split()
            print(command_help(cls, description=cls.__doc__ or "", most_used=most_used, **options), end="")
            raise SystemExit(0)
        return tyro.cli(cls, args=args, **options)


@contextmanager
def _admitted_plugins(options: Any) -> Iterator[None]:
    """Within this block, the fields that hold a plugin have its class in their annotation, where tyro looks for it."""
    before: list[tuple[dict[str, Any], str, Any]] = []

    def admit(value: Any) -> None:
        if not dataclasses.is_dataclass(value):
            return
        for f in dataclasses.fields(value):
            inner = getattr(value, f.name)
            if isinstance(inner, Plugin):
                owner = next(cls for cls in type(value).__mro__ if f.name in inspect.get_annotations(cls))
                before.append((owner.__annotations__, f.name, owner.__annotations__[f.name]))
                hint = typing.get_type_hints(owner, include_extras=True)[f.name]
                owner.__annotations__[f.name] = typing.Union[hint, type(inner)]  # noqa: UP007
            admit(inner)

    try:
        admit(options)
        yield
    finally:
        for annotations, name, hint in reversed(before):
            annotations[name] = hint


def mentions(args: Sequence[str], *options: str) -> bool:
    """Whether one of these options is given. Commands call this first, because it is much quicker than parsing.

    >>> mentions(["rooms", "--planner=cem"], "world", "planner")
    True
    """
    given = {word.split("=")[0].replace("_", "-") for word in args}
    return any(f"--{option}" in given for option in options)


def parse_known(cls: type[T], args: Sequence[str]) -> tuple[T, list[str]]:
    """Parse the options that `cls` has, and return the other words as they are."""
    with _admitted_plugins(cls()):
        return tyro.cli(cls, args=args, return_unknown_args=True, add_help=False, config=(tyro.conf.AvoidSubcommands,))


@dataclass(frozen=True)
class Global:
    """Options of every command."""

    debug: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    trust: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False


def parse_global(args: Sequence[str]) -> tuple[Global, list[str]]:
    """The options of every command, and the other words."""
    if not mentions(args, "debug", "trust"):
        return Global(), list(args)
    return parse_known(Global, args)


@dataclass(frozen=True)
class RecipeFile:
    recipe_file: Annotated[Path | None, tyro.conf.arg(name="recipe", metavar="FILE")] = None
    """Start from a saved recipe. Other options change it."""


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """How the rows of two files of latents are paired."""

    ids: tuple[Path, ...] = ()
    """Two files with the ids of the rows of A and of B, whose order may then differ: any of these formats, or txt with
    one id per line."""
    intersect: bool = False
    """Use only the states that both files have. Otherwise states of only one file are an error."""

    @property
    def id_files(self) -> tuple[Path | None, Path | None]:
        """The two files, or None for both."""
        if len(self.ids) not in (0, 2):
            raise InputError(f"--ids takes two files, of A and of B, but {len(self.ids)} was given.")
        return (self.ids[0], self.ids[1]) if self.ids else (None, None)


def parse_choices(default: T, command: str, args: Sequence[str], subject: Callable[[str, T], T] | None = None) -> T:
    """Parse a command whose fields offer choices of kind; `default` has the values of options that are not given.

    A command that takes a recipe inherits `RecipeFile` and has a field `recipe`. A command whose first positional
    argument changes the defaults of options, such as a world, has a field `subject` and gives the function `subject`:
    (word, defaults) → defaults, which raises InputError for an unknown word. The word may stand anywhere.
    """
    if isinstance(default, RecipeFile) and mentions(args, "recipe"):
        file = parse_known(RecipeFile, args)[0].recipe_file
        if file is not None:
            default = _with_recipe(default, file)
    if subject is not None:
        default = _with_subject(default, args, subject)
    parsed: Any = _parse_all(_choose(default, args), command, args)
    if subject is not None and parsed.subject is not None:
        subject(parsed.subject, default)
    return parsed


def _with_recipe(default: Any, file: Path) -> Any:
    from jepatlas.recipes import read_recipe

    return dataclasses.replace(default, recipe=read_recipe(file, type(default.recipe)))


def _with_subject(default: T, args: Sequence[str], subject: Callable[[str, T], T]) -> T:
    """The defaults for the first word that names a subject and is not the value of an option."""
    if all(word.startswith("-") for word in args):
        return default
    chosen = _choose(default, args, strict=False)
    kinds = {choice.option: choice for choice in _choices(chosen)}
    fields = [
        (f.name, hint, _default(getattr(chosen, f.name)))
        for f, hint in _hinted_fields(chosen, include_extras=True)
        if f.name != "subject"
    ]
    _, words = parse_known(make_dataclass("Options", fields, frozen=True, kw_only=True), args)
    _, words = parse_known(_selector(list(kinds.values())), words)
    for word in words:
        if word.startswith("-"):
            continue  # an option that another subject may have
        try:
            return subject(word, default)
        except InputError:  # perhaps the value of such an option
            continue
    return default


def _parse_all(default: T, command: str, args: Sequence[str]) -> T:
    """The strict parse. Choices are options of their own, so that help lists them and misspellings are found."""
    fields: list[Any] = []
    for number, choice in enumerate(_choices(default)):
        hint = Annotated[Literal[*choice.kinds], tyro.conf.arg(name=choice.option, help=choice.help)]
        fields.append((f"choice_{number}", hint, field(default=choice.kind)))
    fields.append(("options", Annotated[type(default), tyro.conf.arg(name="")], _default(default)))
    cls = make_dataclass("Options", fields, frozen=True)
    cls.__doc__ = type(default).__doc__
    cls.most_used = getattr(type(default), "most_used", "")
    return parse(cls, command, args, cls()).options


def _default(value: Any) -> Any:
    return field(default_factory=lambda: value)


@dataclass(frozen=True)
class _Choice:
    """A field, at some depth, that offers several kinds."""

    path: tuple[str, ...]
    kinds: dict[str, type | None]
    kind: str

    @property
    def option(self) -> str:
        return self.path[-1].replace("_", "-")

    @property
    def help(self) -> str:
        return f"Kind of {self.path[-1].replace('_', ' ')}."


def _hinted_fields(value: Any, *, include_extras: bool = False) -> list[tuple[dataclasses.Field[Any], Any]]:
    hints = typing.get_type_hints(type(value), include_extras=include_extras)
    return [(f, hints[f.name]) for f in dataclasses.fields(value)]


def _choices(options: Any) -> list[_Choice]:
    """Outer choices before inner ones; of two with the same name only the outer one."""
    found: dict[str, _Choice] = {}
    level: list[tuple[tuple[str, ...], Any]] = [((), options)]
    while level:
        below: list[tuple[tuple[str, ...], Any]] = []
        for path, value in level:
            for f, hint in _hinted_fields(value):
                here = (*path, f.name)
                inner = getattr(value, f.name)
                kinds: dict[str, type | None] = dict(choices(hint))
                if kinds and type(None) in typing.get_args(hint):
                    kinds["none"] = None
                if len(kinds) > 1:
                    if inner is not None:
                        kinds.setdefault(inner.kind, type(inner))  # a user-defined class
                    choice = _Choice(here, kinds, "none" if inner is None else inner.kind)
                    found.setdefault(choice.option, choice)
                if dataclasses.is_dataclass(inner):
                    below.append((here, inner))
        level = below
    return list(found.values())


def _selector(available: Sequence[_Choice]) -> type:
    """Options that select kinds; None if not given."""
    fields = [
        (f"choice_{number}", Annotated[str | None, tyro.conf.arg(name=choice.option)], field(default=None))
        for number, choice in enumerate(available)
    ]
    return make_dataclass("Selector", fields, frozen=True)


def _choose(default: T, args: Sequence[str], *, strict: bool = True) -> T:
    """The defaults for the kinds that the arguments select. If not strict, kinds that do not fit are ignored."""
    done: set[str] = set()
    while True:
        available = _choices(default)
        if not mentions(args, *(choice.option for choice in available)):
            return default
        selected, _ = parse_known(_selector(available), args)
        remaining = [
            (choice, kind)
            for choice, kind in zip(available, dataclasses.astuple(selected), strict=True)
            if kind is not None and choice.option not in done
        ]
        if not remaining:
            return default
        choice, kind = remaining[0]  # one by one: the kind that is chosen may offer choices of its own
        done.add(choice.option)
        try:
            default = _with_kind(default, choice, kind)
        except InputError:
            if strict:
                raise


def _with_kind(default: T, choice: _Choice, kind: str) -> T:
    if kind == choice.kind:
        return default
    if is_plugin_name(kind):
        name_plugin(kind)
    cls = choose_kind(choice.kinds, kind, f"--{choice.option}")
    return _replaced(default, choice.path, None if cls is None else cls())


def _replaced(value: Any, path: tuple[str, ...], new: Any) -> Any:
    """A copy of nested dataclasses with a new value at the path."""
    if not path:
        return new
    return dataclasses.replace(value, **{path[0]: _replaced(getattr(value, path[0]), path[1:], new)})
