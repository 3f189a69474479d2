"""Imports that are carried out at first use, so that `jepatlas VERB --help` does not wait for torch.

Type checkers read an ordinary import under `if TYPE_CHECKING:`; at run time one of these two functions stands in its
place.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["lazy_exports", "lazy_import"]


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
        value = getattr(importlib.import_module(sources[name]), name)
        setattr(sys.modules[package], name, value)
        return value

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
