"""Refusals that costs and planners share; each names what was given and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from jepatlas.core.errors import InputError

__all__ = ["check", "check_count", "latents"]


def check(name: str, given: object, allowed: bool, what: str) -> None:
    """Refuse a setting. Write conditions so that NaN fails them: `0 < x`, not `not x <= 0`."""
    if not allowed:
        raise InputError(f"{name} is {given!r}, but it must be {what}.")


def check_count(name: str, given: int, least: int = 1) -> None:
    check(name, given, given >= least, f"a whole number of at least {least}")


def latents(info: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Start and goal, (b, d) each."""
    if missing := {"start", "goal"} - set(info):
        raise InputError(
            f"A plan leads from a start to a goal, but info has no '{min(missing)}'. It holds: {', '.join(info)}."
        )
    start, goal = info["start"], info["goal"]
    if start.ndim != 2 or start.shape != goal.shape:
        raise InputError(
            f"Starts and goals must be latents, (b, d) and equally many, "
            f"but shapes {tuple(start.shape)} and {tuple(goal.shape)} were given."
        )
    return start, goal
