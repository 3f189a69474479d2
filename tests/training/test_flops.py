"""Operations per step against counts by hand, for one linear layer and a vision transformer."""

from __future__ import annotations

import torch
from torch import nn

from jepatlas.core.records import Crops, Loss
from jepatlas.nn import ViTConfig
from jepatlas.training.flops import step_flops
from jepatlas.workflows.vision import encoding_flops


class OneLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(5, 7, bias=False), nn.BatchNorm1d(7)

    def forward(self, batch: Crops, step: int) -> Loss:
        return Loss(self.norm(self.layer(batch.x)).square().sum())


def test_forward_and_backward_products_are_counted_without_side_effects() -> None:
    objective, x = OneLayer(), torch.randn(11, 5)
    before = {name: value.clone() for name, value in objective.state_dict().items()}
    forward = 2 * 11 * 5 * 7
    assert (
        step_flops(objective, lambda step: Crops(x)) == 2 * forward
    )  # x needs no gradient: one product forward and one backward
    assert step_flops(objective, lambda step: Crops(x), accumulate=3) == 6 * forward
    assert all((value == before[name]).all() for name, value in objective.state_dict().items())
    assert all(parameter.grad is None for parameter in objective.parameters())


def test_network_is_moved_to_the_device_of_its_batches() -> None:
    """The meta device stands for a GPU that produces the crops."""
    objective, x = OneLayer(), torch.empty(11, 5, device="meta")
    assert step_flops(objective, lambda step: Crops(x)) == step_flops(objective, lambda step: Crops(torch.randn(11, 5)))
    assert next(objective.parameters()).device.type == "cpu"


class Squares(nn.Module):
    """Squared latents of a vision transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = ViTConfig(patch=4, width=16, depth=2, heads=2, mlp_ratio=3.0).build((3, 12, 12))

    def forward(self, batch: Crops, step: int) -> Loss:
        return Loss(self.encode(batch.x).square().sum())


def product(m: int, n: int, k: int) -> int:
    return 2 * m * n * k


def test_products_of_a_vision_transformer_include_attention() -> None:
    images, patches, tokens, width, heads, hidden = 5, 9, 10, 16, 2, 48
    embedding = product(images * patches, width, 3 * 4 * 4)
    block = (
        product(images * tokens, 3 * width, width)  # q, k and v
        + images * heads * product(tokens, tokens, width // heads)  # Q Kᵀ
        + images * heads * product(tokens, width // heads, tokens)  # A V
        + product(images * tokens, width, width)
        + product(images * tokens, hidden, width)
        + product(images * tokens, width, hidden)
    )
    assert encoding_flops(Squares(), 12, images) == embedding + 2 * block
    # backward takes two products each; the embedding one, because pixels need no gradient
    step = step_flops(Squares(), lambda step: Crops(torch.rand(images, 3, 12, 12)))
    assert step == 2 * embedding + 3 * 2 * block
