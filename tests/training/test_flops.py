"""Operations of a step, counted by hand for a network of one layer."""

from __future__ import annotations

import torch
from torch import nn

from jepatlas.base.records import Crops, Loss
from jepatlas.training.flops import step_flops


class OneLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(5, 7, bias=False), nn.BatchNorm1d(7)

    def forward(self, batch: Crops, step: int) -> Loss:
        return Loss(self.norm(self.layer(batch.x)).square().sum())


def test_products_forwards_and_backwards_are_counted_and_nothing_changes() -> None:
    objective, x = OneLayer(), torch.randn(11, 5)
    before = {name: value.clone() for name, value in objective.state_dict().items()}
    forward = 2 * 11 * 5 * 7
    assert step_flops(objective, lambda step: Crops(x)) == 2 * forward  # x needs no gradient: one product each way
    assert step_flops(objective, lambda step: Crops(x), accumulate=3) == 6 * forward
    assert all((value == before[name]).all() for name, value in objective.state_dict().items())
    assert all(parameter.grad is None for parameter in objective.parameters())
