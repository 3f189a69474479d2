"""Imports that are carried out at first use, so that `jepatlas VERB --help` does not wait for torch.

Type checkers read an ordinary import under `if TYPE_CHECKING:`; at run time one of these two functions replaces it.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["after_import", "lazy_exports", "lazy_import"]


class _LazyModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def lazy_import(name: str) -> Any:
    """A stand-in for a module that imports it when an attribute is first used.

    >>> statistics = lazy_import("statistics")
    >>> statistics.mean([1, 2, 3])
    2
    """
    return _LazyModule(name)


def lazy_exports(package: str, file: str) -> Callable[[str], Any]:
    """`__getattr__` for a package's `__init__.py` that imports each public name when it is first used.

    `dir(package)` lists its `__all__` before that, so that interactive shells can complete the names.

    The names and where they come from are read from the imports under `if TYPE_CHECKING:` in that file:

        if TYPE_CHECKING:
            from jepatlas.nn.mlp import MLPConfig
        else:
            __getattr__ = lazy_exports(__name__, __file__)
    """
    sources: dict[str, str] = {}

    def __getattr__(name: str) -> Any:
        if not sources:
            sources.update(_type_checking_imports(Path(file)))
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        source = sources[name]
        is_module = source == package
        value = importlib.import_module(f"{package}.{name}" if is_module else source)
        if not is_module:
            value = getattr(value, name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        module = vars(sys.modules[package])
        return sorted({*module, *module["__all__"]})

    vars(sys.modules[package])["__dir__"] = __dir__
    return __getattr__


def _type_checking_imports(file: Path) -> dict[str, str]:
    """Each name that is imported under `if TYPE_CHECKING:`, with its module."""
    sources: dict[str, str] = {}
    for statement in ast.parse(file.read_text(encoding="utf-8")).body:
        if not isinstance(statement, ast.If) or ast.unparse(statement.test) != "TYPE_CHECKING":
            continue
        for node in statement.body:
            if isinstance(node, ast.ImportFrom):
                sources.update({alias.name: str(node.module) for alias in node.names})
    return sources


def after_import(name: str, action: str) -> None:
    """Call the function `module:function` after the module `name` is imported, or now if it is already."""
    if name in sys.modules:
        _call(action)
    else:
        sys.meta_path.insert(0, _AfterImport(name, action))


def _call(action: str) -> None:
    module, function = action.split(":")
    getattr(importlib.import_module(module), function)()


class _AfterImport(MetaPathFinder):
    """Finds one module in the same way as the other finders, and calls a function once the module has been executed."""

    def __init__(self, name: str, action: str) -> None:
        self.name = name
        self.action = action

    def find_spec(self, fullname: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _call(self.action)

        spec.loader.exec_module = exec_module  # pyright: ignore[reportAttributeAccessIssue]
        return spec
