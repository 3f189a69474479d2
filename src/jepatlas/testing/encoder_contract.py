"""Contract of encoders."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor, nn

from jepatlas.core.seeding import forked_rng
from jepatlas.testing.contract import check_rules, expect, round_trips

__all__ = ["ENCODER_RULES", "check_encoder"]

ROWS = 6
DIM = 4


class EncoderConfig(Protocol):
    """A configuration of an encoder; `in_shape` is a width, or (channels, height, width)."""

    def build(self, in_shape: Any, dim: int) -> nn.Module: ...


def check_encoder(config: EncoderConfig, in_shape: int | tuple[int, ...] = DIM, dim: int = DIM) -> None:
    """Check a configuration whose `build(in_shape, dim)` gives an encoder.

    `in_shape` is the width of vectors, or (channels, height, width) of images, and `dim` the width of the latents.
    """
    check_rules(config, [round_trips])
    check_rules(config, ENCODER_RULES, in_shape, dim)


def _build(config: EncoderConfig, in_shape: int | tuple[int, ...], dim: int, seed: int = 0) -> nn.Module:
    with forked_rng(seed, "encoder"):
        return config.build(in_shape, dim)


def _observations(in_shape: int | tuple[int, ...]) -> Tensor:
    shape = (in_shape,) if isinstance(in_shape, int) else in_shape
    return torch.rand(ROWS, *shape, generator=torch.Generator().manual_seed(0))


def gives_one_vector_per_row(config: EncoderConfig, in_shape: int | tuple[int, ...], dim: int) -> None:
    """(b, ...) → (b, dim), finite, and in evaluation mode independent of the other rows."""
    encoder = _build(config, in_shape, dim).eval()
    x = _observations(in_shape)
    h = encoder(x)
    expect(h.shape == (ROWS, dim), f"the latents of {ROWS} rows have the shape {tuple(h.shape)}, not ({ROWS}, {dim}).")
    expect(h.isfinite().all(), "latents are not finite.")
    torch.testing.assert_close(encoder(x[2:4]), h[2:4], rtol=1e-4, atol=1e-5)


def every_parameter_is_trained(config: EncoderConfig, in_shape: int | tuple[int, ...], dim: int) -> None:
    """Every parameter that requires a gradient gets a finite one."""
    encoder = _build(config, in_shape, dim)
    encoder(_observations(in_shape)).square().sum().backward()
    parameters = {name: p for name, p in encoder.named_parameters() if p.requires_grad}
    expect(parameters, "it has no parameter to train.")
    for name, parameter in parameters.items():
        expect(parameter.grad is not None, f"no gradient reaches {name}.")
        assert parameter.grad is not None
        expect(parameter.grad.isfinite().all(), f"the gradient of {name} is not finite.")


def weights_follow_from_the_seed(config: EncoderConfig, in_shape: int | tuple[int, ...], dim: int) -> None:
    """Initial weights are drawn from torch's generator, so that the seed of a recipe determines them."""
    first, again = (_build(config, in_shape, dim).state_dict() for _ in range(2))
    expect(first.keys() == again.keys(), "two builds have different parameters.")
    differing = [name for name, value in first.items() if not torch.equal(value, again[name])]
    expect(not differing, f"with equal seeds, {', '.join(differing)} differ.")


def loaded_state_gives_the_same_latents(config: EncoderConfig, in_shape: int | tuple[int, ...], dim: int) -> None:
    """All of the state is in `state_dict`."""
    first, other = (_build(config, in_shape, dim, seed).eval() for seed in (0, 1))
    other.load_state_dict(first.state_dict())
    x = _observations(in_shape)
    expect(torch.equal(first(x), other(x)), "latents differ after loading.")


ENCODER_RULES = (
    gives_one_vector_per_row,
    every_parameter_is_trained,
    weights_follow_from_the_seed,
    loaded_state_gives_the_same_latents,
)
