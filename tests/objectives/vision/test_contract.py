"""Contract of all objectives on images; distributed training is tested in `test_two_processes.py`."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import yaml
from objectives.vision.every_objective import (
    MASKING,
    OBJECTIVES,
    ON_VIT,
    ROWS,
    STEP,
    descend,
    every_objective,
    gradients,
    made,
    named,
    width,
)
from objectives.vision.tiny_crops import DIM, on_crops, spread, tiny_conv
from objectives.vision.tiny_vision import STEPS, around, crops, tiny_vit

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.errors import InputError
from jepatlas.core.records import Crops, Loss
from jepatlas.core.seeding import forked_rng
from jepatlas.nn import ConvConfig
from jepatlas.objectives import LeJEPAConfig
from jepatlas.objectives.vision.crop_objective import VisionParts
from jepatlas.objectives.vision.joint_embedding_configs import CropLeJEPAConfig

POOLS = [(c, pool) for c in OBJECTIVES for pool in (("cls", "mean") if c in ON_VIT else ("own",))]


@pytest.mark.parametrize(("config", "pool"), POOLS, ids=lambda value: value if isinstance(value, str) else named(value))
def test_returns_a_loss_with_gradients_for_all_weights(config: Any, pool: str):
    objective = made(config, pool=pool)
    loss = objective(crops(ROWS), STEP)
    assert isinstance(loss, Loss) and loss.terms
    assert loss.total.shape == () and loss.total.isfinite() and loss.total.dtype == torch.float32
    for name, term in loss.terms.items():
        assert term.shape == () and term.isfinite() and not term.requires_grad, name
    loss.total.backward()
    found = gradients(objective)
    assert set(found) == {name for name, p in objective.named_parameters() if p.requires_grad}
    assert not any(name.startswith(("target", "teacher")) for name in found)
    largest = max(float(g.abs().max()) for g in found.values())
    for name, gradient in found.items():
        assert gradient.isfinite().all() and gradient.abs().max() > 1e-5 * largest, name


@every_objective
def test_encode_gives_one_latent_per_row(config: Any):
    objective = made(config).eval()
    x = crops(6).x
    h = objective.encode(x)
    assert h.shape == (6, width(config)) and torch.equal(h, objective.encoder(x))
    torch.testing.assert_close(objective.encode(x[2:4]), h[2:4])


@every_objective
def test_schedules_count_steps_not_micro_batches(config: Any):
    """After a third of the micro-batches, schedules are at a third of the steps."""
    batch, parts, whole = crops(ROWS), made(config), made(config)
    parts.accumulate, whole.steps = 4, 4 * STEPS
    for number in (0, 4, 40, 4 * STEPS - 4):
        torch.testing.assert_close(parts(batch, number).total, whole(batch, number).total)


@every_objective
def test_same_step_gives_identical_results(config: Any):
    """Masks and slices depend on step and seed unless fixed; DINO's temperature depends on the step."""
    batch = crops(ROWS)

    def value(objective: Any, step: int) -> float:
        torch.manual_seed(torch.seed())  # independent of the global generator
        return float(objective(batch, step).total.detach())

    objective = made(config)
    first = value(objective, STEP)
    assert value(objective, STEP) == first  # evaluation changes nothing
    assert value(made(config), STEP) == first
    fresh = config.kind == "lejepa" and config.loss.sigreg.fresh
    assert (value(objective, STEP + 1) != first) == (config.kind in MASKING | {"dino"} or fresh)
    objective.seed = 1
    assert (value(objective, STEP) != first) == (config.kind in MASKING | {"lejepa"})


@every_objective
def test_byte_images_match_scaled_floats(config: Any):
    """The ViT takes floats in [0, 1]; the convolutional network in [−½, ½], with crops of one size only."""
    on_vit = config in ON_VIT
    with forked_rng(0, "encoder"):
        encoder = tiny_vit() if on_vit else ConvConfig((8,), hidden=8).build((3, 16, 16), DIM)
    objective = around(encoder, width(config), config, seed=0, apart=0.05)
    stored = [(crop * 255).round().to(torch.uint8) for crop in crops(ROWS, local=2 if on_vit else 0).all]
    shares = [crop.float() / 255 - (0.0 if on_vit else 0.5) for crop in stored]
    one, other = (objective(Crops(c[0], tuple(c[1:])), STEP).total for c in (stored, shares))
    assert one.isfinite()
    torch.testing.assert_close(one, other)


@every_objective
def test_loss_is_computed_in_full_precision_under_autocast(config: Any):
    batch = crops(ROWS)
    exact, mixed = made(config)(batch, STEP), made(config)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = mixed(batch, STEP)
    assert loss.total.dtype == torch.float32 and all(term.dtype == torch.float32 for term in loss.terms.values())
    torch.testing.assert_close(loss.total, exact.total, rtol=0.1, atol=0.05)
    loss.total.backward()
    assert all(g.isfinite().all() for g in gradients(mixed).values())


@every_objective
def test_restored_state_gives_the_same_outputs(config: Any):
    first, second = made(config), made(config, seed=5)
    descend(first, 2)
    batch = crops(ROWS)
    assert not torch.equal(first(batch, 7).total, second(batch, 7).total)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    second.seed = first.seed
    assert torch.equal(first(batch, 7).total, second(batch, 7).total)


def learnable_loss(loss: Loss) -> float:
    """The part of the loss that training can lower.

    The entropy of a teacher's assignments rises while its centre adapts and its temperature increases. The student
    can only lower the excess of the cross-entropy over this entropy.
    """
    distilled = "teacher_entropy" in loss.terms
    return float(loss.terms["image"] - loss.terms["teacher_entropy"]) if distilled else float(loss.total)


@every_objective
def test_training_lowers_the_loss_without_collapse(config: Any):
    """Constant latents minimise comparisons of crops, so for these objectives the latents are checked as well."""
    objective = made(config, apart=0.0)
    size, directions = spread(objective)
    values = [learnable_loss(loss) for loss in descend(objective, 40)]
    assert sum(values[-8:]) < 0.9 * sum(values[:8])
    if config.crops != "one":
        now, left = spread(objective)
        assert now > 0.5 * size and left > 1.5, (size, directions, now, left)


def test_alignment_without_regularisation_collapses():
    """The measure of collapse used in the test above detects a real collapse."""
    objective = on_crops(CropLeJEPAConfig(LeJEPAConfig(0.0), projector=()), apart=0.0)
    size, _ = spread(objective)
    descend(objective, 40)
    assert spread(objective)[0] < 0.5 * size


@every_objective
def test_configs_round_trip_through_recipe_files(config: Any):
    assert from_plain(type(config), yaml.safe_load(yaml.safe_dump(to_plain(config)))) == config


@every_objective
def test_smallest_batch_is_sufficient(config: Any):
    objective = made(config)
    loss = objective(crops(objective.smallest_batch(width(config))), STEP)
    loss.total.backward()
    assert loss.total.isfinite() and all(g.isfinite().all() for g in gradients(objective).values())


@every_objective
def test_number_of_crops_is_checked(config: Any):
    objective, batch = made(config), crops(4)
    assert objective(Crops(batch.x, batch.others[:1]), STEP).total.isfinite()
    if config.crops == "one":
        assert objective(Crops(batch.x), STEP).total.isfinite()
        return
    for too_few in (Crops(batch.x), Crops(batch.x, (batch.others[0][:3],))):
        with pytest.raises(InputError, match="two crops"):
            objective(too_few, STEP)


@every_objective
def test_encoder_is_not_copied(config: Any):
    encoder = tiny_vit() if config in ON_VIT else tiny_conv()
    assert config.build(VisionParts(encoder, width(config), STEPS)).encoder is encoder
