"""Embedding crops of several sizes."""

import pytest
import torch
from objectives.vision.tiny_crops import on_crops
from objectives.vision.tiny_vision import crops
from torch import nn

from jepatlas.core.errors import InputError
from jepatlas.objectives.vision.crop_objective import embed_crops
from jepatlas.objectives.vision.joint_embedding_configs import CropLeJEPAConfig


def test_one_encoder_pass_per_crop_size_and_one_head_pass():
    objective = on_crops(CropLeJEPAConfig(projector=()))
    seen = {"encoder": [], "head": []}
    head = nn.Linear(8, 3)
    objective.encoder.register_forward_pre_hook(lambda _, x: seen["encoder"].append(tuple(x[0].shape)))
    head.register_forward_pre_hook(lambda _, x: seen["head"].append(tuple(x[0].shape)))
    first, second, third, _ = crops(5).all
    embedded = embed_crops(objective, head, (first, third, second))
    assert seen == {"encoder": [(5, 3, 16, 16), (5, 3, 8, 8), (5, 3, 16, 16)], "head": [(15, 8)]}
    seen["encoder"].clear()
    embed_crops(objective, head, (first, second, third))
    assert seen["encoder"] == [(10, 3, 16, 16), (5, 3, 8, 8)]
    for crop, z in zip((first, third, second), embedded, strict=True):
        torch.testing.assert_close(z, head(objective.encode(crop)))


def test_crops_must_have_equal_batch_sizes():
    objective = on_crops(CropLeJEPAConfig(projector=()))
    x = crops(5).x
    with pytest.raises(InputError, match=r"2.*\[3,.*5\].*images"):
        embed_crops(objective, nn.Identity(), (x, x[:3]))
