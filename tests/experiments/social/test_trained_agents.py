"""Published settings of the agents: objectives, heads and lengths of training."""

from __future__ import annotations

from pathlib import Path

import pytest

from jepatlas.core.config import from_plain
from jepatlas.experiments.engine.image_folder import missing_scenes
from jepatlas.experiments.social.scenes import STUDIED, WORLDS
from jepatlas.experiments.social.trained_agents import (
    EPOCH_IMAGES,
    OBJECTIVES,
    PLANS,
    PUBLISHED_OBJECTIVES,
    agent_trial,
)
from jepatlas.objectives.vision import DINOConfig, DINOHeadConfig
from jepatlas.recipes import VisionRecipe
from jepatlas.training import CosineSchedule


def recipe(scene: str, objective: str = "ijepa") -> VisionRecipe:
    return from_plain(VisionRecipe, agent_trial("paper", scene, 0, 0, objective).settings["recipe"])


@pytest.mark.parametrize("scene", STUDIED["paper"])
def test_epochs_are_the_published_ones_of_what_is_learned_from(scene: str) -> None:
    training = recipe(scene).training
    epochs, batch = (300, 1024) if scene == "imagenet" else (200, 256)
    assert training.batch_size == batch
    assert training.steps * batch / EPOCH_IMAGES[scene] == pytest.approx(epochs, abs=0.2)
    assert isinstance(training.schedule, CosineSchedule)
    assert training.schedule.warmup * batch / EPOCH_IMAGES[scene] == pytest.approx(10, abs=0.2)
    assert (training.betas, training.weight_decay, training.clip) == ((0.9, 0.95), 0.05, 1.0)


@pytest.mark.parametrize("objective", ["ijepa", "simclr"])
def test_colours_are_jittered_as_published(objective: str) -> None:
    """Not at all on smallNORB, which is grey; mildly in a drive; in two ways on ImageNet."""
    found = {scene: recipe(scene, objective).augmentation.pipelines for scene in STUDIED["paper"][1:]}
    assert found == {
        "smallnorb": ("plain",),
        "nuscenes-rear": ("mild",),
        "nuscenes-side": ("mild",),
        "imagenet": ("A",),
    }


def test_what_is_learned_from_is_counted() -> None:
    assert EPOCH_IMAGES["smallnorb"] == 25 * 9 * 6 * 2
    assert EPOCH_IMAGES["rendered"] == round((1 - PLANS["paper"].held) * len(WORLDS["paper"].states()))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_published_scale_has_the_published_heads_and_momentum(name: str) -> None:
    objective = recipe("smallnorb", name).objective
    assert objective == PUBLISHED_OBJECTIVES[name] and type(objective) is type(OBJECTIVES[name])
    assert name == "ijepa" or objective != OBJECTIVES[name]
    if isinstance(objective, DINOConfig):
        assert objective.head == DINOHeadConfig(65536, 2048, 256) and objective.momentum == 0.996


def test_scenes_whose_images_are_not_here_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenes = ["rendered", "driving", "nuscenes-rear"]
    monkeypatch.delenv("JEPATLAS_DATA", raising=False)
    assert missing_scenes(scenes) == ["driving", "nuscenes-rear"]
    (tmp_path / "nuscenes").mkdir()
    monkeypatch.setenv("JEPATLAS_DATA", str(tmp_path))
    assert missing_scenes(scenes) == ["driving"]
