"""What a callable or a config is, as plain data: to tell whether two collections are of the same kind."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np

__all__ = ["described"]


def described(value: Any) -> Any:  # noqa: PLR0911  (one for each form)
    """Names of functions and classes with what they were given; what has no such form is known by its class alone.

    >>> described(partial(dict, x=(1, 2.5)))
    {'partial': 'builtins.dict', 'args': [], 'keywords': {'x': [1, 2.5]}}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [described(item) for item in value]
    if isinstance(value, dict):
        return {str(key): described(item) for key, item in value.items()}
    if isinstance(value, partial):
        of = _name(value.func) if hasattr(value.func, "__qualname__") else described(value.func)
        return {"partial": of, "args": described(value.args), "keywords": described(value.keywords)}
    if is_dataclass(value) and not isinstance(value, type):
        return {"class": _name(type(value))} | {f.name: described(getattr(value, f.name)) for f in fields(value)}
    if (of := getattr(value, "__self__", None)) is not None and hasattr(value, "__func__"):
        return {"method": value.__name__, "of": described(of)}
    return _name(value) if hasattr(value, "__qualname__") else {"class": _name(type(value))}


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"
