"""Convolutional encoder: normalisations, image sizes, and byte inputs."""

import pytest
import torch

from jepatlas.core.errors import InputError
from jepatlas.nn import ConvConfig


def pictures(count: int = 6, size: int = 64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, 3, size, size), generator=generator, dtype=torch.uint8)


@pytest.mark.parametrize("norm", ["batch", "group", "none"])
@pytest.mark.parametrize("size", [64, 33])
def test_output_shape_and_gradients_of_all_weights(norm, size):
    encoder = ConvConfig(channels=(8, 16), hidden=12, norm=norm).build((3, size, size), 5)
    h = encoder(pictures(size=size))
    assert h.shape == (6, 5)
    h.square().sum().backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in encoder.parameters())


def test_bytes_are_centred():
    encoder = ConvConfig(norm="none").build((3, 64, 64), 2)
    x = pictures()
    assert torch.equal(encoder(x), encoder(x.float() / 255 - 0.5))


def test_only_batch_norm_couples_rows():
    x = pictures(8)
    for config, alone in (
        (ConvConfig(channels=(8, 16), norm="group"), True),
        (ConvConfig(channels=(8, 16), norm="none"), True),
        (ConvConfig(channels=(8, 16), norm="batch"), False),
    ):
        encoder = config.build((3, 64, 64), 2).train()
        assert torch.allclose(encoder(x)[:2], encoder(x[:2]), atol=1e-5) == alone


def test_position_of_a_dot_is_linearly_decodable():
    """Features are flattened, not pooled: a linear map of untrained features recovers the position of a dot."""
    place = torch.randint(8, 56, (300, 2), generator=torch.Generator().manual_seed(1))
    x = torch.zeros(300, 3, 64, 64)
    for row, (i, j) in enumerate(place.tolist()):
        x[row, :, i - 3 : i + 3, j - 3 : j + 3] = 1
    torch.manual_seed(0)
    h = ConvConfig(norm="none").build((3, 64, 64), 4).features(x).detach()
    h = torch.cat([h, torch.ones(300, 1)], 1).double()
    weights = torch.linalg.solve(h[:200].T @ h[:200] + 1e-4 * torch.eye(h.shape[1]), h[:200].T @ place[:200].double())
    error = (h[200:] @ weights - place[200:]).abs().mean()
    assert error < 5, "predicting the centre has an error of 12"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"channels": ()}, "channels"),
        ({"hidden": 0}, "hidden.*0"),
        ({"channels": (12,), "norm": "group"}, "multiples of 8"),
        ({"norm": "bathc"}, "norm"),
    ],
)
def test_invalid_settings_are_rejected(config, message):
    with pytest.raises(InputError, match=message):
        ConvConfig(**config)


def test_inputs_that_are_not_images_are_rejected():
    with pytest.raises(InputError, match="channels, height, width"):
        ConvConfig().build((64, 64), 2)
