"""Published settings of the agents, and the costs of their trials."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from workflows.vision.tiny_scenes import agent, write_scenes

from jepatlas.core.config import from_plain
from jepatlas.core.records import Crops
from jepatlas.experiments.engine.scene_images import missing_scenes
from jepatlas.experiments.social.agent_settings import EPOCH_IMAGES, OBJECTIVES, PLANS, PUBLISHED_OBJECTIVES
from jepatlas.experiments.social.checkpoint_trials import held_out_loss
from jepatlas.experiments.social.scenes import STUDIED, WORLDS
from jepatlas.experiments.social.trained_agents import agent_trial
from jepatlas.experiments.social.viewpoint_trials import training_cost
from jepatlas.objectives.vision import DINOConfig, DINOHeadConfig, SwAVConfig
from jepatlas.recipes import CameraChoiceRecipe, VisionRecipe, build_vision
from jepatlas.training import CosineSchedule
from jepatlas.training.flops import counted_flops
from jepatlas.workflows.vision import read_camera_images


def recipe(scene: str, objective: str = "ijepa") -> VisionRecipe:
    return from_plain(VisionRecipe, agent_trial("paper", scene, 0, 0, objective).settings["recipe"])


@pytest.mark.parametrize("scene", STUDIED["paper"])
def test_training_has_the_published_epochs(scene: str) -> None:
    training = recipe(scene).training
    epochs, batch = (300, 1024) if scene == "imagenet" else (200, 256)
    assert training.batch_size == batch
    assert training.steps * batch / EPOCH_IMAGES[scene] == pytest.approx(epochs, abs=0.2)
    assert isinstance(training.schedule, CosineSchedule)
    assert training.schedule.warmup * batch / EPOCH_IMAGES[scene] == pytest.approx(10, abs=0.2)
    assert (training.betas, training.weight_decay, training.clip) == ((0.9, 0.95), 0.05, 1.0)


@pytest.mark.parametrize("objective", ["ijepa", "simclr"])
def test_colour_jitter_is_the_published_one(objective: str) -> None:
    """None on smallNORB, which is grey; mild on nuScenes; pipeline A on ImageNet."""
    found = {scene: recipe(scene, objective).augmentation.pipelines for scene in STUDIED["paper"][1:]}
    assert found == {
        "smallnorb": ("plain",),
        "nuscenes-rear": ("mild",),
        "nuscenes-side": ("mild",),
        "imagenet": ("A",),
    }


def test_epoch_images_are_counted_without_held_out_states() -> None:
    assert EPOCH_IMAGES["smallnorb"] == 25 * 9 * 6 * 2
    assert EPOCH_IMAGES["rendered"] == round((1 - PLANS["paper"].held) * len(WORLDS["paper"].states()))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_published_scale_has_the_published_heads_and_momentum(name: str) -> None:
    objective = recipe("smallnorb", name).objective
    assert objective == PUBLISHED_OBJECTIVES[name] and type(objective) is type(OBJECTIVES[name])
    assert name == "ijepa" or objective != OBJECTIVES[name]
    if isinstance(objective, DINOConfig):
        assert objective.head == DINOHeadConfig(65536, 2048, 256) and objective.momentum == 0.996


def test_missing_scenes_lists_scenes_without_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenes = ["rendered", "driving", "nuscenes-rear"]
    monkeypatch.delenv("JEPATLAS_DATA", raising=False)
    assert missing_scenes(scenes) == ["driving", "nuscenes-rear"]
    (tmp_path / "nuscenes").mkdir()
    monkeypatch.setenv("JEPATLAS_DATA", str(tmp_path))
    assert missing_scenes(scenes) == ["driving"]


def test_held_out_loss_moves_images_to_the_device_of_the_objective() -> None:
    """The meta device stands for a GPU."""
    given = list[str]()

    def loss(batch: Crops, step: int) -> SimpleNamespace:
        given.append(batch.x.device.type)
        return SimpleNamespace(total=torch.ones(()))

    class Objective(SimpleNamespace):
        __call__ = staticmethod(loss)

    objective = Objective(
        targets=lambda x: (given.append(x.device.type), torch.rand(len(x), 4, 2))[1],
        parameters=lambda: iter([torch.empty(1, device="meta")]),
    )
    held_out_loss(objective, np.zeros((300, 2, 2, 3), np.uint8))
    assert given == ["meta"] * 4


def test_images_scored_to_choose_cameras_are_counted_as_forward_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    curious = CameraChoiceRecipe(agent(write_scenes(tmp_path / "scenes"), "left"), ("left", "right"), rounds=3)
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 6, "loss": 1.0}) + "\n")
    camera_images = read_camera_images(curious)
    found, chance = (
        training_cost(one, camera_images, tmp_path) for one in (curious, replace(curious, policy="random"))
    )
    x = torch.from_numpy(np.array(camera_images.seen.images[camera_images.learnt[:, 0]])).permute(0, 3, 1, 2)
    with counted_flops() as counter:
        build_vision(curious.agent, camera_images.seen).loss_per_image(Crops(x), 0)
    rounds_of_both_cameras = 2 * 2
    assert chance["looked"].value == 0 and found["looked"].value == rounds_of_both_cameras * len(x)
    assert found["flops"].value - chance["flops"].value == rounds_of_both_cameras * counter.get_total_flops() > 0


def test_swav_has_the_published_smoothness_only_at_the_published_scale() -> None:
    published = PUBLISHED_OBJECTIVES["swav"]
    assert isinstance(published, SwAVConfig) and published.smoothness == 0.05 and OBJECTIVES["swav"] == SwAVConfig()
