"""The contract of the objectives that compare crops; above all: two processes take the step of one."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import yaml
from objectives.vision.tiny_crops import DIM, STEPS, descend, double, on_crops, spread, tiny_conv
from objectives.vision.tiny_vision import crops
from processes import run_processes
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from jepatlas.base.config import from_plain, to_plain
from jepatlas.base.distributed import rank, world_size
from jepatlas.base.errors import InputError
from jepatlas.base.records import Crops, Loss
from jepatlas.base.seeding import torch_generator
from jepatlas.encoders import ConvConfig
from jepatlas.objectives import LeJEPAConfig, SIGRegConfig, VICRegConfig
from jepatlas.objectives.vision.barlow_twins import BarlowTwinsConfig
from jepatlas.objectives.vision.byol import BYOLConfig
from jepatlas.objectives.vision.heads import JointBatchNorm
from jepatlas.objectives.vision.lejepa import CropLeJEPAConfig
from jepatlas.objectives.vision.moco_v3 import MoCoV3Config
from jepatlas.objectives.vision.parts import VisionParts
from jepatlas.objectives.vision.simclr import SimCLRConfig
from jepatlas.objectives.vision.swav import SwAVConfig
from jepatlas.objectives.vision.vicreg import CropVICRegConfig

# A new objective is one line here.
OBJECTIVES = [
    CropLeJEPAConfig(projector=(32, 16)),
    CropLeJEPAConfig(LeJEPAConfig(0.1, "additive", SIGRegConfig(slices=16, fresh=False)), projector=()),
    SimCLRConfig(projector=(32, 16)),
    SimCLRConfig(0.5, projector=()),
    BarlowTwinsConfig(projector=(32, 16)),
    CropVICRegConfig(expander=(32, 16)),
    CropVICRegConfig(VICRegConfig(covariance=4.0), expander=(16,)),
    BYOLConfig((32, 16), 32),
    MoCoV3Config(projector=(32, 16), predictor=32),
    SwAVConfig(12, (32, 16)),
]
NAMES = [f"{i}-{c.kind}" for i, c in enumerate(OBJECTIVES)]
every_objective = pytest.mark.parametrize("config", OBJECTIVES, ids=NAMES)
TWINS = {"byol", "moco-v3"}
ROWS, STEP = 8, 3  # after the steps in which prototypes are held


def gradients(objective: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in objective.named_parameters() if p.grad is not None}


@every_objective
def test_one_kind_of_answer_and_a_gradient_for_every_weight(config: Any):
    objective = on_crops(config)
    loss = objective(crops(ROWS), STEP)
    assert isinstance(loss, Loss) and loss.terms
    assert loss.total.shape == () and loss.total.isfinite() and loss.total.dtype == torch.float32
    for name, term in loss.terms.items():
        assert term.shape == () and term.isfinite() and not term.requires_grad, name
    loss.total.backward()
    found = gradients(objective)
    assert set(found) == {name for name, p in objective.named_parameters() if p.requires_grad}
    largest = max(float(g.abs().max()) for g in found.values())
    for name, gradient in found.items():
        assert gradient.isfinite().all() and gradient.abs().max() > 1e-5 * largest, name


@pytest.mark.parametrize("config", [c for c in OBJECTIVES if c.kind in TWINS], ids=lambda c: c.kind)
def test_the_slow_twin_follows_and_no_gradient_reaches_it(config: Any):
    objective = on_crops(config)
    slow, fast = (dict(m.named_parameters()) for m in (objective.target, nn.Sequential(objective.encoder)))
    before = {name: p.clone() for name, p in slow.items()}
    objective(crops(ROWS), STEP).total.backward()
    assert not any(name.startswith("target") for name in gradients(objective))
    for name, parameter in slow.items():
        assert torch.equal(parameter, before[name])
    objective.momentum = 0.75
    objective.after_step(0)
    for name, parameter in fast.items():
        expected = 0.75 * before[f"network.{name}"] + 0.25 * parameter
        torch.testing.assert_close(slow[f"network.{name}"], expected)


@every_objective
def test_encode_gives_one_latent_per_row(config: Any):
    objective = on_crops(config).eval()
    x = crops(6).x
    h = objective.encode(x)
    assert h.shape == (6, DIM) and torch.equal(h, objective.encoder(x))
    torch.testing.assert_close(objective.encode(x[2:4]), h[2:4])


@every_objective
def test_the_same_step_has_the_same_bits(config: Any):
    batch = crops(ROWS)

    def value(objective: Any, step: int) -> float:
        torch.manual_seed(torch.seed())  # the global generator has no say
        return float(objective(batch, step).total.detach())

    objective = on_crops(config)
    first = value(objective, STEP)
    assert value(objective, STEP) == first  # looking changes nothing
    assert value(on_crops(config), STEP) == first
    fresh = config.kind == "lejepa" and config.loss.sigreg.fresh
    assert (value(objective, STEP + 1) != first) == fresh
    objective.seed = 1
    assert (value(objective, STEP) != first) == (config.kind == "lejepa")


@every_objective
def test_half_precision_stops_at_the_loss(config: Any):
    batch = crops(ROWS)
    exact, mixed = on_crops(config)(batch, STEP), on_crops(config)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = mixed(batch, STEP)
    assert loss.total.dtype == torch.float32 and all(term.dtype == torch.float32 for term in loss.terms.values())
    torch.testing.assert_close(loss.total, exact.total, rtol=0.1, atol=0.05)
    loss.total.backward()
    assert all(g.isfinite().all() for g in gradients(mixed).values())


@every_objective
def test_a_saved_state_gives_the_same_outputs(config: Any):
    first, second = on_crops(config), on_crops(config, seed=5)
    descend(first, 2)
    batch = crops(ROWS)
    assert not torch.equal(first(batch, 7).total, second(batch, 7).total)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    second.seed = first.seed
    assert torch.equal(first(batch, 7).total, second(batch, 7).total)


@every_objective
def test_training_lowers_the_loss_and_latents_do_not_collapse(config: Any):
    objective = on_crops(config, apart=0.0)
    size, directions = spread(objective)
    losses = descend(objective, 40)
    assert sum(losses[-8:]) < 0.9 * sum(losses[:8])
    now, left = spread(objective)
    assert now > 0.5 * size and left > 1.5, (size, directions, now, left)


def test_alignment_alone_collapses():
    """What the test above guards against: it must be able to see it."""
    objective = on_crops(CropLeJEPAConfig(LeJEPAConfig(0.0), projector=()), apart=0.0)
    size, _ = spread(objective)
    descend(objective, 40)
    assert spread(objective)[0] < 0.5 * size


@every_objective
def test_configs_survive_a_recipe_file(config: Any):
    assert from_plain(type(config), yaml.safe_load(yaml.safe_dump(to_plain(config)))) == config


@every_objective
def test_the_smallest_batch_is_enough(config: Any):
    objective = on_crops(config)
    loss = objective(crops(objective.smallest_batch(DIM)), STEP)
    loss.total.backward()
    assert loss.total.isfinite() and all(g.isfinite().all() for g in gradients(objective).values())


@every_objective
def test_two_crops_are_enough_and_one_is_refused(config: Any):
    batch = crops(4)
    objective = on_crops(config)
    assert objective(Crops(batch.x, batch.others[:1]), STEP).total.isfinite()
    with pytest.raises(InputError, match="two crops"):
        objective(Crops(batch.x), STEP)
    with pytest.raises(InputError, match="two crops"):
        objective(Crops(batch.x, (batch.others[0][:3],)), STEP)


@every_objective
def test_bytes_through_a_network_that_takes_one_size(config: Any):
    """The convolutional encoder, whose own batch normalisation sees both crops at once."""
    network = ConvConfig((8,), hidden=8).build((3, 16, 16), DIM)
    batch = crops(4, local=0)
    x, other = ((crop * 255).to(torch.uint8) for crop in batch.all)
    assert config.build(VisionParts(network, DIM, STEPS))(Crops(x, (other,)), STEP).total.isfinite()


def test_the_encoder_is_the_one_given():
    encoder = tiny_conv()
    for config in OBJECTIVES:
        assert config.build(VisionParts(encoder, DIM, STEPS)).encoder is encoder


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: CropLeJEPAConfig(LeJEPAConfig(1.5)), "λ.*1.5"),
        (lambda: CropLeJEPAConfig(LeJEPAConfig(sigreg=SIGRegConfig(views="pooled"))), "views at 'each'"),
        (lambda: CropLeJEPAConfig(projector=(8, 0)), r"LeJEPA's projector.*\(8, 0\)"),
        (lambda: SimCLRConfig(0.0), r"SimCLR's temperature.*0\.0"),
        (lambda: SimCLRConfig(projector=(-1,)), "SimCLR's projector.*-1"),
        (lambda: BarlowTwinsConfig(weight=-1.0), "Barlow Twins' weight.*-1.0"),
        (lambda: BarlowTwinsConfig(projector=()), "Barlow Twins' projector"),
        (lambda: CropVICRegConfig(expander=()), "VICReg's expander"),
        (lambda: BYOLConfig(projector=()), "BYOL's projector"),
        (lambda: BYOLConfig(predictor=0), r"BYOL's predictor.*\(0,\)"),
        (lambda: BYOLConfig(momentum=1.5), "BYOL.*1.5"),
        (lambda: MoCoV3Config(float("nan")), "MoCo's temperature.*nan"),
        (lambda: MoCoV3Config(projector=()), "MoCo's projector"),
        (lambda: MoCoV3Config(predictor=0), "MoCo's predictor"),
        (lambda: MoCoV3Config(momentum=-0.1), "MoCo.*-0.1"),
        (lambda: SwAVConfig(prototypes=0), "prototypes.*0"),
        (lambda: SwAVConfig(rounds=0), "rounds.*0"),
        (lambda: SwAVConfig(held=2.0), "held.*2.0"),
        (lambda: SwAVConfig(temperature=0.0), "SwAV's temperature"),
        (lambda: SwAVConfig(smoothness=-1.0), "SwAV's smoothness"),
        (lambda: SwAVConfig(projector=()), "SwAV's projector"),
    ],
)
def test_refusals_name_the_argument(wrong: Any, words: str):
    with pytest.raises(InputError, match=words):
        wrong()


# Two processes. Everything in float64, where nothing hides in rounding.


def one_step(config: Any, part: int = 0, parts: int = 1) -> dict[str, Any]:
    """Value, terms, gradients and what is remembered after one step on a part of the joint batch."""
    objective = on_crops(config).double()
    module = DistributedDataParallel(objective) if world_size() > 1 else objective
    x, *others = (crop.chunk(parts)[part] for crop in double(crops(ROWS)).all)
    loss: Loss = module(Crops(x, tuple(others)), STEP)
    loss.total.backward()
    objective.after_step(STEP)
    return {
        "total": loss.total.detach(),
        "terms": dict(loss.terms),
        "gradients": gradients(objective),
        "buffers": {name: buffer.clone() for name, buffer in objective.named_buffers()},
    }


def normalised(part: int = 0, parts: int = 1) -> dict[str, Tensor]:
    """Outputs and gradients of a part of the rows, for a loss that is their mean; and what is remembered."""
    x, weight = torch.randn(2, ROWS, DIM, dtype=torch.float64, generator=torch_generator(0, "rows"))
    x = (3 * x + 2).chunk(parts)[part].clone().requires_grad_()
    norm = JointBatchNorm(DIM).double()
    out = norm(x)
    (out * weight.chunk(parts)[part]).sum(1).mean().backward()
    assert x.grad is not None
    by_row = x.grad / parts  # the loss of the joint batch is the mean of the processes'
    weights = torch.stack([gradients(norm)[name] for name in ("scale", "shift")])
    return {"out": out.detach(), "rows": by_row, "weights": weights, **dict(norm.named_buffers())}


def all_steps() -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    steps = [one_step(config, rank(), world_size()) for config in OBJECTIVES]
    return steps, normalised(rank(), world_size())


@pytest.fixture(scope="module")
def two_processes() -> list[tuple[list[dict[str, Any]], dict[str, Tensor]]]:
    return run_processes(all_steps, 2)


def assert_near(ours: Tensor, joint: Tensor) -> None:
    torch.testing.assert_close(ours, joint, rtol=1e-9, atol=1e-11)


def assert_joint(results: list[dict[str, Any]], joint: dict[str, Any]) -> None:
    assert_near(torch.stack([r["total"] for r in results]).mean(), joint["total"])
    for name, term in joint["terms"].items():
        assert_near(torch.stack([r["terms"][name] for r in results]).mean(), term)
    for result in results:
        for kind in ("gradients", "buffers"):
            assert result[kind].keys() == joint[kind].keys()
            for name, value in joint[kind].items():
                assert_near(result[kind][name], value)


@every_objective
def test_two_processes_take_the_step_of_one(two_processes: list[Any], config: Any):
    assert world_size() == 1
    index = OBJECTIVES.index(config)
    assert_joint([steps[index] for steps, _ in two_processes], one_step(config))


@every_objective
def test_each_part_alone_would_take_another_step(config: Any):
    """What the test above guards against: negatives, statistics or assignments of a part."""
    with pytest.raises(AssertionError):
        assert_joint([one_step(config, part, 2) for part in range(2)], one_step(config))


def assert_normalised(results: list[dict[str, Tensor]]) -> None:
    joint = normalised()
    for name in ("out", "rows"):
        assert_near(torch.cat([r[name] for r in results]), joint[name])
    assert_near(torch.stack([r["weights"] for r in results]).mean(0), joint["weights"])
    for result in results:
        assert_near(result["running_mean"], joint["running_mean"])
        assert_near(result["running_variance"], joint["running_variance"])


def test_two_processes_normalise_by_the_joint_batch(two_processes: list[Any]):
    assert_normalised([norm for _, norm in two_processes])
    with pytest.raises(AssertionError):  # each part for itself would not do
        assert_normalised([normalised(part, 2) for part in range(2)])
