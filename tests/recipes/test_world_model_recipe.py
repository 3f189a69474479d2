"""World-model recipes: episodes, windows, the objects they build, and rejected settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from training.small import same
from workflows.plan.small import recipe

from jepatlas.core.config import to_plain
from jepatlas.core.errors import InputError
from jepatlas.data import (
    EpisodeArrays,
    EpisodeFile,
    EpisodeWriter,
    Prefetched,
    RandomPolicy,
    RenderedColumn,
    collect,
    rows_of_episodes,
)
from jepatlas.nn import ConvConfig, MLPConfig
from jepatlas.objectives import LeJEPA, WorldModel
from jepatlas.recipes import (
    EpisodeSource,
    TwoFrames,
    WalkedWorld,
    WorldModelRecipe,
    episodes_too_short,
    gather_episodes,
    load_recipe,
    recipe_from_plain,
    walk,
    world_of_file,
)
from jepatlas.training import latest_checkpoint
from jepatlas.workflows.runs import resume_run, start_run
from jepatlas.worlds import LinearQuadratic, Rooms, ScriptedMotion

WALK = WalkedWorld(Rooms(), episodes=10, length=7)


def test_episodes_match_the_world_under_their_actions():
    episodes = walk(WALK, seed=3)
    assert episodes.lengths.tolist() == [8] * 10
    for number in (0, 9):
        one = episodes.episode(number)
        assert np.isnan(one["action"][-1]).all() and np.abs(one["action"][:-1]).max() <= 1
        after = WALK.world.step(one["state"][:-1], one["action"][:-1].astype(np.float64))
        assert np.allclose(after, one["state"][1:], atol=1e-6)
        assert np.array_equal(WALK.world.observe(one["state"]), one["seen"])


def test_seed_determines_the_walk():
    first, again, other = (walk(WALK, seed).rows("state", np.arange(80)) for seed in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_lazy_images_match_eager_rendering():
    data = gather_episodes(replace(WALK, episodes=40), seed=2)
    arrays = data.episodes
    assert isinstance(arrays, EpisodeArrays) and isinstance(arrays.arrays["seen"], RenderedColumn), (
        "images are rendered lazily"
    )
    every = WALK.world.observe(arrays.rows("state", np.arange(40 * 8)))
    rows = rows_of_episodes(arrays, data.held)
    assert len(rows) == 4 * 8 and np.array_equal(data.observations(rows), every[rows])
    numbers = gather_episodes(WalkedWorld(LinearQuadratic(), episodes=10, length=7), seed=2)
    assert np.array_equal(numbers.observations(np.arange(80)), numbers.episodes.rows("state", np.arange(80)))


def test_one_tenth_is_held_out():
    data = gather_episodes(replace(WALK, episodes=40), seed=0)
    assert len(data.held) == 4 and len(data.learnt) == 36 and not set(data.held) & set(data.learnt)
    assert data.shape == (3, 64, 64) and data.action_dim == 2


def test_windows_come_from_training_episodes():
    objective, stream = recipe().build()
    assert isinstance(objective, WorldModel)
    windows, data = stream(0), gather_episodes(recipe().source, 0)
    assert windows.frames.shape == (8, 4, 3, 64, 64) and windows.frames.dtype == torch.uint8
    assert windows.u.shape == (8, 3, 2) and windows.z is not None
    learnt = np.concatenate([data.episodes.episode(int(i))["state"] for i in data.learnt]).astype(np.float32)
    assert all((row.numpy() == learnt).all(1).any() for row in windows.z[:, 0])


def test_two_frame_windows_are_pairs():
    objective, stream = recipe(model=TwoFrames(), stride=3).build()
    assert isinstance(objective, LeJEPA)
    pairs = stream(0)
    assert pairs.x.shape == pairs.x_next.shape == (8, 3, 64, 64) and pairs.z_next.shape == (8, 2)


def test_vector_observations_require_an_mlp_encoder():
    numbers = WalkedWorld(LinearQuadratic(), episodes=10, length=7)
    objective, stream = recipe(source=numbers, encoder=MLPConfig(16, 1)).build()
    assert objective(stream(0), 0).total.isfinite()
    with pytest.raises(InputError, match="--encoder mlp"):
        recipe(source=numbers).build()
    with pytest.raises(InputError, match="--encoder conv"):
        recipe(encoder=MLPConfig()).build()


def test_collected_file_is_read_and_checked_by_its_hash(tmp_path: Path):
    path = tmp_path / "rooms.h5"
    collect(Rooms().make, RandomPolicy(0.8), 10, 7, 0, out=path, options={"goal": None})
    source = EpisodeSource(str(path)).sealed()
    _, stream = recipe(source=source).build()
    _, read_ahead = recipe(source=source, preload=False).build()
    assert isinstance(read_ahead, Prefetched)
    for step in (0, 5):
        assert stream(step).frames.shape == (8, 4, 3, 64, 64)
        assert torch.equal(stream(step).frames, read_ahead(step).frames)
    assert len(EpisodeFile(path)) == 10
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(InputError, match=r"rooms\.h5"):
        recipe(source=source).build()
    with pytest.raises(InputError, match="'pixel'"):
        recipe(source=EpisodeSource(str(path), observation="pixel")).build()
    with pytest.raises(InputError, match="path"):
        recipe(source=EpisodeSource()).build()


@pytest.mark.parametrize("row", [(3, 32, 32), (32, 32, 4), (32, 32, 1), (1, 24, 32)])
def test_images_in_various_layouts_are_read(row: tuple[int, ...], tmp_path: Path):
    rng = np.random.default_rng(0)
    with EpisodeWriter(tmp_path / "a.h5") as writer:
        for _ in range(4):
            writer.append({"pixels": rng.integers(0, 256, (8, *row), np.uint8), "action": rng.normal(size=(8, 2))})
    objective, stream = recipe(source=EpisodeSource(str(tmp_path / "a.h5")), history=2).build()
    assert objective(stream(0), 0).total.isfinite()


def test_observations_of_other_shapes_are_rejected(tmp_path: Path):
    with EpisodeWriter(tmp_path / "a.h5") as writer:
        for _ in range(4):
            writer.append({"pixels": np.zeros((8, 16, 16), np.uint8), "action": np.zeros((8, 2))})
    for encoder in (ConvConfig(), MLPConfig()):
        with pytest.raises(InputError, match=r"\(16, 16\)"):
            recipe(source=EpisodeSource(str(tmp_path / "a.h5")), encoder=encoder).build()


def test_episodes_without_a_window_are_counted():
    lengths = np.array([7, 6, 2, 9, 1])
    assert episodes_too_short(recipe(stride=2), lengths) == 3, "a window of three steps needs seven rows"
    assert episodes_too_short(recipe(model=TwoFrames(), stride=2), lengths) == 2


@pytest.mark.parametrize(
    ("about", "world"),
    [
        ({"world": to_plain(Rooms(one_way=True))}, Rooms(one_way=True)),
        ({"world": {"kind": "ocean"}}, None),
        ({"world": {"kind": "rooms", "colour": 3}}, None),
        ({"world": "rooms"}, None),
        ({}, None),
    ],
)
def test_world_is_restored_from_file_metadata(about: dict[str, Any], world: Rooms | None, tmp_path: Path):
    with EpisodeWriter(tmp_path / "a.h5", about=about) as writer:
        writer.append({"a": np.zeros(3)})
    assert world_of_file(EpisodeFile(tmp_path / "a.h5")) == world


def test_resumed_run_takes_the_same_steps(tmp_path: Path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    start_run(recipe(steps=4), whole)
    training = replace(recipe(steps=4).training, checkpoint_every=2)
    start_run(replace(recipe(steps=4), training=training), parts)
    newest = latest_checkpoint(parts / "checkpoints")
    assert newest is not None and newest.name == "step-4"
    for file in newest.iterdir():
        file.unlink()
    newest.rmdir()
    assert resume_run(parts).step == 4
    assert same(whole, parts)


def test_recipe_round_trips_with_its_kind(tmp_path: Path):
    given = recipe()
    assert recipe_from_plain(to_plain(given)) == given
    with pytest.raises(InputError, match="jepatlas train world-model --out"):
        load_recipe(tmp_path, WorldModelRecipe)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: WalkedWorld(episodes=0), "episodes"),
        (lambda: WalkedWorld(Rooms(), ScriptedMotion()), "motion"),
        (lambda: recipe(stride=0), "stride"),
        (lambda: recipe(history=0), "history"),
        (lambda: recipe(latent_dim=0), "latent_dim"),
        (lambda: recipe(stride=10).build(), "horizon .* skip 10 "),
        (lambda: recipe(history=200).build(), "history .*199 rows.* 21 "),
        (lambda: recipe(encoder=ConvConfig(), latent_dim=7).build(), "7"),
    ],
)
def test_invalid_settings_are_rejected(wrong, message: str):
    with pytest.raises(InputError, match=message):
        wrong()
