"""Recipes as files: plain YAML, read strictly, with a fingerprint that checkpoints carry."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.errors import InputError
from jepatlas.recipes.agent import Recipe
from jepatlas.recipes.build import AnyRecipe
from jepatlas.recipes.energy import EnergyRecipe
from jepatlas.recipes.teaching import MutualRecipe, TaughtRecipe
from jepatlas.recipes.vision import VisionRecipe
from jepatlas.recipes.world_model import WorldModelRecipe
from jepatlas.training import fingerprint

__all__ = ["any_recipe", "load_recipe", "read_recipe", "recipe_from_plain", "recipe_id", "recipe_text", "verb_of"]

R = TypeVar("R")

# Recipes that say their kind, and the verb that begins a run of one; an agent's says none.
KINDS: dict[str, tuple[type[AnyRecipe], str]] = {
    EnergyRecipe.kind: (EnergyRecipe, "energy fit"),
    WorldModelRecipe.kind: (WorldModelRecipe, "train world-model"),
    VisionRecipe.kind: (VisionRecipe, "train vision"),
    TaughtRecipe.kind: (TaughtRecipe, "migrate model"),
    MutualRecipe.kind: (MutualRecipe, "migrate mutual"),
}

SILENT = ("device", "threads", "parallel", "log_every", "checkpoint_every", "keep", "track")
PLACES = ("path", "folder")
MEND = "Put back a copy of it, or begin a new run."


def read_recipe(path: Path, cls: type[R] = Recipe) -> R:
    """A recipe file, strictly: what it does not know it refuses."""
    data = _read(path)
    found, wanted = data.get("kind"), getattr(cls, "kind", None)
    if not data and wanted is not None:
        raise InputError(f"{path} is empty, but a recipe of {_what(wanted)} is needed here: write at least its kind.")
    if found != wanted:
        raise InputError(f"{path} is a recipe of {_what(found)}, but one of {_what(wanted)} is needed here.")
    return from_plain(cls, data, where=str(path))


def load_recipe(run: Path, cls: type[R] = Recipe) -> R:
    """The recipe of a run folder."""
    return read_recipe(_file(run, KINDS.get(getattr(cls, "kind", ""), (cls, "train"))[1]), cls)


def any_recipe(run: Path) -> AnyRecipe:
    """The recipe of a run folder, of whatever kind."""
    return load_recipe(run, _class(_read(_file(run))))


def verb_of(run: Path) -> str:
    """The verb that begins runs of such a recipe, and goes on with them."""
    data = _read(_file(run))
    kind = data.get("kind")
    if kind is None:
        return "train"
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(
            f"{run} is a run of kind '{kind}', which no verb goes on with alone. Give the command again "
            "that began it, such as 'jepatlas reproduce NAME': it goes on where it was."
        )
    return KINDS[kind][1]


def recipe_from_plain(data: Any) -> AnyRecipe:
    """A recipe of whatever kind from plain data, as jobs of a sweep carry it."""
    return from_plain(_class(data), data)


def _class(data: Any) -> type[AnyRecipe]:
    kind = data.get("kind") if isinstance(data, dict) else None
    return KINDS[kind][0] if isinstance(kind, str) and kind in KINDS else Recipe


def _file(run: Path, verb: str = "train") -> Path:
    if not (run / "recipe.yaml").is_file():
        raise InputError(
            f"{run} is not a run folder: it has no recipe.yaml. Train one with 'jepatlas {verb} --out {run}'."
        )
    if not _read(path := run / "recipe.yaml"):  # which would pass for the recipe of an agent, that has no kind
        raise InputError(f"{path} is damaged: it is empty, but a run keeps its whole recipe. {MEND}")
    return path


def _read(path: Path) -> dict[str, Any]:
    """Keys and values; those that are left out have their defaults, and all may be."""
    try:
        data = yaml.safe_load(path.read_text())
    except FileNotFoundError as error:
        raise InputError(f"There is no recipe file {path}.") from error
    except (yaml.YAMLError, ValueError, IsADirectoryError) as error:  # no text, or a date that is none
        raise InputError(f"{path} is not a recipe in YAML: {error}") from error
    if not isinstance(data, dict | None):
        raise InputError(
            f"{path} is no recipe, or a damaged one: expected keys and values, but found {data!r:.60}. {MEND}"
        )
    return data or {}


def recipe_text(recipe: Any) -> str:
    """
    >>> recipe_text(Recipe()).splitlines()[:3]
    ['seed: 0', 'world:', '  kind: latent']
    """
    return yaml.safe_dump(to_plain(recipe), sort_keys=False, allow_unicode=True)


def recipe_id(recipe: Any) -> str:
    """The fingerprint that a run's checkpoints carry.

    Where and how often a run reports does not change what it computes, nor does where its files lie: it may be resumed
    elsewhere.
    """
    # as a file would give it back: 30 where a fraction may be is 30.0
    plain: dict[str, Any] = to_plain(from_plain(type(recipe), to_plain(recipe)))
    return fingerprint(_telling(plain))


def _telling(plain: dict[str, Any]) -> dict[str, Any]:
    """Without what is silent in the training of every agent, and without the place of what is known by its hash."""
    left = {
        key: _telling(value) if isinstance(value, dict) else value
        for key, value in plain.items()
        if key not in PLACES or plain.get("sha256") is None
    }
    if "training" in left:
        left["training"] = {key: value for key, value in left["training"].items() if key not in SILENT}
    return left


def _what(kind: str | None) -> str:
    return f"kind '{kind}'" if kind else "an agent (without a 'kind:' of its own)"
