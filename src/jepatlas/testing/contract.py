"""Rules of a contract: functions that raise AssertionError, and whose docstring states the rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.errors import InputError

__all__ = ["ContractError", "check_rules", "expect", "expect_input_error", "round_trips"]


class ContractError(AssertionError):
    """A part breaks a rule of its contract."""


def expect(holds: object, detail: object) -> None:
    """Raise AssertionError with the detail unless `holds`."""
    if not holds:
        raise AssertionError(detail)


def expect_input_error(call: Callable[[], object]) -> None:
    """Raise AssertionError unless the call raises InputError."""
    try:
        call()
    except InputError:
        return
    raise AssertionError("it was accepted.")


def check_rules(part: Any, rules: Sequence[Callable[..., None]], *given: Any) -> None:
    """Apply all rules to (part, *given); the first one that is broken raises ContractError."""
    for rule in rules:
        statement = " ".join((rule.__doc__ or rule.__name__).split())
        try:
            rule(part, *given)
        except Exception as error:
            what = str(error).strip() or type(error).__name__
            raise ContractError(f"{part} breaks the rule '{rule.__name__}': {statement} Found: {what}") from error


def round_trips(config: Any) -> None:
    """The configuration is read back from a recipe file as it was written."""
    plain = to_plain(config)
    found = from_plain(type(config), plain)
    expect(found == config, f"{plain} is read as {found}.")
