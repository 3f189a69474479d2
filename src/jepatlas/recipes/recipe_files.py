"""Recipe files: strict YAML, with a fingerprint that checkpoints carry."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.errors import InputError
from jepatlas.core.files import read_json, write_json, write_text
from jepatlas.core.parsing import parse_yaml
from jepatlas.core.plugins import PLUGINS, plugin_files, record_locations
from jepatlas.recipes.agent_recipe import Recipe
from jepatlas.recipes.energy_recipe import EnergyRecipe
from jepatlas.recipes.pairs_recipe import PairsRecipe
from jepatlas.recipes.teaching_recipe import MutualRecipe, TaughtRecipe
from jepatlas.recipes.vision_recipe import VisionRecipe
from jepatlas.recipes.world_model_recipe import WorldModelRecipe

__all__ = [
    "AnyRecipe",
    "any_recipe",
    "load_recipe",
    "read_any_recipe",
    "read_recipe",
    "recipe_from_plain",
    "recipe_id",
    "recipe_text",
    "verb_of",
    "write_recipe",
]

R = TypeVar("R")

AnyRecipe = Recipe | EnergyRecipe | WorldModelRecipe | VisionRecipe | TaughtRecipe | MutualRecipe | PairsRecipe

KINDS: dict[str, tuple[type[AnyRecipe], str]] = {
    Recipe.kind: (Recipe, "train"),
    EnergyRecipe.kind: (EnergyRecipe, "energy fit"),
    WorldModelRecipe.kind: (WorldModelRecipe, "train world-model"),
    VisionRecipe.kind: (VisionRecipe, "train vision"),
    TaughtRecipe.kind: (TaughtRecipe, "migrate model"),
    MutualRecipe.kind: (MutualRecipe, "migrate mutual"),
    PairsRecipe.kind: (PairsRecipe, "train"),
}
"""Recipes by kind, and the command that starts and resumes runs of each. A file without `kind` is an agent's."""

REPORTING = ("device", "threads", "parallel", "log_every", "checkpoint_every", "keep", "track")
"""Training settings that do not change the result; the fingerprint leaves them out."""
PATHS = ("path", "folder")
REMEDY = "Restore a copy of it, or start a new run."


def read_recipe(path: Path, cls: type[R] = Recipe) -> R:
    """The recipe in a file. Raises InputError for unknown keys, wrong values and other kinds."""
    data = _read(path)
    wanted = getattr(cls, "kind", Recipe.kind)
    if not data and wanted != Recipe.kind:
        raise InputError(f"{path} is empty, but {_describe(wanted)} is needed here. It must have at least a kind.")
    found = data.get("kind", Recipe.kind)
    if found != wanted:
        raise InputError(f"{path} is {_describe(found)}, but {_describe(wanted)} is needed here.")
    return from_plain(cls, data, where=str(path))


def read_any_recipe(path: Path | str) -> AnyRecipe:
    """The recipe in a file, of any kind."""
    path = Path(path)
    return read_recipe(path, _class(_read(path)))


def load_recipe(run: Path | str, cls: type[R] = Recipe) -> R:
    """The recipe of a run folder."""
    _, command = KINDS.get(getattr(cls, "kind", ""), (cls, "train"))
    return read_recipe(_file(run, command), cls)


def any_recipe(run: Path | str) -> AnyRecipe:
    """The recipe of a run folder, of any kind."""
    return load_recipe(run, _class(_read(_file(run))))


def verb_of(run: Path | str) -> str:
    """The command that starts and resumes runs of this kind, such as 'energy fit'."""
    kind = _read(_file(run)).get("kind", Recipe.kind)
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(
            f"{run} is a run of kind '{kind}', which cannot be resumed alone. Repeat the command that started it, such "
            "as 'jepatlas reproduce NAME'."
        )
    return KINDS[kind][1]


def recipe_from_plain(data: Any) -> AnyRecipe:
    """The recipe, of any kind, in plain data such as the jobs of a sweep."""
    return from_plain(_class(data), data)


def _class(data: Any) -> type[AnyRecipe]:
    kind = data.get("kind") if isinstance(data, dict) else None
    return KINDS[kind][0] if isinstance(kind, str) and kind in KINDS else Recipe


def _file(run: Path | str, command: str = "train") -> Path:
    path = Path(run) / "recipe.yaml"
    if not path.is_file():
        raise InputError(
            f"{run} is not a run folder: it has no recipe.yaml. Train one with 'jepatlas {command} --out {run}'."
        )
    if not _read(path):  # would be read as the default recipe of an agent
        raise InputError(f"{path} is damaged: it is empty. {REMEDY}")
    return path


def _read(path: Path) -> dict[str, Any]:
    """Keys and values; keys that are left out have their defaults."""
    try:
        data = parse_yaml(path.read_text(encoding="utf-8"), path)
    except FileNotFoundError as error:
        raise InputError(f"There is no recipe file {path}.") from error
    except (InputError, UnicodeDecodeError, IsADirectoryError) as error:
        raise InputError(f"{path} is not a recipe in YAML: {error}") from error
    if (path.parent / PLUGINS).is_file():
        record_locations(read_json(path.parent / PLUGINS))
    if not isinstance(data, dict | None):
        raise InputError(f"{path} is not a recipe: expected keys and values, but found {data!r:.60}. {REMEDY}")
    return data or {}


def recipe_text(recipe: object) -> str:
    """The recipe as YAML.

    >>> recipe_text(Recipe()).splitlines()[:3]
    ['seed: 0', 'world:', '  kind: latent']
    """
    return yaml.safe_dump(to_plain(recipe), sort_keys=False, allow_unicode=True)


def write_recipe(recipe: object, folder: Path) -> None:
    """Write the recipe of a run, and the locations of user-defined classes in it."""
    write_text(folder / "recipe.yaml", recipe_text(recipe))
    files = plugin_files(recipe)
    if files:
        write_json(folder / PLUGINS, files)


def recipe_id(recipe: object) -> str:
    """The fingerprint that a run's checkpoints carry.

    Settings that do not change the result and the locations of files are left out, so a run can be resumed elsewhere.
    """
    from jepatlas.training import fingerprint

    # A round trip gives the values that a file would give: 30 becomes 30.0 where a float is expected.
    plain: dict[str, Any] = to_plain(from_plain(type(recipe), to_plain(recipe)))
    return fingerprint(_significant(plain))


def _significant(plain: dict[str, Any]) -> dict[str, Any]:
    """Without reporting settings, and without the paths of files that are identified by their hash."""
    kept: dict[str, Any] = {}
    for key, value in plain.items():
        if key in PATHS and plain.get("sha256") is not None:
            continue
        kept[key] = _significant(value) if isinstance(value, dict) else value
    if "training" in kept:
        kept["training"] = {key: value for key, value in kept["training"].items() if key not in REPORTING}
    return kept


def _describe(kind: object) -> str:
    return "a recipe of an agent (without a 'kind')" if kind == Recipe.kind else f"a recipe of kind '{kind}'"
