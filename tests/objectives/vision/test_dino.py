"""DINO, iBOT and DINOv2 pair by pair and patch by patch; centres, Sinkhorn and KoLeo against their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from objectives.vision.tiny_vision import STEPS, crops, tiny
from torch import Tensor

from jepatlas.objectives.vision.dinov2 import koleo
from jepatlas.objectives.vision.prototype_configs import (
    DINOConfig,
    DINOHeadConfig,
    DINOv2Config,
    IBOTConfig,
    TemperatureConfig,
)
from jepatlas.objectives.vision.self_distillation import MovingCentre, entropy, sinkhorn

HEAD = DINOHeadConfig(prototypes=10, width=16, bottleneck=8)
STEP, ROWS = 9, 6  # half of the warm-up: τ_t is 0.055


def logits(head: Any, h: Tensor) -> Tensor:
    """Cosines of one latent with all prototypes."""
    z = head.mlp(h)
    return torch.stack([z @ w / (z.norm() * w.norm()) for w in head.prototypes])


def cross_entropy(teacher: Tensor, student: Tensor) -> Tensor:
    shares = (student / 0.1).exp() / (student / 0.1).exp().sum()
    return -sum((t * s.log() for t, s in zip(teacher, shares, strict=True)), torch.tensor(0.0))


def centred(values: Tensor, centre: Tensor) -> Tensor:
    powers = ((values - centre) / 0.055).exp()
    return powers / powers.sum(-1, keepdim=True)


def balanced(values: Tensor) -> Tensor:
    """Three Sinkhorn iterations on the matrix of all rows."""
    q = np.exp(values.detach().double().numpy() / 0.055).T
    q /= q.sum()
    for _ in range(3):
        q /= q.sum(1, keepdims=True) * len(q)
        q /= q.sum(0, keepdims=True) * q.shape[1]
    return torch.tensor(q.T * q.shape[1]).float()


def image_loss(teachers: list[Tensor], students: list[Tensor]) -> Tensor:
    pairs = [(i, j) for i in range(2) for j in range(len(students)) if i != j]
    each = [cross_entropy(teachers[i][row], students[j][row]) for i, j in pairs for row in range(ROWS)]
    return torch.stack(each).mean()


def with_centres(objective: Any) -> list[Tensor]:
    centres = [value for name, value in objective.named_buffers() if name.endswith("centre")]
    for i, centre in enumerate(centres):
        centre.copy_(0.1 * torch.randn(10, generator=torch.Generator().manual_seed(i)))
    return centres


@pytest.mark.parametrize("local", [0, 3])
def test_dino_matches_the_definition(local: int):
    objective, batch = tiny(DINOConfig(HEAD)), crops(ROWS, local=local)
    (centre,) = with_centres(objective)
    encoder, head = objective.teacher.network
    seen = [torch.stack([logits(head, encoder(x[None])[0]) for x in crop]) for crop in batch.all[:2]]
    students = [torch.stack([logits(objective.head, objective.encode(x[None])[0]) for x in c]) for c in batch.all]
    expected = image_loss([centred(values, centre) for values in seen], students)
    loss = objective(batch, STEP)
    torch.testing.assert_close(loss.total, expected, rtol=1e-4, atol=1e-5)
    before = centre.clone()
    objective.after_step(STEP)
    torch.testing.assert_close(centre, 0.9 * before + 0.1 * torch.cat(seen).mean(0), rtol=1e-4, atol=1e-5)


def patch_loss(masked: Tensor, teachers: dict[tuple[int, int], Tensor], students: Tensor, head: Any) -> Tensor:
    images = []
    for i, mask in enumerate(masked):
        where = mask.nonzero().flatten().tolist()
        each = [cross_entropy(teachers[i, n], logits(head, students[i, 1 + n])) for n in where]
        images.append(torch.stack(each).mean() if each else torch.tensor(0.0))
    return torch.stack(images).mean()


@pytest.mark.parametrize("pool", ["cls", "mean"])
@pytest.mark.parametrize("config", [IBOTConfig(HEAD), DINOv2Config(HEAD), DINOv2Config(HEAD, centring="centre")])
def test_masked_distillation_matches_the_definition(config: Any, pool: str):
    objective, batch = tiny(config, pool), crops(ROWS)
    centres = with_centres(objective)
    views = torch.cat(batch.all[:2])
    masked = objective.masks(batch.all[:2], STEP)
    assert 0 < int(masked.any(1).sum()) < 2 * ROWS  # masked and unmasked images
    encoder, *heads = objective.teacher.network
    whole = encoder.tokens(views)
    seen = torch.stack([logits(heads[0], encoder.pooled(tokens[None])[0]) for tokens in whole])
    places = [(i, int(n)) for i in range(2 * ROWS) for n in masked[i].nonzero().flatten()]
    shown = torch.stack([logits(heads[-1], whole[i, 1 + n]) for i, n in places])
    if centres:
        images, patches = centred(seen, centres[0]), centred(shown, centres[1])
    else:
        images, patches = balanced(seen), balanced(shown)
    tokens = torch.cat(
        [
            objective.encoder.tokens(x[None], masked=mask[None], mask_token=objective.mask_token)
            for x, mask in zip(views, masked, strict=True)
        ]
    )
    latents = objective.encoder.pooled(tokens)
    own = objective.heads
    students = [torch.stack([logits(own[0], h) for h in crop]) for crop in latents.chunk(2)]
    students += [torch.stack([logits(own[0], objective.encode(x[None])[0]) for x in crop]) for crop in batch.all[2:]]
    image = image_loss(list(images.chunk(2)), students)
    patch = patch_loss(masked, dict(zip(places, patches, strict=True)), tokens, own[-1])
    spread = 0.1 * spread_of(latents[:ROWS]) if config.kind == "dinov2" else torch.tensor(0.0)
    loss = objective(batch, STEP)
    torch.testing.assert_close(loss.terms["image"], image.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(loss.terms["patch"], patch.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(loss.total, image + patch + spread, rtol=1e-4, atol=1e-5)
    everywhere = torch.stack([logits(heads[-1], token) for image_tokens in whole for token in image_tokens[1:]])
    before = [centre.clone() for centre in centres]
    objective.after_step(STEP)
    for centre, old, values in zip(centres, before, (seen, everywhere), strict=False):
        torch.testing.assert_close(centre, 0.9 * old + 0.1 * values.mean(0), rtol=1e-4, atol=1e-5)


def spread_of(h: Tensor) -> Tensor:
    """KoLeo loss, row by row."""
    z = [row / row.norm() for row in h]
    nearest = [min(float((a - b).norm().detach()) for j, b in enumerate(z) if j != i) for i, a in enumerate(z)]
    return torch.tensor(-sum(math.log(distance) for distance in nearest) / len(z))


def test_koleo_matches_the_definition():
    h = torch.randn(20, 5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(koleo(h), spread_of(h), rtol=1e-5, atol=1e-6)
    inputs = h.double().requires_grad_()
    assert torch.autograd.gradcheck(koleo, (inputs,))
    same = torch.ones(3, 5, requires_grad=True)
    koleo(same).backward()
    assert same.grad is not None and same.grad.isfinite().all()


def test_sinkhorn_makes_prototypes_equally_frequent():
    values = torch.randn(40, 6, generator=torch.Generator().manual_seed(0)) + torch.arange(6)
    torch.testing.assert_close(sinkhorn(0.1 * values, 0.055), balanced(0.1 * values), rtol=1e-4, atol=1e-5)
    many = sinkhorn(values, 1.0, rounds=200)
    torch.testing.assert_close(many.sum(1), torch.ones(40))
    torch.testing.assert_close(many.sum(0), torch.full((6,), 40 / 6), rtol=1e-4, atol=1e-4)
    assert sinkhorn(values[:0], 0.1).shape == (0, 6)
    assert sinkhorn(1000 * values, 0.04).isfinite().all()


def test_entropy_matches_the_definition():
    shares = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
    assert float(entropy(shares)) == pytest.approx(math.log(4) / 2)


def test_head_is_weight_normalised():
    head, h = HEAD.build(16), torch.randn(4, 16)
    layer: Any = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(8, 10, bias=False))
    layer.parametrizations.weight.original0.data.fill_(1)
    layer.parametrizations.weight.original1.data.copy_(head.prototypes)
    torch.testing.assert_close(head(h), layer(F.normalize(head.mlp(h), dim=1)))
    assert DINOHeadConfig.published(8192) == DINOHeadConfig(8192, 2048, 256)


@pytest.mark.parametrize("config", [DINOConfig, IBOTConfig, DINOv2Config])
def test_prototypes_are_frozen_at_first(config: Any):
    objective = tiny(config(DINOHeadConfig(10, 16, 8, held=0.1)))
    for step, moves in ((0, False), (5, False), (6, True)):
        objective.zero_grad()
        objective(crops(ROWS), step).total.backward()
        found = [p.grad for name, p in objective.named_parameters() if name.endswith("prototypes") and p.requires_grad]
        assert found and all(grad is not None and bool(grad.abs().sum() > 0) == moves for grad in found)


def test_teacher_temperature_warms_up_and_stays():
    config = TemperatureConfig(warmup=0.5)
    assert [round(config.teacher_at(step, 100), 4) for step in (0, 25, 50, 99)] == [0.04, 0.055, 0.07, 0.07]
    assert TemperatureConfig(warmup=0.0).teacher_at(0, STEPS) == 0.07


def test_ibot_shares_one_head_and_dinov2_has_two():
    assert len(tiny(IBOTConfig(HEAD)).heads) == 1 and len(tiny(DINOv2Config(HEAD)).heads) == 2


def test_centre_is_updated_with_the_mean_of_all_micro_batches():
    centre, means = MovingCentre(3, 0.9, accumulate=2), torch.randn(3, 3, generator=torch.Generator().manual_seed(0))
    for mean in means:  # the first call is an evaluation before the step
        centre(torch.zeros(1, 3), 1.0, mean)
    centre.after_step()
    torch.testing.assert_close(centre.centre, 0.1 * means[1:].mean(0))
