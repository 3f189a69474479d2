"""Environments of gymnasium, by their id: made as their author means them, and refused by name where they cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import gymnasium

from jepatlas.core.config import choices
from jepatlas.core.errors import InputError
from jepatlas.recipes import AnyActionWorld

__all__ = ["environment_maker", "said_what_is_missing"]


def environment_maker(name: str, pixels: bool) -> Callable[[], Any]:
    """What makes the environment; one that draws nothing may not know of a render_mode, so none is given to it.

    It is tried here, so that one that cannot be made is refused before processes start; and it is gymnasium's own
    function, so that they need not load the command line to find it.
    """
    make = partial(gymnasium.make, name, render_mode="rgb_array") if pixels else partial(gymnasium.make, name)
    try:
        make().close()
    except gymnasium.error.Error as error:
        said = str(error).rstrip(". ")
        ours = f"Our own worlds are {', '.join(choices(AnyActionWorld))}."
        raise InputError(f"gymnasium cannot make '{name}': {said}. {ours}") from error
    except TypeError as error:
        if not pixels or "render_mode" not in str(error):
            raise
        raise InputError(
            f"'{name}' cannot be drawn: it takes no render_mode. Collect what it gives instead: --no-pixels."
        ) from error
    return make


@contextmanager
def said_what_is_missing(name: str) -> Iterator[None]:
    """What an environment lacks is found out when it is first drawn."""
    try:
        yield
    except gymnasium.error.DependencyNotInstalled as error:
        raise InputError(f"'{name}' cannot be drawn: {error}. Or leave out pixels: --no-pixels.") from error
