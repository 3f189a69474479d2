"""Camera choice against its definition, and training in rounds with resumption."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from workflows.vision.tiny_scenes import agent, write_scenes

from jepatlas.core.arrays import write_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.records import Crops
from jepatlas.objectives.vision import MAEConfig
from jepatlas.recipes import CameraChoiceRecipe, build_crops, build_vision, read_images
from jepatlas.workflows.runs import start_run, trained
from jepatlas.workflows.vision import (
    camera_choice,
    camera_losses,
    camera_probabilities,
    choices_of,
    load_with_cameras,
    read_camera_images,
    sample_cameras,
    train_with_cameras,
)

VIEWS = ("left", "right")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return write_scenes(tmp_path / "scenes")


def curious(table: Path, **training: Any) -> CameraChoiceRecipe:
    return CameraChoiceRecipe(agent(table, "left", **training), VIEWS, rounds=3)


def weights(objective: Any) -> dict[str, Tensor]:
    return dict(objective.state_dict())


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(value, other[name]) for name, value in one.items())


def test_camera_probabilities_are_a_softmax_of_the_centred_loss():
    loss = np.random.default_rng(0).gamma(2.0, size=(7, 3))
    apart = [[value - sum(row) / 3 for value in row] for row in loss.tolist()]
    sigma = (sum(value**2 for row in apart for value in row) / 21) ** 0.5
    due = [[np.exp(v / (sigma * 0.5)) / sum(np.exp(w / (sigma * 0.5)) for w in row) for v in row] for row in apart]
    assert np.allclose(camera_probabilities(loss, 0.5), due)
    assert np.allclose(camera_probabilities(5 * loss + np.arange(7)[:, None], 0.5), due), (
        "invariant to the unit and to each state's mean loss"
    )
    assert np.allclose(camera_probabilities(np.ones((4, 3)), 0.5), 1 / 3)
    assert camera_probabilities(loss, 1e-6).argmax(1).tolist() == loss.argmax(1).tolist()


def test_cameras_are_sampled_with_their_probabilities():
    given = np.array([0.1, 0.0, 0.6, 0.3])
    drawn = sample_cameras(np.tile(given, (20_000, 1)), np.random.default_rng(0))
    assert np.abs(np.bincount(drawn, minlength=4) / 20_000 - given).max() < 0.015 and not (drawn == 1).any()
    assert sample_cameras(np.eye(3), np.random.default_rng(0)).tolist() == [0, 1, 2]


def test_camera_loss_is_the_training_loss(table: Path):
    """Computed per image, with one mask for all cameras of a state."""
    camera_images = read_camera_images(curious(table))
    objective = build_vision(agent(table, "left"), camera_images.seen).eval()
    images, rows = camera_images.seen.images, camera_images.rows[:8]
    loss = camera_losses(objective, images, rows, 5)
    for camera in range(2):
        x = torch.from_numpy(np.array(images[rows[:, camera]])).permute(0, 3, 1, 2)
        assert objective(Crops(x, ()), 5).total.item() == pytest.approx(loss[:, camera].mean(), rel=1e-5)
        others = objective.loss_per_image(Crops(torch.cat([x[:1], 255 - x[1:]]), ()), 5)
        assert others[0].item() == pytest.approx(loss[0, camera], rel=1e-4)
        assert not np.allclose(others[1:], loss[1:, camera])
    twice = camera_losses(objective, images, rows[:, [1, 1]], 5)
    assert np.array_equal(twice[:, 0], twice[:, 1]) and np.allclose(twice[:, 0], loss[:, 1])


def test_each_state_has_all_cameras_on_one_side_of_the_split(table: Path):
    camera_images = read_camera_images(curious(table))
    states, views = (camera_images.seen.table.column(name)[camera_images.rows] for name in ("state", "view"))
    assert camera_images.rows.shape == (40, 2) and (states[:, 0] == states[:, 1]).all() and (views == VIEWS).all()
    assert (
        np.isin(camera_images.rows, camera_images.seen.held) == camera_images.held[:, None]
    ).all() and 0 < camera_images.held.sum() < 40


@pytest.mark.parametrize("camera", [0, 1])
def test_constant_choice_equals_training_with_a_single_camera(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, camera: int
):
    """Rounds continue one run and use the chosen images. The pixel scale is disabled: it depends on all cameras."""
    monkeypatch.setattr("jepatlas.data.images.pixel_scale", lambda *_: (None, None))
    recipe, alone = curious(table), agent(table, VIEWS[camera])
    camera_images = read_camera_images(recipe)
    count = len(camera_images.learnt)
    for number in range(3):
        made = {"cameras": np.full(count, camera), "chances": np.eye(2)[np.full(count, camera)]}
        write_arrays(tmp_path / "run" / "looks" / f"round-{number:04d}.npz", made)
    assert train_with_cameras(recipe, tmp_path / "run").step == 6
    start_run(alone, tmp_path / "alone")
    there = weights(trained(build_vision(alone, read_images(alone)), alone, tmp_path / "alone"))
    assert same(weights(load_with_cameras(recipe, camera_images, tmp_path / "run")), there)


def breaking(step: int) -> Callable[..., Any]:
    """Crops that raise an error from the given step on."""

    def build(*given: Any) -> Any:
        batches = build_crops(*given).batches

        def until(number: int) -> Crops:
            if number >= step:
                raise ConnectionError("the disk is gone")
            return batches(number)

        return until

    return build


@pytest.mark.parametrize("step", [3, 4])
def test_run_stopped_within_or_between_rounds_resumes_identically(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
):
    recipe = curious(table, checkpoint_every=1)
    train_with_cameras(recipe, tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(ConnectionError):
        patch.setattr(camera_choice, "build_crops", breaking(step))
        train_with_cameras(recipe, tmp_path / "stopped")
    assert train_with_cameras(recipe, tmp_path / "stopped").status == "finished"
    whole, stopped = (choices_of(tmp_path / name) for name in ("whole", "stopped"))
    assert len(whole) == 3 and all(np.array_equal(a.cameras, b.cameras) for a, b in zip(whole, stopped, strict=True))
    ends = [
        weights(load_with_cameras(recipe, read_camera_images(recipe), tmp_path / name)) for name in ("whole", "stopped")
    ]
    assert same(ends[0], ends[1])
    assert (whole[0].chances == 0.5).all() and whole[1].chances.std() > 0.1, (
        "uniform in the first round, by the loss afterwards"
    )
    assert train_with_cameras(recipe, tmp_path / "whole").step == 6, "a finished run is not trained further"


def test_errors_name_the_argument(table: Path, tmp_path: Path):
    recipe = curious(table)
    for change, message in (
        ({"views": ("left",)}, "at least two"),
        ({"views": ("right", "rear")}, "'left'"),
        ({"rounds": 7}, "rounds.*6.*7"),
        ({"temperature": 0.0}, "positive"),
    ):
        with pytest.raises(InputError, match=message):
            replace(recipe, **change)
    with pytest.raises(InputError, match="'rear'"):
        read_camera_images(replace(recipe, views=("left", "rear")))
    blind = replace(recipe, agent=replace(recipe.agent, objective=MAEConfig()))
    with pytest.raises(InputError, match="MAE"):
        camera_losses(
            build_vision(blind.agent, read_camera_images(blind).seen),
            read_camera_images(blind).seen.images,
            read_camera_images(blind).rows,
            0,
        )
    train_with_cameras(replace(recipe, policy="random"), tmp_path / "run")
    with pytest.raises(InputError, match="recipe"):
        train_with_cameras(recipe, tmp_path / "run")
