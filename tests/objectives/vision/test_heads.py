"""Heads and batch normalisation in one process; `test_two_processes.py` tests two processes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from jepatlas.core.seeding import torch_generator
from jepatlas.objectives.vision.heads import JointBatchNorm, expander, perceptron, projector

ROWS, WIDTH = 12, 5


def rows(step: int = 0) -> Tensor:
    return 3 * torch.randn(ROWS, WIDTH, dtype=torch.float64, generator=torch_generator(0, "rows", step)) + 2


def pair(*, affine: bool = True) -> tuple[JointBatchNorm, nn.BatchNorm1d]:
    ours, theirs = JointBatchNorm(WIDTH, affine=affine).double(), nn.BatchNorm1d(WIDTH, affine=affine).double()
    if ours.scale is not None and ours.shift is not None:
        with torch.no_grad():
            theirs.weight.copy_(ours.scale.copy_(torch.linspace(0.5, 2, WIDTH)))
            theirs.bias.copy_(ours.shift.copy_(torch.linspace(-1, 1, WIDTH)))
    return ours, theirs


@pytest.mark.parametrize("affine", [True, False])
def test_normalisation_matches_torch(affine: bool):
    ours, theirs = pair(affine=affine)
    for step in range(3):
        x, y = rows(step).requires_grad_(), rows(step).requires_grad_()
        out, expected = ours(x), theirs(y)
        torch.testing.assert_close(out, expected)
        for value in (out, expected):
            value.pow(3).sum().backward()
        torch.testing.assert_close(x.grad, y.grad)
    for own, their in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(own.grad, their.grad)
    assert (ours.scale is None) == (not affine)


def test_running_statistics_match_torch():
    """Equal to torch except for the variance: ours is the biased one, torch keeps the unbiased one."""
    ours, theirs = pair()
    for step in range(3):
        ours(rows(step))
        theirs(rows(step))
    kept = theirs.running_mean, theirs.running_var
    assert kept[0] is not None and kept[1] is not None
    torch.testing.assert_close(ours.running_mean, kept[0])
    fresh = 0.9**3  # share of the initial variance, which is 1 for both
    torch.testing.assert_close(ours.running_variance - fresh, (kept[1] - fresh) * (ROWS - 1) / ROWS)
    theirs.running_var = ours.running_variance
    torch.testing.assert_close(ours.eval()(rows(7)), theirs.eval()(rows(7)))
    assert torch.equal(ours(rows(7)[:1]), ours(rows(7))[:1])  # row by row


def test_perceptron_layers():
    head = perceptron(WIDTH, 7, 6, 3)
    kinds = [type(layer) for layer in head]
    assert kinds == [nn.Linear, JointBatchNorm, nn.ReLU] * 2 + [nn.Linear]
    assert [layer.bias is None for layer in head if isinstance(layer, nn.Linear)] == [True, True, False]
    normal = perceptron(WIDTH, 7, 3, last_norm=True).double()
    assert len(list(normal[-1].parameters())) == 0 and normal[-2].bias is None
    z = normal(rows())
    torch.testing.assert_close(z.mean(0), torch.zeros(3).double(), rtol=0, atol=1e-12)
    torch.testing.assert_close(z.var(0, correction=0), torch.ones(3).double(), rtol=1e-2, atol=0)


def test_projector_layers():
    x = torch.randn(6, 4)
    assert projector(4, ()).forward(x) is x
    assert projector(4, (7, 3))(x).shape == (6, 3)
    assert projector(4, (3,))(x).shape == (6, 3)


def test_last_expander_layer_has_no_bias():
    for widths in [(3,), (7, 3), (7, 5, 3)]:
        head = expander(4, widths)
        last = list(head.children())[-1]
        assert isinstance(last, nn.Linear) and last.bias is None
        assert head(torch.randn(6, 4)).shape == (6, 3)
        assert (
            len(list(head.children())) == 3 * len(widths) - 2
        )  # layer, normalisation and ReLU, except after the last layer
