"""Errors about the user's input, and checks of arguments.

An `InputError` says what is wrong, where, and what to do. The command line prints it without a traceback and exits with
code 2; in Python it is a `ValueError`.
"""

from __future__ import annotations

import difflib
import importlib
import math
import numbers
from collections.abc import Iterable
from types import ModuleType

__all__ = [
    "InputError",
    "MissingExtra",
    "check_argument",
    "check_count",
    "check_not_negative",
    "check_positive",
    "check_seed",
    "check_share",
    "did_you_mean",
    "require",
]


class InputError(ValueError):
    """The user's input cannot be used; the message names it and says what to do."""


class MissingExtra(InputError, ImportError):
    """An optional dependency is needed but not installed."""


def check_argument(name: str, value: object, valid: bool, allowed: str) -> None:
    """Raise InputError unless `valid`. Write the condition so that NaN fails it: `0 < x`, not `not x <= 0`."""
    if not valid:
        raise InputError(f"{name} is {value!r}, but it must be {allowed}.")


def check_count(name: str, value: int, minimum: int = 1) -> None:
    whole = isinstance(value, numbers.Integral) and value >= minimum
    check_argument(name, value, whole, f"a whole number of at least {minimum}")


def check_positive(name: str, value: float) -> None:
    check_argument(name, value, isinstance(value, numbers.Real) and 0 < value < math.inf, "positive and finite")


def check_not_negative(name: str, value: float) -> None:
    check_argument(name, value, isinstance(value, numbers.Real) and 0 <= value < math.inf, "at least 0 and finite")


def check_seed(seed: int) -> None:
    check_argument("seed", seed, isinstance(seed, numbers.Integral), "a whole number")


def check_share(name: str, value: float) -> None:
    check_argument(name, value, isinstance(value, numbers.Real) and 0 <= value <= 1, "between 0 and 1")


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional module; raises MissingExtra with the `pip install` command that provides it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".", maxsplit=1)[0]
        missing = isinstance(error, ModuleNotFoundError) and error.name == package
        reason = "is not installed" if missing else f"does not import here ({error})"
        raise MissingExtra(
            f"{purpose} needs the package '{package}', which {reason}. Run: pip install 'jepatlas[{extra}]'"
        ) from error


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence with the most similar known word, if any, and all known words."""
    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    hint = f"Did you mean '{close[0]}'? " if close else ""
    return f"{hint}Known: {', '.join(known)}."
