"""The contract of all mixings, and properties of each mixing."""

import math
import re
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.worlds import AnyMixing, Coupling, InvertibleMLP, Lift, ParabolicShear, SinusoidalShear, Spiral

DIMS = (1, 2, 3, 4, 7)
VOLUME_PRESERVING = [Spiral(), SinusoidalShear(), ParabolicShear(), Coupling(), Coupling(layers=3, seed=4)]
EVERY_CLASS = get_args(AnyMixing)


def mixings(dim: int) -> list[AnyMixing]:
    """The mixings under test that accept states of this width."""
    variants = [Spiral(twist=-2.0), Coupling(3, "affine", seed=1), InvertibleMLP(1), InvertibleMLP(5, 0.5, seed=2)]
    lifts = [Lift(dim, dim), Lift(2 * dim + 3, dim, seed=3)]
    return [m for m in (*(cls() for cls in EVERY_CLASS if cls is not Lift), *variants, *lifts) if takes(m, dim)]


def takes(mixing: AnyMixing, dim: int) -> bool:
    try:
        mixing.observed_dim(dim)
    except InputError:
        return False
    return True


def states(dim: int, count: int = 30, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


CASES = [pytest.param(mixing, dim, id=f"{dim}-{mixing!r}") for dim in DIMS for mixing in mixings(dim)]
# No deadline: the first example builds the weights.
examples = settings(deadline=None, max_examples=25)
every_mixing = pytest.mark.parametrize(("mixing", "dim"), CASES)


def test_the_cases_cover_every_class():
    assert {type(case.values[0]) for case in CASES} == set(EVERY_CLASS)


@every_mixing
@examples
@given(seed=st.integers(0, 10_000), dtype=st.sampled_from([torch.float32, torch.float64]), scale=st.floats(0, 3))
def test_inverse_undoes_the_mixing(mixing: AnyMixing, dim: int, seed: int, dtype: torch.dtype, scale: float):
    z = (scale * states(dim, seed=seed)).to(dtype)
    x = mixing(z)
    assert x.shape == (len(z), mixing.observed_dim(dim)) and x.dtype == dtype
    # 2·8 layers amplify rounding; the bound is far below anything a learner could see.
    torch.testing.assert_close(mixing.inverse(x), z, atol=5e-3 if dtype == torch.float32 else 1e-9, rtol=0)


@every_mixing
def test_equal_mixings_agree_and_gradients_flow(mixing: AnyMixing, dim: int):
    z = states(dim).requires_grad_()
    with torch.inference_mode():
        first = type(mixing)(**vars(mixing))(states(dim))
    x = mixing(z)
    assert torch.equal(first, x)
    x.square().sum().backward()
    assert z.grad is not None and z.grad.isfinite().all()


@pytest.mark.parametrize("cls", [cls for cls in EVERY_CLASS if "seed" in cls.__dataclass_fields__])
def test_weights_follow_the_seed(cls: type):
    z = states(2)
    assert torch.equal(cls(seed=1)(z), cls(seed=1)(z))
    assert not torch.allclose(cls(seed=1)(z), cls(seed=2)(z))


def test_weights_created_inside_a_transform_can_be_reused():
    for mixing in (Coupling(seed=101), InvertibleMLP(seed=101), Lift(seed=101)):
        z = states(2).requires_grad_()
        transformed = torch.vmap(torch.func.jacrev(mixing))(z.detach())
        plain = torch.stack([torch.autograd.functional.jacobian(mixing, row) for row in z])  # pyright: ignore
        torch.testing.assert_close(transformed, plain)


@pytest.mark.parametrize("cls", EVERY_CLASS)
def test_kind_is_kebab_case(cls: type[AnyMixing]):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", cls.kind)


def volumes(mixing: AnyMixing, dim: int) -> torch.Tensor:
    jacobian = torch.vmap(torch.func.jacrev(lambda z: mixing(z[None])[0]))(states(dim))
    return torch.linalg.det(jacobian).abs()


@pytest.mark.parametrize("mixing", VOLUME_PRESERVING, ids=repr)
@pytest.mark.parametrize("dim", [2, 5])
def test_volume_preserving_mixings_preserve_volume(mixing: AnyMixing, dim: int):
    if takes(mixing, dim):
        torch.testing.assert_close(volumes(mixing, dim), torch.ones(30, dtype=torch.float64))


@pytest.mark.parametrize("mixing", [Coupling(form="affine"), InvertibleMLP()], ids=repr)
@pytest.mark.parametrize("dim", [2, 5])
def test_other_mixings_change_volume(mixing: AnyMixing, dim: int):
    log_volume = volumes(mixing, dim).log()
    assert log_volume.std() > 0.05 and log_volume.abs().mean() > 0.1


def test_spiral_is_a_rotation_of_the_complex_plane():
    z = states(2).numpy()
    plane = z[:, 0] + 1j * z[:, 1]
    expected = plane * np.exp(1j * math.pi * np.abs(plane))
    x = Spiral()(torch.from_numpy(z)).numpy()
    np.testing.assert_allclose(x[:, 0] + 1j * x[:, 1], expected, atol=1e-12)


def test_shears_by_their_formulas():
    z = states(2).numpy()
    sine, square = SinusoidalShear()(torch.from_numpy(z)).numpy(), ParabolicShear()(torch.from_numpy(z)).numpy()
    np.testing.assert_allclose(sine, np.c_[z[:, 0] + np.sin(1.5 * z[:, 1]), z[:, 1]])
    np.testing.assert_allclose(square, np.c_[z[:, 0], z[:, 1] + z[:, 0] ** 2])


def test_one_additive_layer_against_its_formula():
    z = states(4)
    x = Coupling(layers=1)(z)
    assert torch.equal(x[:, :2], z[:, :2])
    pushed = torch.atanh(x[:, 2:] - z[:, 2:])
    torch.testing.assert_close(pushed.norm(dim=1), 2 * z[:, :2].norm(dim=1))


@pytest.mark.parametrize("dim", [2, 6])
def test_invertible_mlp_layers_are_well_conditioned_but_not_orthogonal(dim: int):
    weight = torch.func.jacrev(InvertibleMLP(1))(torch.zeros(dim, dtype=torch.float64))
    values = torch.linalg.svdvals(weight)  # pyright: ignore[reportArgumentType]
    assert values.min() >= 0.5 - 1e-12 and values.max() <= 2 + 1e-12 and values.max() / values.min() > 1.05


@examples
@given(seed=st.integers(0, 10_000), dim=st.integers(1, 5), extra=st.integers(0, 6))
def test_lift_is_injective_with_its_lipschitz_bound(seed: int, dim: int, extra: int):
    lift = Lift(dim + extra, seed=seed % 5)
    first, second = states(dim, seed=seed), states(dim, seed=seed + 1)
    # The smallest singular values multiply: 1/2 of B, the slope of σ, 1 of A.
    least = 0.5 * lift.slope * (first - second).norm(dim=1)
    assert ((lift(first) - lift(second)).norm(dim=1) >= least - 1e-12).all()


def test_lift_is_nonlinear():
    assert torch.linalg.matrix_rank(Lift(observed=6)(states(2, count=200))) == 6


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Spiral().observed_dim(3), "'spiral'.*dim is 3"),
        (lambda: Spiral()(states(3)), "dim is 3"),
        (lambda: SinusoidalShear().observed_dim(1), "'sinusoidal-shear'.*dim is 1"),
        (lambda: ParabolicShear().inverse(states(4)), "dim is 4"),
        (lambda: Spiral(twist=math.nan), "twist is nan"),
        (lambda: Coupling().observed_dim(1), "dim is 1"),
        (lambda: Coupling(layers=0), "layers is 0"),
        (lambda: Coupling(form="linear"), "form is 'linear'"),  # pyright: ignore[reportArgumentType]
        (lambda: InvertibleMLP(slope=0.0), r"slope is 0\.0"),
        (lambda: Lift(observed=2).observed_dim(3), "observed is 2.*3"),
        (lambda: Lift(observed=2, dim=3), "observed is 2"),
        (lambda: Lift(dim=2)(states(3)), "2.*3"),
        (lambda: Lift().inverse(states(8)), r"Lift\(dim=\.\.\.\)"),
        (lambda: Lift(dim=2).inverse(states(5)), "observed = 8"),
    ],
)
def test_invalid_arguments_are_refused(build, message: str):
    with pytest.raises(InputError, match=message):
        build()
