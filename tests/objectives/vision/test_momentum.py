import itertools

import pytest
import torch
from torch import nn

from jepatlas.core.errors import InputError
from jepatlas.objectives.vision.heads import perceptron
from jepatlas.objectives.vision.momentum import MomentumTwin, check_momentum, momentum_at


def test_the_twin_is_a_copy_without_gradients():
    network = nn.Linear(3, 2)
    twin = MomentumTwin(network)
    assert network.weight.requires_grad and not any(p.requires_grad for p in twin.parameters())
    weight, _ = twin.parameters()
    assert torch.equal(weight, network.weight)
    with torch.no_grad():
        network.weight.add_(1)
    assert not torch.equal(weight, network.weight)


def test_weights_follow_geometrically_and_statistics_at_once():
    network = perceptron(3, 4, 2)
    twin = MomentumTwin(network)
    start = [p.clone() for p in twin.parameters()]
    with torch.no_grad():
        for p in network.parameters():
            p.add_(torch.randn_like(p))
    network(torch.randn(8, 3))
    for _ in range(5):
        twin.follow(network, 0.9)
    for slow, first, fast in zip(twin.parameters(), start, network.parameters(), strict=True):
        torch.testing.assert_close(slow, 0.9**5 * first + (1 - 0.9**5) * fast.detach())
    for own, theirs in zip(twin.buffers(), network.buffers(), strict=True):
        assert torch.equal(own, theirs)
    assert any(buffer.abs().sum() > 0 for buffer in twin.buffers())


def test_momentum_ends():
    """1 leaves the twin where it is, 0 makes it the network; the schedule rises from its first value to 1."""
    network, twin = nn.Linear(3, 2), MomentumTwin(nn.Linear(3, 2))
    weight, _ = twin.parameters()
    before = weight.clone()
    twin.follow(network, 1.0)
    assert torch.equal(weight, before)
    twin.follow(network, 0.0)
    torch.testing.assert_close(weight, network.weight, rtol=0, atol=1e-7)
    values = [momentum_at(0.99, step, 50) for step in range(70)]
    assert values[0] == 0.99 and values[25] == pytest.approx(0.995) and set(values[50:]) == {1.0}
    assert all(a < b for a, b in itertools.pairwise(values[:51]))


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_refused(wrong: float):
    with pytest.raises(InputError, match=f"BYOL's momentum.*{wrong}"):
        check_momentum("BYOL", wrong)
