"""Exported encoders give the same latents in onnxruntime, and as torch.export programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from training.small import call, recipe

import jepatlas as ja
from jepatlas.core.errors import InputError
from jepatlas.nn import ConvConfig, MLPConfig, ViTConfig
from jepatlas.recipes import PairsRecipe
from jepatlas.training import TrainingConfig

IMAGES = torch.randint(0, 256, (7, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
ENCODERS: dict[str, tuple[nn.Module, Tensor]] = {
    "mlp": (MLPConfig(8, 1).build(3, 2), torch.linspace(-2, 2, 21).reshape(7, 3)),
    "conv": (ConvConfig((8, 8), 16).build((3, 32, 32), 4), IMAGES),
    "vit": (ViTConfig(8, 32, 2, 2).build((3, 32, 32)), IMAGES),
}


def run_onnx(path: Path, x: Tensor) -> np.ndarray:
    session = onnxruntime.InferenceSession(path)
    return np.asarray(session.run(["h"], {"x": x.numpy()})[0])


@pytest.mark.parametrize("name", ENCODERS)
def test_onnxruntime_gives_the_same_latents_for_any_number_of_rows(name: str, tmp_path: Path):
    encoder, x = ENCODERS[name]
    path = ja.export(encoder, tmp_path / "encoder.onnx", example=x[:2])
    encoder.eval()
    for rows in (1, 2, 7):
        wanted = encoder(x[:rows]).detach().numpy()
        np.testing.assert_allclose(run_onnx(path, x[:rows]), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ENCODERS)
def test_an_exported_program_gives_the_same_latents(name: str, tmp_path: Path):
    encoder, x = ENCODERS[name]
    path = ja.export(encoder, str(tmp_path / "encoder.pt2"), example=x[:2].numpy())
    torch.testing.assert_close(torch.export.load(path).module()(x), encoder.eval()(x))


def test_the_module_is_left_as_it_was(tmp_path: Path):
    encoder = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).train()
    ja.export(encoder, tmp_path / "encoder.pt2", example=torch.zeros(2, 3))
    assert encoder.training and encoder[1].training
    assert int(encoder[1].num_batches_tracked) == 0


def test_the_command_line_exports_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    ja.train(recipe(steps=3), "run")
    x = torch.linspace(-1, 1, 10).reshape(5, 2)
    assert call("export", "run", "--out", "mine.onnx") == 0
    np.testing.assert_allclose(run_onnx(Path("mine.onnx"), x), ja.encode("run", x), atol=1e-5)


def test_runs_on_images_of_ones_own_are_exported_for_pixels(tmp_path: Path):
    training = TrainingConfig(steps=2, batch_size=16)
    own = PairsRecipe(encoder=ConvConfig((8, 8), 16), latent_dim=2, training=training)
    images = IMAGES.repeat(10, 1, 1, 1)
    run = ja.train(own, tmp_path / "run", data=(images, images.flip(3)))
    path = run.export(tmp_path / "encoder.pt2")
    found = torch.export.load(path).module()(IMAGES)
    np.testing.assert_allclose(found.detach().numpy(), ja.load(run.folder).encode(IMAGES).detach(), atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((nn.Linear(3, 2), "encoder.pth", torch.zeros(2, 3)), r"encoder\.pth.*\.onnx"),
        ((nn.Linear(3, 2), "encoder.onnx"), "'example' is missing"),
        ((nn.Linear(3, 2), "encoder.pt2", torch.zeros(2, 4)), "torch.export.*Linear"),
        (("nowhere", "encoder.pt2"), "nowhere"),
    ],
)
def test_unusable_arguments_are_refused(
    arguments: tuple[Any, ...], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=complaint):
        ja.export(*arguments)
    assert not list(tmp_path.iterdir())
