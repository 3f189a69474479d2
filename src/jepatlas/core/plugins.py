"""User-defined classes in recipes, named `module:Class`, and other user code.

A recipe can name a subclass of `Plugin` instead of a kind of jepatlas. A file is data, so what it names is imported
only if the user asked for that: by importing the module in Python, by an option such as `--objective module:Class`, or
by `--trust`. The permission is an environment variable, so that processes started by this one have it too.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from jepatlas.core.errors import InputError, did_you_mean

__all__ = [
    "DEFINED",
    "PLUGINS",
    "Plugin",
    "check_trusted",
    "import_object",
    "is_plugin_name",
    "name_plugin",
    "plugin_class",
    "plugin_files",
    "plugin_name",
    "record_locations",
    "short_name",
    "trusting",
]

PLUGINS = "plugins.json"  # beside a recipe: the files of its plugins
TRUST = "JEPATLAS_TRUST"
ALL = "*"


class Plugin:
    """Base class of an objective, encoder, world, planner or energy head that a user defines.

    Subclasses are frozen dataclasses; their fields are options, each with a default.

        @dataclass(frozen=True)
        class MyObjective(ja.Plugin):
            weight: float = 0.1

            def build(self, parts): ...
    """

    kind: ClassVar[str]
    """`module:Class`, the name in recipes and on the command line."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.kind = plugin_name(cls)
        DEFINED[cls.kind] = cls


DEFINED: dict[str, type] = {}
"""The plugins of this process, by name."""
_locations: dict[str, Path] = {}  # files in which plugins were defined when a run was trained


def plugin_name(cls: type) -> str:
    """`module:Class`; the module of a script is its file name, under which other processes can import it."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    module = Path(script).stem if cls.__module__ == "__main__" and script else cls.__module__
    return f"{module}:{cls.__qualname__}"


def short_name(config: Any) -> str:
    """The kind for names of folders: of `module:Class` only the class."""
    return config.kind.rpartition(":")[2]


def is_plugin_name(kind: object) -> bool:
    return isinstance(kind, str) and ":" in kind


def name_plugin(kind: str) -> type:
    """The plugin that the user names, which is imported if need be."""
    with_others = [*os.environ.get(TRUST, "").split(","), kind]
    os.environ[TRUST] = ",".join(filter(None, with_others))
    return plugin_class(kind)


@contextmanager
def trusting(everything: bool) -> Iterator[None]:
    """Within this block, import what recipes name if `everything`. Permissions given inside it end with it."""
    before = os.environ.get(TRUST)
    if everything:
        os.environ[TRUST] = ALL
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(TRUST, None)
        else:
            os.environ[TRUST] = before


def plugin_class(kind: str, where: str = "") -> type:
    """The plugin of this name; raises InputError if it is neither defined here nor allowed to be imported."""
    place = f"{where}: " if where else ""
    if kind not in DEFINED and not _trusted(kind):
        module = kind.partition(":")[0]
        raise InputError(
            f"{place}'{kind}' is a class outside of jepatlas. Its code is imported only if you allow it: add --trust "
            f"on the command line, or import {module} in Python first."
        )
    if kind not in DEFINED:
        _import(kind, place)
    return _checked(DEFINED[kind], place)


def import_object(name: str) -> Any:
    """What `module:NAME` or `file.py:NAME` names, which the user asks for by naming it."""
    place, _, attribute = name.rpartition(":")
    file = Path(place)
    if file.suffix == ".py":
        if not file.is_file():
            raise InputError(f"'{name}': there is no file {file}.")
        module = _import_file(file.stem, file.resolve().parent, file, f"'{name}'")
    else:
        module = _import_module(place, None, f"'{name}'")
    if not hasattr(module, attribute):
        known = [one for one in vars(module) if not one.startswith("_")]
        raise InputError(f"'{name}': {_file(module)} has no '{attribute}'. {did_you_mean(attribute, known)}")
    return getattr(module, attribute)


def check_trusted(file: Path, kind: str) -> None:
    """Raise InputError unless the user allows files to run code, as `--trust` does."""
    if not _trusted(str(file)):
        raise InputError(
            f"{file} is a {kind}, and loading one can run code that it holds. If you trust where it comes from, add "
            "--trust on the command line, or trust=True in Python."
        )


def _trusted(kind: str) -> bool:
    return bool({ALL, kind} & set(os.environ.get(TRUST, "").split(",")))


def _import(kind: str, place: str) -> None:
    module_name, _, name = kind.partition(":")
    module = _import_module(module_name, _locations.get(kind), f"{place}'{kind}'")
    plugins = [key.partition(":")[2] for key, cls in DEFINED.items() if cls.__module__ == module_name]
    if kind in DEFINED:
        return
    if hasattr(module, name):
        raise InputError(f"{place}'{kind}' must be a frozen dataclass that inherits from jepatlas.Plugin.")
    raise InputError(f"{place}{_file(module)} has no plugin '{name}'. {did_you_mean(name, plugins)}")


def _import_module(name: str, recorded: Path | None, what: str) -> ModuleType:
    """From the working directory, or where it was when the run was trained, or an installed package."""
    relative = Path(*name.split("."))
    for folder in (Path.cwd(), _root(name, recorded)):
        if folder is None:
            continue
        files = (folder / relative.with_suffix(".py"), folder / relative / "__init__.py")
        found = next((file for file in files if file.is_file()), None)
        if found is not None:
            return _import_file(name, folder, found, what)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in (name, name.partition(".")[0]):
            raise InputError(f"{what} cannot be imported: {error}.") from error
        was = f" nor at {recorded}, where it was when the run was trained" if recorded else ""
        raise InputError(
            f"{what} was not found: there is no {relative}.py in {Path.cwd()}{was}, and no installed module '{name}'. "
            "Call the command in the folder of that file."
        ) from error


def _root(name: str, file: Path | None) -> Path | None:
    """The folder from which the file is imported by this name."""
    if file is None:
        return None
    depth = name.count(".") + (file.name == "__init__.py")
    return file.parents[depth]


def _import_file(name: str, folder: Path, file: Path, what: str) -> ModuleType:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # for the modules that it imports itself
    loaded = sys.modules.get(name)
    if loaded is None and "." in name:
        return importlib.import_module(name)
    if loaded is not None:
        if _file(loaded) != file.resolve():
            raise InputError(f"{what} is in {file}, but another module '{name}' is in use. Rename the file.")
        return loaded
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _file(module: ModuleType | None) -> Path | None:
    file = getattr(module, "__file__", None)
    return None if file is None else Path(file).resolve()


def _checked(cls: type, place: str) -> type:
    name = plugin_name(cls)
    frozen = getattr(getattr(cls, "__dataclass_params__", None), "frozen", False)
    if not frozen or not dataclasses.is_dataclass(cls):
        raise InputError(f"{place}'{name}' must be a frozen dataclass: put @dataclass(frozen=True) above it.")
    needed = [
        field.name
        for field in dataclasses.fields(cls)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    if needed:
        raise InputError(f"{place}each field of '{name}' needs a default, but {', '.join(needed)} has none.")
    return cls


def plugin_files(config: Any) -> dict[str, str]:
    """The file of each plugin in a recipe."""
    files: dict[str, str] = {}
    if isinstance(config, Plugin):
        file = _file(sys.modules.get(type(config).__module__))
        if file is not None:
            files[config.kind] = str(file)
    if dataclasses.is_dataclass(config):
        for field in dataclasses.fields(config):
            files |= plugin_files(getattr(config, field.name))
    return files


def record_locations(files: object) -> None:
    """Where to look for plugins that are not in the working directory. Nothing is imported yet."""
    if isinstance(files, Mapping):
        _locations.update({str(kind): Path(str(file)) for kind, file in files.items()})
