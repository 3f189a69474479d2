"""Coupling encoder: inverts the coupling mixing, and preserves volume in its additive form."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import forked_rng
from jepatlas.nn import CouplingConfig, CouplingEncoder
from jepatlas.nn.mlp import mlp
from jepatlas.worlds import Coupling
from jepatlas.worlds.coupling_mixing import coupling_weights

Form = Literal["additive", "affine"]
FORMS: tuple[Form, ...] = ("additive", "affine")


def states(dim: int, count: int = 40) -> Tensor:
    return torch.randn(count, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def matched(mixing: Coupling, dim: int) -> CouplingEncoder:
    """The encoder with the mixing's own weights, last layer first."""
    encoder = CouplingEncoder(dim, mixing.layers, mixing.form).double()
    layers = coupling_weights(mixing.layers, mixing.seed, dim, torch.float64, torch.device("cpu"))
    for index, (shift, stretch) in enumerate(reversed(layers)):
        with torch.no_grad():
            weights = [encoder.shift[index].weight, *(scale.weight for scale in list(encoder.scale)[index : index + 1])]
            for ours, theirs in zip(weights, (shift, stretch), strict=False):
                assert isinstance(ours, Tensor) and ours.shape == theirs.shape
                ours.copy_(theirs)
    return encoder


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layers", [1, 2, 3, 8])
@pytest.mark.parametrize("dim", [2, 3, 4, 7])
def test_encoder_with_the_mixing_weights_inverts_the_mixing(form: Form, layers: int, dim: int):
    mixing = Coupling(layers, form, seed=dim)
    z = states(dim)
    x = mixing(z)
    h = matched(mixing, dim)(x)
    torch.testing.assert_close(h, z, atol=1e-9, rtol=0)
    torch.testing.assert_close(h, mixing.inverse(x), atol=1e-11, rtol=0)
    assert (x - z).abs().max() > 0.1  # the mixing is not the identity


@pytest.mark.parametrize("form", FORMS)
def test_parameter_count_equals_that_of_the_mixing(form: Form):
    encoder = CouplingEncoder(5, 3, form)
    per_layer = 2 * 3 * (1 if form == "additive" else 2)
    assert sum(p.numel() for p in encoder.parameters()) == 3 * per_layer


def log_volumes(network: nn.Module, dim: int) -> Tensor:
    jacobians = torch.vmap(torch.func.jacrev(lambda x: network(x[None])[0]))(states(dim))
    return torch.linalg.slogdet(jacobians).logabsdet


def with_large_weights(network: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(4)
    return network.double()


@pytest.mark.parametrize("dim", [2, 5])
def test_only_additive_coupling_preserves_volume(dim: int):
    with forked_rng(0, "encoder"):
        additive, affine, plain = (
            with_large_weights(network)
            for network in (CouplingEncoder(dim), CouplingEncoder(dim, form="affine"), mlp(dim, dim, 16, 2))
        )
    assert log_volumes(additive, dim).abs().max() < 1e-10
    assert log_volumes(affine, dim).abs().max() > 0.05
    assert log_volumes(plain, dim).abs().max() > 0.05


@pytest.mark.parametrize("form", FORMS)
def test_all_weights_have_gradients(form: Form):
    encoder = CouplingConfig(4, form).build(5, 5)
    encoder(states(5).float()).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in encoder.parameters())


def test_invalid_settings_are_rejected():
    with pytest.raises(InputError, match=r"3.*2"):
        CouplingConfig().build(3, 2)
    with pytest.raises(InputError, match=" 1 and 8"):
        CouplingConfig().build(1, 1)
    with pytest.raises(InputError, match=" 4 and 0"):
        CouplingConfig(layers=0).build(4, 4)
    with pytest.raises(InputError, match="'linear'"):
        CouplingEncoder(4, form="linear")  # pyright: ignore[reportArgumentType]
