"""Energy recipes: files, identifiers, and the objects they build."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from workflows.energy.tiny import recipe, write_steps

from jepatlas.core.config import choices, from_plain, to_plain
from jepatlas.core.errors import InputError
from jepatlas.energy import IEJEPA, QRL, Expectile, IQEConfig, QRLConfig
from jepatlas.objectives import WhiteningConfig
from jepatlas.recipes import (
    AgentConfig,
    EnergyRecipe,
    Recipe,
    StepFile,
    WalkConfig,
    any_recipe,
    build_energy,
    gather_experience,
    load_recipe,
    read_recipe,
    recipe_from_plain,
    recipe_id,
    recipe_text,
)
from jepatlas.workflows.runs import resume_run, start_run


def kinds(cls: type = EnergyRecipe, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """All kinds that the recipe and its agent offer, each with the path of its field."""
    for name, hint in typing.get_type_hints(cls).items():
        for kind in choices(hint) if name != "kind" else {}:
            yield (*path, name), kind
    if cls is EnergyRecipe:
        yield from kinds(AgentConfig, ("agent",))


@pytest.mark.parametrize(("path", "kind"), list(kinds()), ids=lambda one: one if isinstance(one, str) else "")
def test_every_kind_round_trips_through_a_file(path: tuple[str, ...], kind: str, tmp_path: Path):
    plain: Any = to_plain(EnergyRecipe(agent=AgentConfig()))
    owner = plain
    for name in path[:-1]:
        owner = owner[name]
    owner[path[-1]] = {"kind": kind}
    given = from_plain(EnergyRecipe, plain)
    (tmp_path / "recipe.yaml").write_text(recipe_text(given))
    assert load_recipe(tmp_path, EnergyRecipe) == any_recipe(tmp_path) == given
    assert recipe_from_plain(yaml.safe_load(recipe_text(given))) == given
    assert recipe_text(given).startswith("kind: energy\n")


def test_kinds_are_found_at_all_depths():
    found = [".".join(path) for path, _ in kinds()]
    assert {"source", "mixing", "agent", "head", "learning", "agent.objective"} <= set(found) and len(found) >= 24


def test_recipes_of_another_kind_are_rejected(tmp_path: Path):
    (tmp_path / "agent.yaml").write_text(recipe_text(Recipe()))
    (tmp_path / "energy.yaml").write_text(recipe_text(EnergyRecipe()))
    message = r"agent\.yaml .*'energy'"
    with pytest.raises(InputError, match=message):
        read_recipe(tmp_path / "agent.yaml", EnergyRecipe)
    message = r"energy\.yaml .*'energy'"
    with pytest.raises(InputError, match=message):
        read_recipe(tmp_path / "energy.yaml")
    assert isinstance(recipe_from_plain(to_plain(Recipe())), Recipe)
    with pytest.raises(InputError, match=re.escape(str(tmp_path))):
        any_recipe(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: energy\nhaed: iqe", "'haed'.* 'head'"),
        ("kind: energy\nhead: iqx", "head.* 'iqx'.* 'iqe'"),
        ("kind: energy\nwidth: 0", "width .*0"),
        ("kind: energy\nsource: {kind: one-way-grid, wall: 40}", "wall .*40"),
        (
            "kind: energy\nsource: {kind: file, path: a.npz}\nwalk: {episodes: 3}",
            "walk",
        ),
        ("kind: energy\nwalk: {episodes: 0}", "episodes .*0"),
        ("kind: energy\nwalk: {coverage: 0}", "coverage"),
        ("kind: energy\nagent: {kind: jepa, dim: 0}", "dim"),
        ("kind: energy\nagent: {kind: jepa, together: {mode: both}}", "both"),
        ("kind: energy\nlearning: {kind: expectile, gamma: 1}", "gamma"),
        ("kind: energy\nlearning: {kind: qrl, offset: .nan}", "offset"),
    ],
)
def test_file_errors_name_the_field(text: str, message: str, tmp_path: Path):
    (tmp_path / "recipe.yaml").write_text(text)
    with pytest.raises(InputError, match=message):
        any_recipe(tmp_path)


def test_recipe_id_depends_only_on_what_is_computed(tmp_path: Path):
    base = recipe()
    silent = replace(base, training=replace(base.training, log_every=7, threads=2))
    assert recipe_id(silent) == recipe_id(base)
    others = [
        replace(base, seed=1),
        replace(base, floor=0.1),
        replace(base, head=IQEConfig(chunks=4)),
        replace(base, learning=QRLConfig(offset=31)),
        replace(base, agent=AgentConfig()),
        replace(base, walk=WalkConfig(episodes=61, length=12)),
        replace(base, future=0.5),
    ]
    assert len({recipe_id(one) for one in [base, *others]}) == 1 + len(others)
    assert recipe_id(replace(base, learning=QRLConfig(offset=31))) == recipe_id(
        replace(base, learning=QRLConfig(offset=31.0))  # as read from the file
    )


def test_run_with_integer_value_for_float_field_is_resumed(tmp_path: Path):
    start_run(recipe(steps=3, learning=QRLConfig(offset=31)), tmp_path / "run")
    assert resume_run(tmp_path / "run").status == "finished"


def test_build_returns_the_configured_objects():
    data = gather_experience(recipe())
    assert isinstance(build_energy(recipe(), data), QRL)
    expectile = from_plain(EnergyRecipe, to_plain(recipe()) | {"learning": "expectile"})
    assert isinstance(build_energy(expectile, data), Expectile)
    objective, batches = recipe(agent=AgentConfig(dim=3)).build()
    assert isinstance(objective, IEJEPA) and objective.encode(batches(0).x).shape == (64, 3)
    first, second, other = (build_energy(recipe(seed=seed), data).state_dict() for seed in (0, 0, 1))
    assert all(first[name].equal(second[name]) for name in first)
    assert not first["energy.embedding.0.weight"].equal(other["energy.embedding.0.weight"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (recipe(width=33), "width 33"),
        (recipe(floor=-1.0), "floor"),
        (recipe(future=2.0), "future"),
        (replace(recipe(), training=replace(recipe().training, ema=0.9)), "energy.scale"),
        (
            replace(
                recipe(agent=AgentConfig(dim=8, objective=WhiteningConfig())),
                training=replace(recipe().training, batch_size=4),
            ),
            "IEJEPA",
        ),
    ],
)
def test_incompatible_settings_leave_no_run_folder(given: EnergyRecipe, message: str, tmp_path: Path):
    with pytest.raises(InputError) as refusal:
        start_run(given, tmp_path / "run")
    assert message in str(refusal.value) and not (tmp_path / "run").exists()


def test_run_resumes_only_with_an_unchanged_steps_file(tmp_path: Path):
    steps = StepFile(str(write_steps(tmp_path / "s.npz"))).sealed()
    assert dataclasses.asdict(steps)["path"] == str(tmp_path / "s.npz") and len(steps.sha256 or "") == 64
    start_run(recipe(steps=3, source=steps, walk=WalkConfig()), tmp_path / "run")
    assert resume_run(tmp_path / "run").status == "finished"
    write_steps(tmp_path / "s.npz", more=np.ones(3))
    with pytest.raises(InputError, match=r"s\.npz"):
        resume_run(tmp_path / "run")
    (tmp_path / "s.npz").unlink()
    with pytest.raises(InputError, match=r"s\.npz"):
        resume_run(tmp_path / "run")
