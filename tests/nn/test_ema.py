import itertools

import pytest
import torch
from torch import nn

from jepatlas.core.errors import InputError
from jepatlas.nn.ema import EMANetwork, momentum_at
from jepatlas.nn.network_configs import check_momentum
from jepatlas.objectives.vision.heads import perceptron


def test_copy_receives_no_gradients():
    network = nn.Linear(3, 2)
    average = EMANetwork(network)
    assert network.weight.requires_grad and not any(p.requires_grad for p in average.parameters())
    weight, _ = average.parameters()
    assert torch.equal(weight, network.weight)
    with torch.no_grad():
        network.weight.add_(1)
    assert not torch.equal(weight, network.weight)


def test_weights_decay_geometrically_and_buffers_are_copied():
    network = perceptron(3, 4, 2)
    average = EMANetwork(network)
    start = [p.clone() for p in average.parameters()]
    with torch.no_grad():
        for p in network.parameters():
            p.add_(torch.randn_like(p))
    network(torch.randn(8, 3))
    for _ in range(5):
        average.update(network, 0.9)
    for slow, first, fast in zip(average.parameters(), start, network.parameters(), strict=True):
        torch.testing.assert_close(slow, 0.9**5 * first + (1 - 0.9**5) * fast.detach())
    for own, theirs in zip(average.buffers(), network.buffers(), strict=True):
        assert torch.equal(own, theirs)
    assert any(buffer.abs().sum() > 0 for buffer in average.buffers())


def test_momentum_limits_and_schedule():
    """Momentum 1 keeps the copy, momentum 0 replaces it; the schedule rises from its first value to 1."""
    network, average = nn.Linear(3, 2), EMANetwork(nn.Linear(3, 2))
    weight, _ = average.parameters()
    before = weight.clone()
    average.update(network, 1.0)
    assert torch.equal(weight, before)
    average.update(network, 0.0)
    torch.testing.assert_close(weight, network.weight, rtol=0, atol=1e-7)
    values = [momentum_at(0.99, step, 50) for step in range(70)]
    assert values[0] == 0.99 and values[25] == pytest.approx(0.995) and set(values[50:]) == {1.0}
    assert all(a < b for a, b in itertools.pairwise(values[:51]))


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_momentum_outside_unit_interval_is_rejected(wrong: float):
    with pytest.raises(InputError, match=f"BYOL's momentum.*{wrong}"):
        check_momentum("BYOL", wrong)
