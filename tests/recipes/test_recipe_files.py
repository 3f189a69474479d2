"""Recipe files: round trips, and errors that name the field and suggest a correction."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from jepatlas.core.config import choices, from_plain, to_plain
from jepatlas.core.errors import InputError
from jepatlas.nn import CouplingConfig, MLPConfig
from jepatlas.objectives import InfoNCEConfig, LeJEPAConfig, WhiteningConfig
from jepatlas.recipes import (
    Recipe,
    VisionRecipe,
    build_batches,
    build_objective,
    load_recipe,
    read_recipe,
    recipe_id,
    recipe_text,
)
from jepatlas.training import OneCycleSchedule, TrainingConfig
from jepatlas.worlds import Coupling, LatentWorld, Lift, OrnsteinUhlenbeck


def kinds(cls: type = Recipe, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """All kinds that a recipe offers, each with the path of its field."""
    for name, hint in typing.get_type_hints(cls).items():
        if name != "kind":
            found = choices(hint)
            yield from (((*path, name), kind) for kind in found)
            if dataclasses.is_dataclass(hint):
                yield from kinds(typing.cast(type, hint), (*path, name))


def settings(hint: Any) -> Iterator[type]:
    """All dataclasses reachable from the fields of a recipe."""
    plain = [hint] if isinstance(hint, type) and dataclasses.is_dataclass(hint) else []
    for cls in (*choices(hint).values(), *plain):
        yield cls
        for inner in typing.get_type_hints(cls).values():
            yield from settings(inner)


def fields(of: type) -> list[tuple[type, str, Any]]:
    """Fields of objectives, training and schedules with this type, or with any `Literal`."""
    hints = typing.get_type_hints(Recipe)
    owners = {cls for name in ("objective", "training") for cls in settings(hints[name])}
    every = [(cls, f.name, typing.get_type_hints(cls)[f.name]) for cls in owners for f in dataclasses.fields(cls)]
    found = [
        (cls, name, hint) for cls, name, hint in every if of in (hint, typing.get_origin(hint), *typing.get_args(hint))
    ]
    return sorted(found, key=lambda field: (field[0].__name__, field[1]))


def name_of(value: Any) -> str:
    return getattr(value, "__name__", value if isinstance(value, str) else "")


@pytest.mark.parametrize(("cls", "name", "hint"), [*fields(float), *fields(int)], ids=name_of)
def test_nan_is_rejected_in_every_number(cls: type, name: str, hint: Any):
    for bad in (math.nan, math.inf)[: 1 if hint is int else 2]:
        several = typing.get_origin(hint) is tuple
        with pytest.raises(InputError):
            cls(**{name: (bad,) * len(typing.get_args(hint)) if several else bad})


@pytest.mark.parametrize(("cls", "name", "hint"), fields(typing.cast(type, typing.Literal)), ids=name_of)
def test_unknown_choices_are_rejected_in_every_literal(cls: type, name: str, hint: Any):
    word = typing.get_args(hint)[0]
    with pytest.raises(InputError, match=f"{name}.*'{word}x'.*'{word}'"):
        cls(**{name: f"{word}x"})


def test_settings_are_found_at_all_depths():
    numbers = {(cls, name) for cls, name, _ in [*fields(float), *fields(int)]}
    assert {(LeJEPAConfig, "weight"), (TrainingConfig, "ema"), (OneCycleSchedule, "first")} <= numbers
    assert len(numbers) >= 34
    texts = {name for _, name, _ in fields(typing.cast(type, typing.Literal))}
    assert texts >= {"kernel", "form", "views", "design", "precision", "parallel"}


def test_kinds_are_found_at_all_depths():
    found = {".".join(path): kind for path, kind in kinds()}
    assert {"world.law", "world.mixing", "pairs", "encoder", "projector", "objective", "training.schedule"} <= set(
        found
    )
    assert len(list(kinds())) >= 24


@pytest.mark.parametrize(("path", "kind"), list(kinds()), ids=lambda value: value if isinstance(value, str) else "")
def test_every_kind_round_trips_through_a_file(path: tuple[str, ...], kind: str, tmp_path: Path):
    plain: dict[str, Any] = to_plain(Recipe())
    owner = plain
    for name in path[:-1]:
        owner = owner[name]
    owner[path[-1]] = {"kind": kind}
    recipe = from_plain(Recipe, plain)
    (tmp_path / "recipe.yaml").write_text(recipe_text(recipe))
    assert read_recipe(tmp_path / "recipe.yaml") == load_recipe(tmp_path) == recipe
    assert yaml.safe_load(recipe_text(recipe)) == to_plain(recipe)
    batch = build_batches(recipe)(0)
    assert build_objective(recipe).encode(batch.x).shape == (recipe.training.batch_size, 2)


def test_missing_keys_take_defaults(tmp_path: Path):
    file = tmp_path / "recipe.yaml"
    file.write_text("")
    assert read_recipe(file) == Recipe()
    file.write_text("seed: 3\nobjective: whitening\ntraining: {lr: 1e-3}\n")  # YAML reads 1e-3 as a string
    assert read_recipe(file) == Recipe(seed=3, objective=WhiteningConfig(), training=TrainingConfig(lr=1e-3))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sede: 1", r"recipe\.yaml.* 'sede'.* 'seed'"),
        ("training: {stesp: 5}", "training.* 'stesp'.* 'steps'"),
        ("world: {kind: latent, mixing: spirl}", r"world\.mixing.* 'spirl'.* 'spiral'"),
        ("objective: {kind: lejepa, sigreg: {slises: 3}}", r"objective\.sigreg.* 'slices'"),
        ("training: {steps: five}", r"training\.steps.* 'five'"),
        ("training: {steps: 5.5}", r"training\.steps.* 5\.5"),
        ("training: {steps: true}", r"training\.steps.* True"),
        ("training: {lr: fast}", r"training\.lr.* 'fast'"),
        ("training: {track: [tensorbord]}", r"training\.track\.0.* 'tensorboard' or 'wandb'"),
        ("training: 5", r"training: .* 5"),
        ("objective: 5", r"objective: .* 5"),
        ("objective: {weight: 1}", r"objective: .*'kind'"),
        ("- seed", r"\['seed'\]"),
        ("seed: [1", r"recipe\.yaml .*YAML"),
        ("seed: !!python/object/apply:os.getcwd []", r"recipe\.yaml .*YAML"),
        ("training: {steps: 0}", r"steps .*0"),
        ("latent_dim: 0", r"latent_dim .*0"),
        ("world: {kind: latent, law: {kind: ornstein-uhlenbeck, dim: 3}}", r"dim is 3"),
    ],
)
def test_file_errors_name_the_field(text: str, message: str, tmp_path: Path):
    (tmp_path / "recipe.yaml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_recipe(tmp_path / "recipe.yaml")


def test_files_that_are_not_recipes_are_rejected(tmp_path: Path):
    with pytest.raises(InputError, match=r"missing\.yaml"):
        read_recipe(tmp_path / "missing.yaml")
    with pytest.raises(InputError, match="YAML"):
        read_recipe(tmp_path)
    (tmp_path / "picture.png").write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match=r"picture\.png .*YAML"):
        read_recipe(tmp_path / "picture.png")
    with pytest.raises(InputError, match=r"recipe\.yaml"):
        load_recipe(tmp_path)
    for text, message in (
        ("", "empty"),
        ("\n# nothing\n", "empty"),
        ("garbage", "'garbage'"),
        ("steps: 2024-13-45", r"recipe\.yaml .*YAML"),
    ):
        (tmp_path / "recipe.yaml").write_text(text)
        for kind in (Recipe, VisionRecipe):  # an agent's recipe has no kind either, but is not assumed
            with pytest.raises(InputError, match=message):
                load_recipe(tmp_path, kind)
    (tmp_path / "mine.yaml").write_text("")
    with pytest.raises(InputError, match=r"mine\.yaml .*'vision'"):
        read_recipe(tmp_path / "mine.yaml", VisionRecipe)


NOT_IN_ID = {
    "device": "cuda",
    "threads": 2,
    "parallel": "fsdp",
    "log_every": 7,
    "checkpoint_every": 7,
    "keep": 7,
    "track": ("wandb",),
}
IN_ID = {
    "steps": 7,
    "batch_size": 8,
    "accumulate": 2,
    "lr": 0.7,
    "betas": (0.7, 0.7),
    "weight_decay": 0.7,
    "decayed": "matrices",
    "clip": 0.7,
    "ema": 0.7,
    "precision": "bfloat16",
    "collapse": 0.7,
    "grace": 7,
}


def test_recipe_id_ignores_only_device_and_reporting_settings():
    known = {field.name for field in dataclasses.fields(TrainingConfig)}
    assert known == {*NOT_IN_ID, *IN_ID, "schedule"}
    base = Recipe()
    for name, value in NOT_IN_ID.items():
        assert recipe_id(replace(base, training=replace(base.training, **{name: value}))) == recipe_id(base), name
    others = [replace(base, training=replace(base.training, **{name: value})) for name, value in IN_ID.items()]
    others += [
        replace(base, seed=1),
        replace(base, latent_dim=2),
        replace(base, projector=MLPConfig()),
        replace(base, encoder=CouplingConfig()),
        replace(base, objective=LeJEPAConfig(weight=0.5)),
        replace(base, world=LatentWorld(mixing=Coupling())),
        replace(base, world=LatentWorld(mixing=Coupling(seed=1))),
        replace(base, world=LatentWorld(OrnsteinUhlenbeck(rho=0.5))),
    ]
    assert len({recipe_id(recipe) for recipe in [base, *others]}) == 1 + len(others)


def test_weights_depend_on_the_seed():
    first, second, other = (build_objective(Recipe(seed=seed)).state_dict() for seed in (0, 0, 1))
    assert all(first[name].equal(second[name]) for name in first)
    assert not any(first[name].equal(other[name]) for name in first if first[name].numel() > 1)


def test_widths_match_the_world_and_the_recipe():
    recipe = Recipe(
        world=LatentWorld(OrnsteinUhlenbeck(dim=3), Lift(observed=7)), latent_dim=5, projector=MLPConfig(width=11)
    )
    objective, batch = build_objective(recipe), build_batches(recipe)(0)
    h = objective.encode(batch.x)
    assert (batch.x.shape[1], h.shape[1], objective.projector(h).shape[1]) == (7, 5, 11)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (
            Recipe(objective=WhiteningConfig(), latent_dim=8, training=TrainingConfig(batch_size=4)),
            r"4.*ExactWhitening.* 5 pairs.*--batch-size",
        ),
        (
            Recipe(objective=WhiteningConfig(), latent_dim=8, training=TrainingConfig(batch_size=8, accumulate=2)),
            r"\b4\b.*ExactWhitening.* 5 pairs",
        ),
        (Recipe(objective=InfoNCEConfig(), training=TrainingConfig(batch_size=1)), r"\b1\b.*InfoNCE.* 2 pairs"),
        (Recipe(encoder=CouplingConfig(), latent_dim=3), "2 and 3"),
        (Recipe(objective=WhiteningConfig(), projector=MLPConfig()), "projector"),
    ],
)
def test_incompatible_settings_are_rejected(recipe: Recipe, message: str):
    with pytest.raises(InputError, match=message):
        build_objective(recipe)
