"""Recipes as files: what is written is read again, and what is wrong is refused with its place and a hint."""

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
    """Every choice that a recipe offers, with its place."""
    for name, hint in typing.get_type_hints(cls).items():
        if name != "kind":
            found = choices(hint)
            yield from (((*path, name), kind) for kind in found)
            if dataclasses.is_dataclass(hint):
                yield from kinds(typing.cast(type, hint), (*path, name))


def settings(hint: Any) -> Iterator[type]:
    """Every dataclass that a field of a recipe can lead to."""
    plain = [hint] if isinstance(hint, type) and dataclasses.is_dataclass(hint) else []
    for cls in (*choices(hint).values(), *plain):
        yield cls
        for inner in typing.get_type_hints(cls).values():
            yield from settings(inner)


def fields(of: type) -> list[tuple[type, str, Any]]:
    """The fields of objectives, training and schedules that take values of this type, or some `Literal`."""
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
def test_no_number_of_a_recipe_may_be_nan(cls: type, name: str, hint: Any):
    for bad in (math.nan, math.inf)[: 1 if hint is int else 2]:
        several = typing.get_origin(hint) is tuple
        with pytest.raises(InputError):
            cls(**{name: (bad,) * len(typing.get_args(hint)) if several else bad})


@pytest.mark.parametrize(("cls", "name", "hint"), fields(typing.cast(type, typing.Literal)), ids=name_of)
def test_no_text_of_a_recipe_may_be_one_that_is_not_offered(cls: type, name: str, hint: Any):
    word = typing.get_args(hint)[0]
    with pytest.raises(InputError, match=f"{name}: there is no '{word}x'. Did you mean '{word}'?"):
        cls(**{name: f"{word}x"})


def test_every_setting_is_found():
    numbers = {(cls, name) for cls, name, _ in [*fields(float), *fields(int)]}
    assert {(LeJEPAConfig, "weight"), (TrainingConfig, "ema"), (OneCycleSchedule, "first")} <= numbers
    assert len(numbers) >= 34
    texts = {name for _, name, _ in fields(typing.cast(type, typing.Literal))}
    assert texts >= {"kernel", "form", "views", "design", "precision", "parallel"}


def test_every_choice_is_found():
    found = {".".join(path): kind for path, kind in kinds()}
    assert {"world.law", "world.mixing", "pairs", "encoder", "projector", "objective", "training.schedule"} <= set(
        found
    )
    assert len(list(kinds())) >= 24


@pytest.mark.parametrize(("path", "kind"), list(kinds()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_recipe_of_every_kind_is_read_as_it_was_written(path: tuple[str, ...], kind: str, tmp_path: Path):
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


def test_what_is_left_out_takes_its_default(tmp_path: Path):
    file = tmp_path / "recipe.yaml"
    file.write_text("")
    assert read_recipe(file) == Recipe()
    file.write_text("seed: 3\nobjective: whitening\ntraining: {lr: 1e-3}\n")  # YAML takes 1e-3 for a text
    assert read_recipe(file) == Recipe(seed=3, objective=WhiteningConfig(), training=TrainingConfig(lr=1e-3))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sede: 1", r"recipe\.yaml: there is no key 'sede'\. Did you mean 'seed'\?"),
        ("training: {stesp: 5}", r"training: there is no key 'stesp'\. Did you mean 'steps'\?"),
        ("world: {kind: latent, mixing: spirl}", r"world\.mixing: there is no kind 'spirl'\. Did you mean 'spiral'\?"),
        ("objective: {kind: lejepa, sigreg: {slises: 3}}", r"objective\.sigreg: .* Did you mean 'slices'\?"),
        ("training: {steps: five}", r"training\.steps: expected a whole number, but found 'five'"),
        ("training: {steps: 5.5}", r"training\.steps: expected a whole number, but found 5\.5"),
        ("training: {steps: true}", r"training\.steps: expected a whole number, but found True"),
        ("training: {lr: fast}", r"training\.lr: expected a number, but found 'fast'"),
        ("training: {track: [tensorbord]}", r"training\.track\.0: expected 'tensorboard' or 'wandb'"),
        ("training: 5", r"training: expected keys and values, but found 5"),
        ("objective: 5", r"objective: expected keys and values, but found 5"),
        ("objective: {weight: 1}", r"objective: the key 'kind' is missing"),
        ("- seed", r"expected keys and values, but found \['seed'\]"),
        ("seed: [1", r"is not a recipe in YAML"),
        ("seed: !!python/object/apply:os.getcwd []", r"is not a recipe in YAML"),
        ("training: {steps: 0}", r"steps .*0"),
        ("latent_dim: 0", r"latent_dim must be at least 1, but 0"),
        ("world: {kind: latent, law: {kind: ornstein-uhlenbeck, dim: 3}}", r"dim is 3"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(text: str, message: str, tmp_path: Path):
    (tmp_path / "recipe.yaml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_recipe(tmp_path / "recipe.yaml")


def test_files_that_are_no_recipe(tmp_path: Path):
    with pytest.raises(InputError, match="There is no recipe file"):
        read_recipe(tmp_path / "missing.yaml")
    with pytest.raises(InputError, match="is not a recipe in YAML"):
        read_recipe(tmp_path)
    (tmp_path / "picture.png").write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match="is not a recipe in YAML"):
        read_recipe(tmp_path / "picture.png")
    with pytest.raises(InputError, match=r"is not a run folder: it has no recipe\.yaml"):
        load_recipe(tmp_path)
    for text, message in (
        ("", "empty"),
        ("\n# nothing\n", "empty"),
        ("garbage", "'garbage'"),
        ("steps: 2024-13-45", "is not a recipe in YAML"),
    ):
        (tmp_path / "recipe.yaml").write_text(text)
        for kind in (Recipe, VisionRecipe):  # not "a recipe of an agent", which has no kind either
            with pytest.raises(InputError, match=message):
                load_recipe(tmp_path, kind)
    (tmp_path / "mine.yaml").write_text("")
    with pytest.raises(InputError, match=r"mine\.yaml is empty.* kind 'vision'"):
        read_recipe(tmp_path / "mine.yaml", VisionRecipe)


SILENT = {
    "device": "cuda",
    "threads": 2,
    "parallel": "fsdp",
    "log_every": 7,
    "checkpoint_every": 7,
    "keep": 7,
    "track": ("wandb",),
}
HEARD = {
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


def test_the_id_of_a_recipe_leaves_out_only_where_and_how_often_it_reports():
    known = {field.name for field in dataclasses.fields(TrainingConfig)}
    assert known == {*SILENT, *HEARD, "schedule"}
    base = Recipe()
    for name, value in SILENT.items():
        assert recipe_id(replace(base, training=replace(base.training, **{name: value}))) == recipe_id(base), name
    others = [replace(base, training=replace(base.training, **{name: value})) for name, value in HEARD.items()]
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


def test_weights_come_from_the_seed():
    first, second, other = (build_objective(Recipe(seed=seed)).state_dict() for seed in (0, 0, 1))
    assert all(first[name].equal(second[name]) for name in first)
    assert not any(first[name].equal(other[name]) for name in first if first[name].numel() > 1)


def test_widths_follow_the_world_and_the_recipe():
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
            "A batch of 4 is too small",
        ),
        (Recipe(objective=InfoNCEConfig(), training=TrainingConfig(batch_size=1)), "A batch of 1 is too small"),
        (Recipe(encoder=CouplingConfig(), latent_dim=3), "2 and 3"),
        (Recipe(objective=WhiteningConfig(), projector=MLPConfig()), "projector"),
    ],
)
def test_parts_that_do_not_fit_are_refused(recipe: Recipe, message: str):
    with pytest.raises(InputError, match=message):
        build_objective(recipe)
