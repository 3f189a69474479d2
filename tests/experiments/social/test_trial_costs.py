"""Devices and costs of trials."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from workflows.vision.tiny_scenes import agent, write_scenes

from jepatlas.core.records import Crops
from jepatlas.experiments.social.loss_and_alignment import held_out_loss
from jepatlas.experiments.social.trained_agents import OBJECTIVES, PUBLISHED_OBJECTIVES
from jepatlas.experiments.social.viewpoint_trials import training_cost
from jepatlas.objectives.vision import SwAVConfig
from jepatlas.recipes import LookingRecipe, build_vision
from jepatlas.training.flops import counted_flops
from jepatlas.workflows.vision import read_camera_images


def test_held_out_images_go_where_the_network_is() -> None:
    """As on a GPU: a device that holds nothing stands for it."""
    given = list[str]()

    def told(batch: Crops, step: int) -> SimpleNamespace:
        given.append(batch.x.device.type)
        return SimpleNamespace(total=torch.ones(()))

    class Objective(SimpleNamespace):
        __call__ = staticmethod(told)

    objective = Objective(
        targets=lambda x: (given.append(x.device.type), torch.rand(len(x), 4, 2))[1],
        parameters=lambda: iter([torch.empty(1, device="meta")]),
    )
    held_out_loss(objective, np.zeros((300, 2, 2, 3), np.uint8))
    assert given == ["meta"] * 4


def test_what_was_looked_at_to_choose_is_counted_as_forward_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    curious = LookingRecipe(agent(write_scenes(tmp_path / "scenes"), "left"), ("left", "right"), rounds=3)
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 6, "loss": 1.0}) + "\n")
    sights = read_camera_images(curious)
    found, chance = (training_cost(one, sights, tmp_path) for one in (curious, replace(curious, policy="random")))
    x = torch.from_numpy(np.array(sights.seen.images[sights.learnt[:, 0]])).permute(0, 3, 1, 2)
    with counted_flops() as counter:
        build_vision(curious.agent, sights.seen).loss_per_image(Crops(x), 0)
    rounds_of_both_cameras = 2 * 2
    assert chance["looked"].value == 0 and found["looked"].value == rounds_of_both_cameras * len(x)
    assert found["flops"].value - chance["flops"].value == rounds_of_both_cameras * counter.get_total_flops() > 0


def test_swav_is_smooth_as_published_where_batches_are_large() -> None:
    published = PUBLISHED_OBJECTIVES["swav"]
    assert isinstance(published, SwAVConfig) and published.smoothness == 0.05 and OBJECTIVES["swav"] == SwAVConfig()
