"""Contract of energy heads: declared properties hold, and no input gives NaN."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.errors import InputError
from jepatlas.core.seeding import forked_rng, torch_generator
from jepatlas.energy.heads import (
    HEADS,
    CosineConfig,
    DeepNormConfig,
    EnergyHead,
    IQEConfig,
    L2Config,
    MRNConfig,
    PQEConfig,
    ReluSumConfig,
    SquaredL2Config,
)

WIDTH = 12
# Add new heads here.
CONFIGS = [
    IQEConfig(chunks=3),
    IQEConfig(chunks=6, alpha=1.0, learn_alpha=False, floor=0.1),
    MRNConfig(),
    MRNConfig(floor=0.2),
    MRNConfig(root=False),
    PQEConfig(chunks=3),
    PQEConfig(chunks=4, bound=20.0, floor=0.1),
    ReluSumConfig(chunks=3),
    ReluSumConfig(chunks=1, alpha=0.0, learn_alpha=False, floor=0.1),
    DeepNormConfig(units=16),
    DeepNormConfig(units=8, layers=1, floor=0.1),
    DeepNormConfig(units=8, layers=3),
    L2Config(),
    SquaredL2Config(),
    CosineConfig(),
]
every_head = pytest.mark.parametrize("config", CONFIGS, ids=[f"{i}-{c.kind}" for i, c in enumerate(CONFIGS)])


def build(config: Any, *, perturbed: bool = True) -> EnergyHead:
    """A head with random parameters; its properties must hold for all parameters."""
    with forked_rng(0, "head"):
        head = config.build(WIDTH).double()
        with torch.no_grad():
            for parameter in head.parameters():
                parameter.add_(torch.randn_like(parameter) * perturbed)
    return head


def points(*shape: int, name: str = "points") -> Tensor:
    return torch.randn(*shape, WIDTH, dtype=torch.float64, generator=torch_generator(0, name))


def triples(head: EnergyHead) -> Tensor:
    """10,000 triples (3, n, width): at many scales, near a segment, and optimised to violate the inequality."""
    x, y, z = points(3, 5000) * 10 ** torch.linspace(-3, 2, 5000, dtype=torch.float64)[:, None]
    share = torch.rand(5000, 1, dtype=torch.float64, generator=torch_generator(0, "share"))
    middle = x + share * (z - x)
    middle[::2] += 1e-3 * y[::2]
    anywhere, near = torch.stack([x, y, z])[:, :4000], torch.stack([x, middle, z])
    led = torch.cat([anywhere[:, 500:2000:3], near[:, 500:2000:3]], dim=1).clone().requires_grad_()
    optimizer = torch.optim.Adam([led], lr=0.03)
    for _ in range(25):
        optimizer.zero_grad()
        (-gaps(head, led)).sum().backward()
        optimizer.step()
    found = torch.cat([anywhere, near, led.detach()], dim=1)
    assert found.shape == (3, 10_000, WIDTH)
    return found


def gaps(head: EnergyHead, triple: Tensor) -> Tensor:
    """The relative violation of the triangle inequality at y."""
    x, y, z = triple
    direct, first, second = head(x, z), head(x, y), head(y, z)
    return (direct - first - second) / (direct.detach() + 1e-6)


def zero_pairs() -> tuple[Tensor, Tensor]:
    """Pairs of distinct points at which a head may be zero: y < x, y lower in half of the dimensions, and y = 2x."""
    x = points(200)
    lower = x.clone()
    lower[:, WIDTH // 2 :] -= points(200)[:, WIDTH // 2 :].abs() + 0.1
    return torch.cat([x, x, x]), torch.cat([x - 1, lower, 2 * x])


def oriented(head: EnergyHead) -> EnergyHead:
    """Give a deep norm, whose orientation is learned, the same orientation as the other heads."""
    with torch.no_grad():
        for name, parameter in head.named_parameters():
            if name.startswith("skips"):
                parameter.abs_()
    return head


def test_list_contains_every_head():
    assert {config.kind for config in CONFIGS} == set(HEADS)
    assert all(HEADS[config.kind] is type(config) for config in CONFIGS)


@every_head
def test_configs_round_trip_through_plain_data(config: Any):
    assert from_plain(HEADS[config.kind], to_plain(config)) == config


@every_head
def test_triangle_inequality_holds_if_declared(config: Any):
    head = build(config)
    worst = float(gaps(head, triples(head)).detach().max())
    if head.guaranteed_quasimetric:
        assert worst < 1e-8
    else:
        assert worst > 0.1
    assert head.guaranteed_quasimetric == (config not in (MRNConfig(root=False), SquaredL2Config(), CosineConfig()))


@every_head
def test_energy_is_non_negative_and_zero_at_identical_points(config: Any):
    head = build(config)
    x, y = points(2, 500)
    assert (head(x, y) >= 0).all()
    for point in (x, x + 1e6, x * 1e30, x.float().double(), torch.zeros_like(x)):
        assert (head(point, point) == 0).all()


@every_head
def test_distinct_points_have_zero_energy_only_if_declared(config: Any):
    head = oriented(build(config))
    x, y = zero_pairs()
    energy = head(x, y).detach()
    assert bool((energy == 0).any()) == head.pseudo
    if floor := getattr(config, "floor", 0.0):
        assert not head.pseudo
        assert (energy >= floor * (x - y).norm(dim=-1) * (1 - 1e-12)).all()


@every_head
def test_symmetric_only_if_declared(config: Any):
    head = build(config)
    x, y = points(2, 100)
    gap = (head(x, y) - head(y, x)).detach().abs().max()
    assert gap < 1e-12 if head.symmetric else gap > 1e-2


@every_head
def test_increases_cost_more_than_decreases(config: Any):
    head = oriented(build(config))
    x, rise = points(50), torch.zeros(50, WIDTH, dtype=torch.float64)
    rise[:, WIDTH // 2 :] = points(50, name="rise")[:, WIDTH // 2 :].abs()
    up, down = head(x, x + rise).detach(), head(x, x - rise).detach()
    assert (up > 0).all()
    if not head.symmetric:
        assert (down < up).all()
        torch.testing.assert_close(down, head.floor * rise.norm(dim=-1))


@every_head
def test_gradients_match_finite_differences(config: Any):
    head = build(config)
    x, y = (point.clone().requires_grad_() for point in points(2, 4))
    assert torch.autograd.gradcheck(head, (x, y))
    head(x, y).sum().backward()
    for name, parameter in head.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


@every_head
def test_all_pairs_match_broadcast_pairs_in_value_and_gradient(config: Any):
    head = build(config)
    x, y = points(7).requires_grad_(), points(5, name="others").requires_grad_()
    expected = head(x[:, None], y)
    wanted = torch.autograd.grad(expected.square().sum(), (x, y))
    for tile in (None, 1, 3, 100):  # untiled, single rows, uneven tiles, one larger tile
        got = head.all_pairs(x, y, tile)
        torch.testing.assert_close(got, expected)
        for a, b in zip(torch.autograd.grad(got.square().sum(), (x, y)), wanted, strict=True):
            torch.testing.assert_close(a, b)
    with torch.no_grad():
        torch.testing.assert_close(head.all_pairs(x, tile=4), head(x[:, None], x))


@every_head
def test_leading_dimensions_broadcast(config: Any):
    head = build(config)
    x, y = points(3, 1, 2), points(4, 1)
    assert head(x, y).shape == (3, 4, 2)
    torch.testing.assert_close(head(x, y)[2, 1, 0], head(x[2, 0, 0], y[1, 0]))
    assert head(x[0, 0, 0], x[0, 0, 1]).shape == ()
    assert head(x[:0], y).shape == (0, 4, 2)


@every_head
def test_state_dict_restores_the_head(config: Any):
    head, other = build(config), build(config, perturbed=False)
    other.load_state_dict(head.state_dict())
    x, y = points(2, 20)
    assert torch.equal(head(x, y), other(x, y))


def hard_pairs() -> dict[str, tuple[Tensor, Tensor]]:
    x, y = points(2, 6)
    up, down = x.clone(), x.clone()
    up[:, 1], down[:, 7] = math.inf, -math.inf
    both, all_up = up.clone(), torch.full_like(x, math.inf)
    both[:, 7] = -math.inf
    return {
        "identical": (x, x),
        "zero": (torch.zeros_like(x), torch.zeros_like(x)),
        "from zero": (torch.zeros_like(x), y),
        "one coordinate alike": (torch.cat([x[:, :1], x[:, 1:]], 1), torch.cat([x[:, :1], y[:, 1:]], 1)),
        "offset 1e6": (x + 1e6, y + 1e6),
        "offset 1e30": (x + 1e30, y + 1e30),
        "scale 1e30": (x * 1e30, y * 1e30),
        "scale 1e-30": (x * 1e-30, y * 1e-30),
        "to infinity": (x, up),
        "from infinity": (up, x),
        "down to infinity": (x, down),
        "up from infinity": (down, x),
        "infinite alike": (up, torch.where(up == math.inf, up, y)),
        "infinite and identical": (both, both),
        "both infinities": (up, both),
        "from one infinity to the other": (-all_up, all_up),
        "all infinite": (all_up, all_up),
    }


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@every_head
def test_no_input_gives_nan(config: Any, dtype: torch.dtype):
    head = build(config).to(dtype)
    for name, pair in hard_pairs().items():
        x, y = (point.to(dtype).requires_grad_() for point in pair)
        energy = head(x, y)
        assert not energy.isnan().any() and (energy >= 0).all(), name
        if "identical" in name or name in ("zero", "all infinite"):
            assert (energy == 0).all(), name
        elif "infinit" not in name and not (config.kind == "squared-l2" or config == MRNConfig(root=False)):
            assert energy.isfinite().all(), name
        torch.testing.assert_close(energy, head.all_pairs(x, y).diagonal(), msg=name)
        inputs = (x, y, *head.parameters())
        for gradient in torch.autograd.grad(energy.sum(), inputs, allow_unused=True):
            assert gradient is None or gradient.isfinite().all(), name


@every_head
def test_infinite_differences_have_infinite_energy(config: Any):
    pairs = hard_pairs()
    head = oriented(build(config))
    for name in ("to infinity", "up from infinity", "from one infinity to the other"):
        energy = head(*pairs[name])
        bounded = config.kind == "cosine" or (config.kind == "pqe" and not config.floor)
        assert energy.isfinite().all() if bounded else (energy == math.inf).all(), name


@every_head
def test_invalid_shapes_are_rejected(config: Any):
    head = build(config)
    with pytest.raises(InputError, match=rf"{WIDTH}, but shapes \(5, 12\) and \(5, 11\)"):
        head(points(5), points(5)[:, 1:])
    with pytest.raises(InputError, match=r"broadcast, but shapes \(5, 12\) and \(4, 12\).*all_pairs"):
        head(points(5), points(4))
    with pytest.raises(InputError, match=r"all_pairs, but shapes \(12,\) and \(4, 12\)"):
        head.all_pairs(points(), points(4))
    with pytest.raises(InputError, match=r"tile.* 0"):
        head.all_pairs(points(4), tile=0)
    with pytest.raises(InputError, match="width"):
        config.build(0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: IQEConfig(chunks=5).build(12), "width 12 .* chunks 5.*such as 15.* 1, 2, 3, 4, 6, 12"),
        (lambda: ReluSumConfig(chunks=0).build(12), "chunks .* 0"),
        (lambda: PQEConfig(chunks=16).build(12), "width 12 .* chunks 16.*PQE"),
        (lambda: PQEConfig(bound=0.0), "bound.* 0"),
        (lambda: IQEConfig(chunks=3, alpha=1.0).build(12), r"alpha .* 1\.0"),
        (lambda: IQEConfig(chunks=3, alpha=-0.1, learn_alpha=False).build(12), r"alpha .*\[0, 1\].* -0\.1"),
        (lambda: MRNConfig(floor=-1.0).build(12), "floor.*-1.0"),
        (lambda: MRNConfig(floor=math.inf).build(12), "floor.*finite"),
        (lambda: MRNConfig().build(1), "width .*2 .* 1"),
        (lambda: DeepNormConfig(units=0), "units"),
    ],
)
def test_invalid_configurations_are_rejected(wrong: Any, message: str):
    with pytest.raises(InputError, match=message):
        wrong()
