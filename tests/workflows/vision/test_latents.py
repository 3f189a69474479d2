"""Latents of an image table from any encoder, with the labels and groups of their states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from workflows.vision.tiny_scenes import SIZE, write_scenes

from jepatlas.cli import main
from jepatlas.core.arrays import write_arrays
from jepatlas.data.images import MultiViewTable, decode
from jepatlas.workflows.vision import latents_by


class Colours(nn.Module):
    """Weighted means of an image's colours, with dropout in training mode."""

    def __init__(self) -> None:
        super().__init__()
        self.weights, self.chance = nn.Linear(3, 2), nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.chance(self.weights(x.mean((2, 3))))


def test_custom_encoder_gives_latents_accepted_by_align(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    table = MultiViewTable.read(write_scenes(tmp_path / "scenes", groups=8))
    seen, encoder = decode(table, (SIZE, SIZE)), Colours()
    for view in ("left", "right"):
        arrays = latents_by(encoder, seen, view)
        rows = table.rows_of_view(view)
        means = seen.images[rows].mean((1, 2)) / 255
        weight, bias = (parameter.detach().numpy() for parameter in encoder.weights.parameters())
        np.testing.assert_allclose(arrays["h"], means @ weight.T + bias, rtol=1e-4, atol=1e-5)
        for name, column in (("ids", "state"), ("groups", "group"), ("labels", "label")):
            np.testing.assert_array_equal(arrays[name], table.column(column)[rows])
        assert arrays["raw"].shape == (32, SIZE, SIZE, 3) and encoder.training
        write_arrays(tmp_path / f"{view}.npz", arrays)
    assert len(latents_by(encoder, seen)["h"]) == 64
    words = ["align", "left.npz", "right.npz", "--permutations", "19", "--out", "aligned"]
    monkeypatch.chdir(tmp_path)
    assert main(words) == 0 and (tmp_path / "aligned" / "report.html").exists()
