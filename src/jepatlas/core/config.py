"""Conversion of frozen dataclasses to plain data and back, for recipe files.

A field whose type is a union of dataclasses is a choice; its data has a `kind:` key, which may also name a user-defined
class as `module:Class` (see `core/plugins.py`). Reading is strict: unknown keys, unknown kinds and values of the wrong
type raise an `InputError` that names the place and suggests alternatives.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.core.plugins import is_plugin_name, plugin_class

__all__ = ["check_literals", "choices", "choose_kind", "from_plain", "kind_of", "to_plain"]

T = TypeVar("T")
C = TypeVar("C", bound="type | None")


def kind_of(cls: type) -> str:
    """The `kind` attribute of a choice."""
    return cls.kind  # pyright: ignore[reportAttributeAccessIssue]


def choices(annotation: Any) -> dict[str, type]:
    """The classes that a field can take, by kind; empty if the field is not a choice."""
    members = [m for m in _members(annotation) if dataclasses.is_dataclass(m) and isinstance(m, type)]
    return {kind_of(m): m for m in members if hasattr(m, "kind")}


def to_plain(value: Any) -> Any:
    """Dataclasses as dictionaries, with `kind` first if there is one; tuples as lists.

    A class attribute `later` names fields (or `kind`) that were added after the first release, with the value that
    older files imply. That value is left out, so that an old recipe keeps its fingerprint.
    """
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    plain: dict[str, Any] = {"kind": kind_of(type(value))} if hasattr(value, "kind") else {}
    for field in dataclasses.fields(value):
        plain[field.name] = getattr(value, field.name)
    later = getattr(value, "later", {})
    return {name: to_plain(item) for name, item in plain.items() if name not in later or item != later[name]}


def from_plain(cls: type[T], data: Any, where: str = "recipe") -> T:
    """Build `cls` from plain data; missing fields have their defaults."""
    if not isinstance(data, dict):
        raise InputError(f"{where}: expected keys and values, but found {data!r}.")
    hints = typing.get_type_hints(cls)
    known = {field.name for field in dataclasses.fields(cls)}  # pyright: ignore[reportArgumentType]
    values = dict(data)
    if hasattr(cls, "kind"):
        kind = values.pop("kind", kind_of(cls))
        if kind != kind_of(cls):
            raise InputError(f"{where}: expected the kind '{kind_of(cls)}', but found '{kind}'.")
    for key in values:
        if key not in known:
            raise InputError(f"{where}: there is no key '{key}'. {did_you_mean(str(key), known)}")
    built = {key: _value(hints[key], item, f"{where}.{key}") for key, item in values.items()}
    try:
        return cls(**built)
    except TypeError as error:
        raise InputError(f"{where}: {error}") from error


def check_literals(config: Any) -> None:
    """Raise InputError if a `Literal` field has a value that is not allowed. For use in `__post_init__`."""
    hints = typing.get_type_hints(type(config))
    for field in dataclasses.fields(config):
        hint, value = hints[field.name], getattr(config, field.name)
        if get_origin(hint) is tuple:
            offered = _literals(get_args(hint)[0])
            if offered and not isinstance(value, tuple):
                raise InputError(f"{field.name} must be a tuple such as ({offered[0]!r},), but {value!r} was given.")
        else:
            offered, value = _literals(hint), (value,)
        for item in value if offered else ():
            if item not in offered:
                raise InputError(f"{field.name}: there is no '{item}'. {did_you_mean(str(item), map(str, offered))}")


def _literals(annotation: Any) -> tuple[Any, ...]:
    """The values of a `Literal`; empty for other types, including unions that contain a Literal."""
    members = _members(annotation)
    return get_args(members[0]) if len(members) == 1 and get_origin(members[0]) is Literal else ()


def _members(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is typing.Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(member for part in get_args(annotation) for member in _members(part))
    return (annotation,)


def _value(annotation: Any, data: Any, where: str) -> Any:
    members = _members(annotation)
    if data is None and types.NoneType in members:
        return None
    if kinds := choices(annotation):
        return _choice(kinds, data, where)
    for member in members:
        if dataclasses.is_dataclass(member) and isinstance(member, type):
            return from_plain(member, data, where)
        if get_origin(member) is tuple and isinstance(data, list | tuple):
            return _tuple(member, data, where)
    for member in members:
        fits, value = _scalar(member, data)
        if fits:
            return value
    allowed = " or ".join(_name(member) for member in members)
    raise InputError(f"{where}: expected {allowed}, but found {data!r}.")


def _choice(kinds: dict[str, type], data: Any, where: str) -> Any:
    data = {"kind": data} if isinstance(data, str) else data
    if not isinstance(data, dict):
        raise InputError(f"{where}: expected keys and values, but found {data!r}.")
    if len(kinds) == 1:  # the kind may be left out
        data = {"kind": next(iter(kinds))} | data
    if "kind" not in data:
        raise InputError(f"{where}: the key 'kind' is missing. Known: {', '.join(sorted(kinds))}.")
    return from_plain(choose_kind(kinds, data["kind"], where), data, where)


def choose_kind(kinds: Mapping[str, C], kind: object, where: str) -> C | type:
    """The class of that kind, or a user-defined class if it is named `module:Class`."""
    if not isinstance(kind, str) or (kind not in kinds and not is_plugin_name(kind)):
        raise InputError(f"{where}: there is no kind '{kind}'. {did_you_mean(str(kind), kinds)}")
    if kind in kinds:
        return kinds[kind]
    cls = plugin_class(kind, where)
    if not hasattr(cls, "build") and all(hasattr(other, "build") for other in kinds.values() if other is not None):
        raise InputError(f"{where}: '{kind}' needs a method 'build', as the kinds of jepatlas have.")
    return cls


def _tuple(annotation: Any, data: list[Any] | tuple[Any, ...], where: str) -> tuple[Any, ...]:
    parts = get_args(annotation)
    parts = parts[:1] * len(data) if parts[-1] is Ellipsis else parts
    if len(parts) != len(data):
        raise InputError(f"{where}: expected {_name(annotation)}, but found {data!r}.")
    return tuple(_value(part, item, f"{where}.{i}") for i, (part, item) in enumerate(zip(parts, data, strict=True)))


def _scalar(annotation: Any, data: Any) -> tuple[bool, Any]:
    if get_origin(annotation) is Literal:
        return any(type(data) is type(item) and data == item for item in get_args(annotation)), data
    if annotation is float and (type(data) in (int, float) or _is_exponent(data)):
        return True, float(data)
    return type(data) is annotation, data


def _is_exponent(data: Any) -> bool:
    """Whether this is a number such as 1e-3, which YAML 1.1 reads as a string because it has no dot."""
    return isinstance(data, str) and re.fullmatch(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+", data) is not None


def _name(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return " or ".join(repr(item) for item in get_args(annotation))
    if get_origin(annotation) is tuple:
        first, *others = get_args(annotation)
        return f"a list of {_name(first)}" if others == [Ellipsis] else f"a list of length {1 + len(others)}"
    if len(members := _members(annotation)) > 1:
        return " or ".join(map(_name, members))
    return _NAMES.get(annotation, str(annotation))


_NAMES = {float: "a number", int: "a whole number", bool: "true or false", str: "a text", types.NoneType: "null"}
