"""What the first word of `train world-model` names, and the encoder that fits what is seen there."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from jepatlas.core.config import choices
from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.nn import MLPConfig
from jepatlas.recipes import AnyActionWorld, EpisodeSource, WorldModelRecipe
from jepatlas.worlds import LinearQuadratic

__all__ = ["fitting", "named"]


def named(words: list[str]) -> list[str]:
    """A first word that is no option names the world, or the file that episodes come from."""
    if not words or words[0].startswith("-"):
        return words
    first, worlds = words[0], choices(AnyActionWorld)
    if first in worlds:
        return ["--world", first, *words[1:]]
    if Path(first).is_file():
        return ["--source", EpisodeSource.kind, "--source.path", first, *words[1:]]
    raise InputError(f"'{first}' is neither a file nor a world. {did_you_mean(first, worlds)}")


def fitting(words: list[str]) -> WorldModelRecipe:
    """The recipe to begin with: with an mlp where numbers are seen, and nothing is said of the encoder."""
    recipe = WorldModelRecipe()
    if any(word.startswith(("--encoder", "--recipe", "--resume")) for word in words):
        return recipe
    given = {name: _given(words, name) for name in ("--world", "--source.path", "--source.observation")}
    if given["--source.path"] is not None:
        source = EpisodeSource(given["--source.path"], given["--source.observation"])
        file = source.open()
        numbers = len(file.columns[source.observation_column(file)].shape) != 3
    else:
        numbers = given["--world"] == LinearQuadratic.kind
    return replace(recipe, encoder=MLPConfig()) if numbers else recipe


def _given(words: list[str], flag: str) -> str | None:
    """The value of a flag, before words are parsed."""
    spaced = [after for word, after in pairwise(words) if word == flag]
    joined = [word.removeprefix(f"{flag}=") for word in words if word.startswith(f"{flag}=")]
    return next(iter([*spaced, *joined]), None)
