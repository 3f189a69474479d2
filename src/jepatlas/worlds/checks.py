"""Refusals that laws and mixings share; each names the argument, what was given and what is allowed."""

from __future__ import annotations

from jepatlas.core.errors import InputError

__all__ = ["check", "check_count", "check_plane"]


def check(name: str, given: object, allowed: bool, what: str) -> None:
    """Refuse a value. Write conditions so that NaN fails them: `0 < x`, not `not x <= 0`."""
    if not allowed:
        raise InputError(f"{name} is {given!r}, but it must be {what}.")


def check_count(name: str, given: int, least: int = 1) -> None:
    check(name, given, given >= least, f"a whole number of at least {least}")


def check_plane(mixing: str, dim: int) -> int:
    """The width of a map of the plane: 2."""
    if dim != 2:
        raise InputError(
            f"The mixing '{mixing}' takes states of dim 2, but dim is {dim}. Set dim to 2, or use 'coupling'."
        )
    return 2
