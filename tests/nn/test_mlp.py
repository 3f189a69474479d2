"""The MLP against its equation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.special import erf
from torch import nn

from jepatlas.core.errors import InputError
from jepatlas.nn import MLPConfig
from jepatlas.nn.mlp import mlp


@pytest.mark.parametrize(("width", "depth"), [(256, 4), (7, 1), (5, 0)])
def test_shapes(width: int, depth: int):
    network = MLPConfig(width, depth).build(3, 6)
    linear = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    widths = [3, *[width] * depth, 6]
    assert [(layer.in_features, layer.out_features) for layer in linear] == list(itertools.pairwise(widths))
    assert network(torch.zeros(4, 3)).shape == (4, 6)


def test_value():
    network = mlp(3, 2, width=5, depth=2).double()
    x = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    h = x.numpy()
    linear = [layer for layer in network if isinstance(layer, nn.Linear)]
    for i, layer in enumerate(linear):
        assert layer.bias is not None
        h = h @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
        h = h * (1 + erf(h / math.sqrt(2))) / 2 if i < 2 else h
    np.testing.assert_allclose(network(x).detach().numpy(), h, rtol=1e-10)


def test_depth_zero_is_linear():
    assert [type(layer) for layer in mlp(2, 3, depth=0)] == [nn.Linear]


@pytest.mark.parametrize(("width", "depth"), [(0, 1), (4, -1)])
def test_invalid_settings_are_rejected(width: int, depth: int):
    with pytest.raises(InputError, match=r"width|depth"):
        MLPConfig(width, depth)
