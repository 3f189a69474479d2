"""Contract of energy heads: declared properties hold, and no input gives NaN."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import torch_generator
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
from jepatlas.testing import check_energy
from jepatlas.testing.energy_contract import build_head, worst_triangle_violation

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


def points(*shape: int, name: str = "points") -> Tensor:
    return torch.randn(*shape, WIDTH, dtype=torch.float64, generator=torch_generator(0, name))


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
def test_heads_keep_the_contract(config: Any):
    check_energy(config, WIDTH)


@every_head
def test_properties_that_are_not_declared_do_not_hold(config: Any):
    head = build_head(config, WIDTH)
    assert head.guaranteed_quasimetric == (config not in (MRNConfig(root=False), SquaredL2Config(), CosineConfig()))
    if not head.guaranteed_quasimetric:
        assert worst_triangle_violation(head, WIDTH) > 0.1
    if not head.symmetric:
        x, y = points(2, 100)
        assert (head(x, y) - head(y, x)).detach().abs().max() > 1e-2


@every_head
def test_distinct_points_have_zero_energy_only_if_declared(config: Any):
    head = oriented(build_head(config))
    x, y = zero_pairs()
    energy = head(x, y).detach()
    assert bool((energy == 0).any()) == head.pseudo
    if floor := getattr(config, "floor", 0.0):
        assert not head.pseudo
        assert (energy >= floor * (x - y).norm(dim=-1) * (1 - 1e-12)).all()


@every_head
def test_increases_cost_more_than_decreases(config: Any):
    head = oriented(build_head(config))
    x, rise = points(50), torch.zeros(50, WIDTH, dtype=torch.float64)
    rise[:, WIDTH // 2 :] = points(50, name="rise")[:, WIDTH // 2 :].abs()
    up, down = head(x, x + rise).detach(), head(x, x - rise).detach()
    assert (up > 0).all()
    if not head.symmetric:
        assert (down < up).all()
        torch.testing.assert_close(down, head.floor * rise.norm(dim=-1))


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
    head = build_head(config).to(dtype)
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
    head = oriented(build_head(config))
    for name in ("to infinity", "up from infinity", "from one infinity to the other"):
        energy = head(*pairs[name])
        bounded = config.kind == "cosine" or (config.kind == "pqe" and not config.floor)
        assert energy.isfinite().all() if bounded else (energy == math.inf).all(), name


@every_head
def test_invalid_shapes_are_rejected(config: Any):
    head = build_head(config)
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
