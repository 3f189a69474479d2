"""Contract of objectives. Above all, W processes take the same step as one process on the joint batch."""

from __future__ import annotations

import math
import typing
from typing import Any

import pytest
import torch
from processes import run_processes
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from jepatlas.core.config import choices
from jepatlas.core.distributed import rank, world_size
from jepatlas.core.errors import InputError
from jepatlas.core.linear import least_squares, r2
from jepatlas.core.records import Loss, Pairs
from jepatlas.core.seeding import forked_rng
from jepatlas.data import PairStream, Transitions
from jepatlas.nn.mlp import mlp
from jepatlas.objectives import (
    CovarianceConfig,
    InfoNCEConfig,
    LeJEPAConfig,
    PairObjective,
    Parts,
    SIGRegConfig,
    VICRegConfig,
    WhiteningConfig,
)
from jepatlas.recipes import Recipe
from jepatlas.testing import check_objective
from jepatlas.worlds import Coupling, LatentWorld, OrnsteinUhlenbeck, ParabolicShear

# Add new objectives here.
OBJECTIVES = [
    LeJEPAConfig(),
    LeJEPAConfig(0.3, "additive"),
    LeJEPAConfig(1.0),
    LeJEPAConfig(0.1, sigreg=SIGRegConfig(views="pooled")),
    LeJEPAConfig(0.1, sigreg=SIGRegConfig(slices=16, design="low-discrepancy", knots=9, limit=2.0, fresh=False)),
    VICRegConfig(),
    VICRegConfig(invariance=1.0, variance=3.0, covariance=2.0, target=2.0, epsilon=0.01),
    CovarianceConfig(),
    InfoNCEConfig(),
    InfoNCEConfig(width=0.7, adaptive=True),
    InfoNCEConfig("cosine", width=0.2),
    InfoNCEConfig("cosine", width=0.2, adaptive=True),
    InfoNCEConfig("anisotropic"),
    InfoNCEConfig("anisotropic", width=0.7, adaptive=True, dose=0.5),
    InfoNCEConfig("anisotropic", width=0.7, adaptive=True, dose=0.0),
    WhiteningConfig(),
]
every_objective = pytest.mark.parametrize("config", OBJECTIVES, ids=[f"{i}-{c.kind}" for i, c in enumerate(OBJECTIVES)])

DIM = 3
WORLD = LatentWorld(OrnsteinUhlenbeck(dim=DIM, rho=0.9), Coupling(layers=4))


def encoder(seed: int = 0, dim: int = DIM, out: int = DIM) -> nn.Module:
    with forked_rng(seed, "encoder"):
        return mlp(dim, out, width=16, depth=2)


def build(config: Any, network: nn.Module | None = None, seed: int = 0, *, projector: bool = False) -> PairObjective:
    network = encoder(seed) if network is None else network
    parts = Parts(network, DIM, encoder(seed + 1, out=5) if projector else None, seed)
    return config.build(parts)


def takes_projector(config: Any) -> bool:
    """False if the objective constrains the latents themselves."""
    return config.kind != "whitening" and getattr(config, "kernel", None) != "anisotropic"


def batches(count: int = 32) -> PairStream:
    return PairStream(WORLD, Transitions(), count, seed=0)


def to_double(batch: Pairs) -> Pairs:
    return Pairs(batch.x.double(), batch.x_next.double(), batch.z.double(), batch.z_next.double())


def gradients(objective: nn.Module) -> dict[str, Tensor]:
    found = {name: p.grad for name, p in objective.named_parameters() if p.grad is not None}
    return {name: grad.clone() for name, grad in found.items()}


def test_list_contains_every_objective_of_a_recipe():
    offered = choices(typing.get_type_hints(Recipe, include_extras=True)["objective"])
    assert {config.kind for config in OBJECTIVES} == set(offered)


@every_objective
def test_objectives_keep_the_contract(config: Any):
    check_objective(config)


@every_objective
def test_only_lejepa_is_random(config: Any):
    def value(seed: int, step: int) -> float:
        return float(build(config, network, seed)(batch, step).total.detach())

    batch = batches()(0)
    network = encoder()
    random = config.kind == "lejepa"
    assert (value(0, 1) != value(1, 1)) == random
    assert (value(0, 1) != value(0, 2)) == (random and config.sigreg.fresh)


@pytest.mark.parametrize("kernel", ["gaussian", "cosine"])
def test_gradient_of_a_learned_width_matches_finite_differences(kernel: Any):
    objective = build(InfoNCEConfig(kernel, width=0.7, adaptive=True)).double()
    batch = to_double(batches(8)(0))
    objective(batch, 0).total.backward()

    def value(shift: float) -> float:
        shifted = build(InfoNCEConfig(kernel, width=0.7 * math.exp(shift))).double()
        return float(shifted(batch, 0).total.detach())

    slope = (value(1e-3) - value(-1e-3)) / 2e-3
    assert float(gradients(objective)["log_width"]) == pytest.approx(slope, rel=1e-3)


@every_objective
def test_any_module_can_be_the_encoder(config: Any):
    with forked_rng(0, "encoder"):
        network = nn.Sequential(nn.Linear(DIM, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Linear(8, DIM))
    objective = build(config, network)
    batch = batches()(0)
    objective(batch, 0).total.backward()
    assert all(f"encoder.{name}" in gradients(objective) for name, _ in network.named_parameters())
    # Both views are encoded as one batch, so BatchNorm's running mean is that of the pooled views.
    pooled = network[0](torch.cat([batch.x, batch.x_next])).mean(0).detach()
    torch.testing.assert_close(network[1].running_mean, 0.1 * pooled)
    objective.eval()
    assert objective.encode(batch.x).shape == (32, DIM)


@every_objective
def test_loss_uses_projections_and_encode_returns_latents(config: Any):
    if not takes_projector(config):
        with pytest.raises(InputError, match="projector"):
            build(config, projector=True)
        return
    plain, projected = build(config), build(config, projector=True)
    batch = batches()(0)
    assert torch.equal(plain.encode(batch.x), projected.encode(batch.x))
    h, h_next = (projected.projector(plain.encode(x)) for x in (batch.x, batch.x_next))
    assert h.shape == (32, 5)
    torch.testing.assert_close(projected(batch, 2).total, plain.loss(h, h_next, 2).total)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: LeJEPAConfig(weight=1.5), r"weight.*1\.5.*\[0, 1\]"),
        (lambda: LeJEPAConfig(weight=-0.1, form="additive"), "weight.*-0.1"),
        (lambda: SIGRegConfig(slices=0), "slices.*0"),
        (lambda: SIGRegConfig(knots=1), "knots.*1"),
        (lambda: SIGRegConfig(limit=0.0), "limit.*0.0"),
        (lambda: CovarianceConfig(weight=2.0), r"weight.*2\.0"),
        (lambda: InfoNCEConfig(width=0.0), r"width.*0\.0"),
        (lambda: InfoNCEConfig("anisotropic", dose=1.5), "dose.*1.5"),
        (lambda: InfoNCEConfig("gaussian", dose=0.5), "dose.*gaussian"),
        (lambda: InfoNCEConfig("anisotropic", dose=math.nan), "dose.*nan"),
        (lambda: VICRegConfig(variance=-1.0), r"variance.*-1\.0"),
        (lambda: WhiteningConfig(momentum=1.0), r"momentum.*1\.0"),
        (lambda: WhiteningConfig(epsilon=-1.0), r"epsilon.*-1\.0"),
    ],
)
def test_invalid_configs_name_the_argument(wrong: Any, message: str):
    with pytest.raises(InputError, match=message):
        wrong()


def test_lejepa_recovers_a_moderately_mixed_state():
    world = LatentWorld(OrnsteinUhlenbeck(dim=2, rho=0.95), ParabolicShear())
    stream = PairStream(world, Transitions(), 256, seed=0)
    with forked_rng(0, "encoder"):
        objective = LeJEPAConfig(0.01, sigreg=SIGRegConfig(slices=16)).build(Parts(mlp(2, 2, width=48, depth=2), 2))
    optimizer = torch.optim.AdamW(objective.parameters(), lr=5e-3)
    for step in range(500):
        optimizer.zero_grad()
        objective(stream(step), step).total.backward()
        optimizer.step()
    held = PairStream(world, Transitions(), 8000, seed=1)(0)
    z, h = held.z.numpy(), objective.encode(held.x).detach().numpy()

    def recovered(h: Any) -> float:
        return r2(z[4000:], least_squares(h[:4000], z[:4000]).apply(h[4000:]))

    raw, learned = recovered(held.x.numpy()), recovered(h)
    assert raw < 0.75 and learned > 0.9


# Several processes: each case in float32, as in training, and in float64, where rounding hides no difference.

ROWS = 12  # divisible by every number of processes
TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-12}
CASES = [(index, dtype) for index in range(len(OBJECTIVES)) for dtype in TOLERANCE]


def one_step(config: Any, dtype: torch.dtype, part: int = 0, parts: int = 1) -> dict[str, Any]:
    """Value, terms, gradients and buffers after one pass over a part of the joint batch."""
    objective = build(config, projector=takes_projector(config)).to(dtype)
    with torch.no_grad():  # scale up the latents: those of an untrained network are nearly constant
        for network in (objective.encoder, objective.projector):
            for parameter in network.parameters():
                parameter.mul_(2)
    module = DistributedDataParallel(objective) if world_size() > 1 else objective
    joint = to_double(batches(ROWS)(0))
    x, x_next = (v.to(dtype).chunk(parts)[part] for v in (joint.x, joint.x_next))
    loss: Loss = module(Pairs(x, x_next, x, x_next), 3)
    loss.total.backward()
    return {
        "total": loss.total.detach(),
        "terms": dict(loss.terms),
        "gradients": gradients(objective),
        "buffers": {name: buffer.clone() for name, buffer in objective.named_buffers()},
    }


def all_steps(cases: list[tuple[int, torch.dtype]]) -> list[dict[str, Any]]:
    return [one_step(OBJECTIVES[index], dtype, rank(), world_size()) for index, dtype in cases]


@pytest.fixture(scope="module")
def two_processes() -> list[list[dict[str, Any]]]:
    return run_processes(all_steps, 2, CASES)


def assert_near(ours: Tensor, joint: Tensor, scale: float) -> None:
    assert ours.dtype == joint.dtype
    tolerance = TOLERANCE[joint.dtype]
    torch.testing.assert_close(ours, joint, rtol=tolerance, atol=tolerance * scale)


def assert_joint(results: list[dict[str, Any]], joint: dict[str, Any]) -> None:
    assert_near(torch.stack([result["total"] for result in results]).mean(), joint["total"], 1e-3)
    for name, term in joint["terms"].items():
        assert_near(torch.stack([result["terms"][name] for result in results]).mean(), term, 1e-3)
    # Some gradients are zero (the loss ignores shifts), so errors are relative to the largest gradient.
    scale = max(float(gradient.abs().max()) for gradient in joint["gradients"].values())
    for result in results:
        assert result["gradients"].keys() == joint["gradients"].keys()
        for name, gradient in joint["gradients"].items():
            assert_near(result["gradients"][name], gradient, scale)
        for name, buffer in joint["buffers"].items():
            assert_near(result["buffers"][name], buffer, 1.0)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@every_objective
def test_two_processes_take_the_same_step_as_one(
    two_processes: list[list[dict[str, Any]]], config: Any, dtype: torch.dtype
):
    assert world_size() == 1
    case = CASES.index((OBJECTIVES.index(config), dtype))
    joint = one_step(config, dtype)
    assert_joint([results[case] for results in two_processes], joint)
    if config.kind == "infonce" and config.adaptive:  # a parameter that is applied after the rows are gathered
        assert abs(joint["gradients"]["log_width"]) > 0.01
    if config.kind == "infonce" and config.kernel == "anisotropic":
        assert joint["gradients"]["log_precision"].abs().max() > 0.001


@every_objective
def test_statistics_of_each_part_give_a_different_step(config: Any):
    """The error that the test above must detect."""
    parts = [one_step(config, torch.float64, part, 2) for part in range(2)]
    with pytest.raises(AssertionError):
        assert_joint(parts, one_step(config, torch.float64))
    mean = {name: (parts[0]["gradients"][name] + parts[1]["gradients"][name]) / 2 for name in parts[0]["gradients"]}
    joint = one_step(config, torch.float64)["gradients"]
    assert max(float((mean[name] - joint[name]).abs().max() / joint[name].abs().max()) for name in joint) > 1e-3


@pytest.mark.slow
def test_three_processes_take_the_same_step_as_one():
    results = run_processes(all_steps, 3, CASES)
    for case, (index, dtype) in enumerate(CASES):
        assert_joint([result[case] for result in results], one_step(OBJECTIVES[index], dtype))
