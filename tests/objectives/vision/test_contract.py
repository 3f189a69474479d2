"""The contract of the objectives that mask or distil; above all: two processes take the step of one."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import yaml
from objectives.vision.tiny_vision import STEPS, WIDTH, crops, tiny, tiny_vit
from processes import run_processes
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from jepatlas.base.config import from_plain, to_plain
from jepatlas.base.distributed import rank, world_size
from jepatlas.base.errors import InputError
from jepatlas.base.records import Crops, Loss
from jepatlas.encoders import ViTConfig
from jepatlas.objectives.vision.autoencoder import AutoencoderConfig
from jepatlas.objectives.vision.decoder import DecoderConfig
from jepatlas.objectives.vision.dino import DINOConfig
from jepatlas.objectives.vision.dino_head import DINOHeadConfig
from jepatlas.objectives.vision.dinov2 import DINOv2Config
from jepatlas.objectives.vision.distillation import TemperatureConfig
from jepatlas.objectives.vision.ibot import IBOTConfig
from jepatlas.objectives.vision.ijepa import IJEPAConfig
from jepatlas.objectives.vision.mae import MAEConfig
from jepatlas.objectives.vision.parts import VisionParts
from jepatlas.objectives.vision.predictors import MLPPredictorConfig, NarrowPredictorConfig

HEAD = DINOHeadConfig(prototypes=24, width=32, bottleneck=16)
NARROW = NarrowPredictorConfig(width=8, depth=1, heads=2)
DECODER = DecoderConfig(width=16, depth=1, heads=2)

# A new objective is one line here.
OBJECTIVES = [
    IJEPAConfig(NARROW),
    IJEPAConfig(MLPPredictorConfig(32), "smooth-l1"),
    MAEConfig(decoder=DECODER),
    MAEConfig(0.5, normal=False, decoder=DECODER),
    AutoencoderConfig(4, DECODER),
    DINOConfig(HEAD),
    IBOTConfig(HEAD),
    DINOv2Config(HEAD),
    DINOv2Config(HEAD, centring="centre", koleo=1.0),
]
NAMES = [f"{i}-{c.kind}" for i, c in enumerate(OBJECTIVES)]
every_objective = pytest.mark.parametrize("config", OBJECTIVES, ids=NAMES)
MASKING = {"ijepa", "mae", "ibot", "dinov2"}
ROWS, STEP = 8, 3  # after the steps in which prototypes are held


def gradients(objective: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in objective.named_parameters() if p.grad is not None}


@every_objective
@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_one_kind_of_answer_and_a_gradient_for_every_weight(config: Any, pool: str):
    objective = tiny(config, pool)
    loss = objective(crops(ROWS), STEP)
    assert isinstance(loss, Loss) and loss.terms
    assert loss.total.shape == () and loss.total.isfinite() and loss.total.dtype == torch.float32
    for name, term in loss.terms.items():
        assert term.shape == () and term.isfinite() and not term.requires_grad, name
    loss.total.backward()
    found = gradients(objective)
    assert set(found) == {name for name, p in objective.named_parameters() if p.requires_grad}
    assert all(g.isfinite().all() and g.abs().sum() > 0 for g in found.values())
    assert not any(name.startswith(("target", "teacher")) for name in found)


@every_objective
@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_the_loss_reaches_the_latent_itself(config: Any, pool: str):
    """Not only the weights, which the patches may train alone: what `encode` gives is what the loss looks at."""
    objective = tiny(config, pool)
    pooled = objective.encoder.pooled
    seen: list[Tensor] = []
    body = objective.encoder.body.forward

    def watched(x: Tensor) -> Tensor:
        tokens = body(x)
        if tokens.requires_grad:
            tokens.retain_grad()
            seen.append(tokens)
        return tokens

    objective.encoder.body.forward = watched
    objective(crops(ROWS), STEP).total.backward()
    assert seen
    for tokens in seen:
        assert tokens.grad is not None
        in_latent = torch.autograd.grad(pooled(tokens).sum(), tokens)[0] != 0
        assert (tokens.grad[in_latent].view(len(tokens), -1).abs().sum(1) > 0).all()


@every_objective
def test_encode_gives_one_latent_per_row(config: Any):
    objective = tiny(config).eval()
    x = crops(6).x
    h = objective.encode(x)
    assert h.shape == (6, WIDTH) and torch.equal(h, objective.encoder(x))
    torch.testing.assert_close(objective.encode(x[2:4]), h[2:4])


@every_objective
def test_the_same_step_has_the_same_bits(config: Any):
    batch = crops(ROWS)

    def value(objective: Any, step: int) -> float:
        torch.manual_seed(torch.seed())  # the global generator has no say
        return float(objective(batch, step).total.detach())

    objective = tiny(config)
    first = value(objective, 3)
    assert value(objective, 3) == first  # looking changes nothing
    assert value(tiny(config), 3) == first
    if config.kind in MASKING:
        assert value(objective, 4) != first
        objective.seed = 1
        assert value(objective, 3) != first


@every_objective
def test_bytes_are_taken_as_they_are_stored(config: Any):
    stored = [(crop * 255).round().to(torch.uint8) for crop in crops(ROWS).all]
    shares = [crop.float() / 255 for crop in stored]
    one, other = (tiny(config)(Crops(c[0], tuple(c[1:])), STEP).total for c in (stored, shares))
    torch.testing.assert_close(one, other)


@every_objective
def test_half_precision_stops_at_the_loss(config: Any):
    batch = crops(ROWS)
    exact, mixed = tiny(config)(batch, STEP), tiny(config)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = mixed(batch, STEP)
    assert loss.total.dtype == torch.float32 and all(term.dtype == torch.float32 for term in loss.terms.values())
    torch.testing.assert_close(loss.total, exact.total, rtol=0.1, atol=0.05)
    loss.total.backward()
    assert all(g.isfinite().all() for g in gradients(mixed).values())


def descend(objective: Any, steps: int) -> list[Loss]:
    optimizer = torch.optim.AdamW([p for p in objective.parameters() if p.requires_grad], lr=1e-3, fused=True)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = objective(crops(16, seed=step % 8), step)
        loss.total.backward()
        optimizer.step()
        objective.after_step(step)
        losses.append(Loss(loss.total.detach(), loss.terms))
    return losses


@every_objective
def test_a_saved_state_gives_the_same_outputs(config: Any):
    first, second = tiny(config), tiny(config, seed=5)
    descend(first, 2)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    second.seed = first.seed
    batch = crops(ROWS)
    assert torch.equal(first(batch, 7).total, second(batch, 7).total)


def untold(loss: Loss) -> float:
    """What is left to learn.

    A teacher's assignments grow less sure while its centre is found and its temperature rises; what the student can
    lower is the excess of the cross-entropy over their entropy.
    """
    distilled = "teacher_entropy" in loss.terms
    return float(loss.terms["image"] - loss.terms["teacher_entropy"]) if distilled else float(loss.total)


@every_objective
def test_training_leaves_less_untold(config: Any):
    values = [untold(loss) for loss in descend(tiny(config, apart=0.0), STEPS)]
    assert sum(values[-8:]) < 0.9 * sum(values[:8])


@every_objective
def test_configs_survive_a_recipe_file(config: Any):
    assert from_plain(type(config), yaml.safe_load(yaml.safe_dump(to_plain(config)))) == config


@every_objective
def test_the_smallest_batch_is_enough(config: Any):
    objective = tiny(config)
    loss = objective(crops(objective.smallest_batch(WIDTH)), STEP)
    loss.total.backward()
    assert loss.total.isfinite() and all(g.isfinite().all() for g in gradients(objective).values())


@every_objective
def test_other_images_and_other_networks(config: Any):
    """Any size that the patch divides; without patches only where an objective needs none."""
    wide = Crops(torch.rand(4, 3, 24, 16), (torch.rand(4, 3, 24, 16), torch.rand(4, 3, 8, 12)))
    assert tiny(config)(wide, STEP).total.isfinite()
    plain = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, WIDTH))
    if config.kind in MASKING:
        with pytest.raises(InputError, match="needs an encoder with tokens"):
            config.build(VisionParts(plain, WIDTH, STEPS))
    else:
        assert config.build(VisionParts(plain, WIDTH, STEPS))(crops(4), STEP).total.isfinite()


@every_objective
def test_objectives_on_two_crops_refuse_one(config: Any):
    alone = Crops(crops(4).x)
    if config.crops == "one":
        assert tiny(config)(alone, STEP).total.isfinite()
    else:
        with pytest.raises(InputError, match="two crops"):
            tiny(config)(alone, STEP)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: IJEPAConfig(momentum=1.5), "I-JEPA.*1.5"),
        (lambda: IJEPAConfig(distance="l2"), "l2"),  # pyright: ignore[reportArgumentType]
        (lambda: NarrowPredictorConfig(width=10, heads=3), "I-JEPA's predictor"),
        (lambda: MLPPredictorConfig(0), "1 hidden unit"),
        (lambda: MAEConfig(hidden=1.0), "between 0 and 1.*1.0"),
        (lambda: DecoderConfig(depth=0), "A decoder"),
        (lambda: AutoencoderConfig(patch=0), "1 pixel"),
        (lambda: DINOConfig(momentum=-1.0), "DINO.*-1.0"),
        (lambda: DINOConfig(centre_momentum=2.0), "centre.*2.0"),
        (lambda: DINOHeadConfig(prototypes=0), "prototypes"),
        (lambda: DINOHeadConfig(held=1.5), "held"),
        (lambda: TemperatureConfig(student=0.0), "positive"),
        (lambda: TemperatureConfig(warmup=2.0), "warm-up"),
        (lambda: IBOTConfig(momentum=2.0), "iBOT"),
        (lambda: DINOv2Config(koleo=-1.0), "KoLeo.*-1.0"),
        (lambda: DINOv2Config(centring="none"), "none"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_refusals_name_the_argument(wrong: Any, words: str):
    with pytest.raises(InputError, match=words):
        wrong()


# Two processes. Everything in float64, where nothing hides in rounding.


def one_step(config: Any, part: int = 0, parts: int = 1) -> dict[str, Any]:
    """Value, terms, gradients and what is remembered after one step on a part of the joint batch."""
    objective = tiny(config).double()
    module = DistributedDataParallel(objective) if world_size() > 1 else objective
    x, *others = (crop.double().chunk(parts)[part] for crop in crops(ROWS).all)
    loss: Loss = module(Crops(x, tuple(others)), STEP)
    loss.total.backward()
    objective.after_step(STEP)
    return {
        "total": loss.total.detach(),
        "terms": dict(loss.terms),
        "gradients": gradients(objective),
        "buffers": {name: buffer.clone() for name, buffer in objective.named_buffers()},
    }


def all_steps() -> list[dict[str, Any]]:
    return [one_step(config, rank(), world_size()) for config in OBJECTIVES]


@pytest.fixture(scope="module")
def two_processes() -> list[list[dict[str, Any]]]:
    return run_processes(all_steps, 2)


def assert_joint(results: list[dict[str, Any]], joint: dict[str, Any]) -> None:
    def near(ours: Tensor, expected: Tensor) -> None:
        torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-11)

    near(torch.stack([r["total"] for r in results]).mean(), joint["total"])
    for name, term in joint["terms"].items():
        near(torch.stack([r["terms"][name] for r in results]).mean(), term)
    for result in results:
        for kind in ("gradients", "buffers"):
            assert result[kind].keys() == joint[kind].keys()
            for name, value in joint[kind].items():
                near(result[kind][name], value)


@every_objective
def test_two_processes_take_the_step_of_one(two_processes: list[list[dict[str, Any]]], config: Any):
    assert world_size() == 1
    index = OBJECTIVES.index(config)
    assert_joint([results[index] for results in two_processes], one_step(config))


@pytest.mark.parametrize("config", [c for c in OBJECTIVES if c.kind != "autoencoder"], ids=lambda c: c.kind)
def test_each_part_alone_would_take_another_step(config: Any):
    """What the test above guards against: masks of the first rows everywhere, or centres of a part."""
    with pytest.raises(AssertionError):
        assert_joint([one_step(config, part, 2) for part in range(2)], one_step(config))


@pytest.mark.parametrize("config", {c.kind: type(c) for c in OBJECTIVES}.values(), ids=lambda c: c.kind)
def test_the_defaults_fit_the_default_network(config: Any):
    encoder = ViTConfig().build((3, 64, 64))
    x = torch.rand(2, 3, 64, 64)
    assert config().build(VisionParts(encoder, encoder.width, STEPS))(Crops(x, (x, x[:, :, :32, :32])), 0).total > 0


def test_the_encoder_is_the_one_given():
    encoder = tiny_vit()
    for config in OBJECTIVES:
        assert config.build(VisionParts(encoder, WIDTH, STEPS)).encoder is encoder
