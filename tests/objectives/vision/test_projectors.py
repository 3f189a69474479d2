import torch
from torch import nn

from jepatlas.objectives.vision.heads import expander, projector


def test_projector():
    x = torch.randn(6, 4)
    assert projector(4, ()).forward(x) is x
    assert projector(4, (7, 3))(x).shape == (6, 3)
    assert projector(4, (3,))(x).shape == (6, 3)


def test_an_expander_has_no_bias_at_its_end():
    for widths in [(3,), (7, 3), (7, 5, 3)]:
        head = expander(4, widths)
        last = list(head.children())[-1]
        assert isinstance(last, nn.Linear) and last.bias is None
        assert head(torch.randn(6, 4)).shape == (6, 3)
        assert len(list(head.children())) == 3 * len(widths) - 2  # layer, normalisation and ReLU, but for the last
