"""The deep norm: its network by hand, and the properties that make it a norm."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from jepatlas.core.seeding import forked_rng, torch_generator
from jepatlas.energy.heads import DeepNorm, DeepNormConfig


def build(layers: int) -> DeepNorm:
    with forked_rng(0, "head"):
        return DeepNorm(5, DeepNormConfig(units=7, layers=layers, alpha=0.3, learn_alpha=False)).double()


@pytest.mark.parametrize("layers", [1, 3])
def test_the_energy_matches_its_definition(layers: int):
    head = build(layers)
    skips = [skip.detach().numpy() for skip in head.skips]
    weights = [np.log1p(np.exp(raw.detach().numpy())) / 7 for raw in head.raw_weights]
    assert len(skips) == layers and len(weights) == layers - 1
    x, y = torch.randn(2, 15, 5, dtype=torch.float64, generator=torch_generator(0, "points"))
    for u, v, energy in zip(x.numpy(), y.numpy(), head(x, y).detach(), strict=True):
        h = np.zeros(7)
        for layer, skip in enumerate(skips):
            h = np.maximum(skip @ (v - u) + (weights[layer - 1] @ h if layer else 0), 0)
        assert float(energy) == pytest.approx(0.3 * h.max() + 0.7 * h.mean(), rel=1e-12)


def test_the_norm_is_convex_and_positively_homogeneous():
    head = build(3)
    a, b = torch.randn(2, 200, 5, dtype=torch.float64, generator=torch_generator(0, "steps"))
    zero = torch.zeros(5, dtype=torch.float64)
    for scale in (1e-20, 0.5, 1e20):
        torch.testing.assert_close(head(zero, scale * a), scale * head(zero, a), rtol=1e-12, atol=0)
    assert (head(zero, (a + b) / 2) <= (head(zero, a) + head(zero, b)) / 2 + 1e-12).all()


def test_the_energy_is_translation_invariant():
    head = build(2)
    x, y, shift = torch.randn(3, 20, 5, dtype=torch.float64, generator=torch_generator(0, "points"))
    torch.testing.assert_close(head(x, y), head(x + shift, y + shift))
