"""Migration, distillation and mutual teaching against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from objectives.teaching.tiny_agents import STEP, batch_of_two, distilled, double, migrated, mutual, taught_batch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.core.records import PairedCrops
from jepatlas.objectives.teaching import DistillationConfig, MigrationConfig, MutualConfig, RunningMapConfig


def settle(objective: Any, batch: Any, steps: int = 6) -> None:
    """Fit the running maps without changing anything else that the loss depends on."""
    for step in range(steps):
        objective(batch, step)
        objective.after_step(step)


def ridge(x: Tensor, y: Tensor, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Ridge coefficients and offset fitted to one set of rows; repeated rows give the same map."""
    a, b = (side.detach().double().numpy() for side in (x, y))
    ac, bc = a - a.mean(0), b - b.mean(0)
    xx = ac.T @ ac
    weight = bc.T @ ac @ np.linalg.inv(xx + share * np.trace(xx) / len(xx) * np.eye(len(xx)))
    return weight, b.mean(0) - weight @ a.mean(0)


def unexplained_share(x: Tensor, y: Tensor, penalty: float) -> float:
    weight, offset = ridge(x, y, penalty)
    a, b = (side.detach().double().numpy() for side in (x, y))
    return float(((b - a @ weight.T - offset) ** 2).sum() / ((b - b.mean(0)) ** 2).sum())


@pytest.mark.parametrize("through", ["student-to-teacher", "teacher-to-student"])
def test_migration_matches_its_definition(through: Any):
    config = MigrationConfig(0.5, through, RunningMapConfig(ridge=0.1))
    student, batch = migrated(config), taught_batch()
    settle(student, batch)
    h, teacher = student.encode(batch.shared[0]), batch.shared[1]
    pair = (h, teacher) if through == "student-to-teacher" else (teacher, h)
    loss, own = student(batch, STEP), student.own(batch.own[0], STEP)
    expected = unexplained_share(*pair, penalty=0.1)
    assert loss.terms["taught"].item() == pytest.approx(expected, rel=1e-4)
    torch.testing.assert_close(loss.total, own.total + 0.5 * loss.terms["taught"])
    assert torch.equal(loss.terms["own"], own.total.detach()) and set(own.terms) < set(loss.terms)


def test_migration_gradient_matches_its_formula():
    """−2β Wᵀ(z_T − W z_S)/(b Σ Var), for the student's encoder only; teacher and map receive no gradient."""
    student, batch = migrated(MigrationConfig(3.0)).double(), double(taught_batch())
    settle(student, batch)
    teacher = batch.shared[1].clone().requires_grad_()
    ours = torch.autograd.grad(
        student(PairedCrops(batch.own, (batch.shared[0], teacher)), STEP).total - student.own(batch.own[0], STEP).total,
        [*student.own.encoder.parameters()],
        allow_unused=True,
    )
    h, through = student.encode(batch.shared[0]), student.lesson.map
    off = teacher.detach() - h.detach() @ through.weight.T - through.offset
    by_hand = -2 * 3.0 * off @ through.weight / (len(h) * through.variance)
    theirs = torch.autograd.grad(h, [*student.own.encoder.parameters()], by_hand)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_migration_lowers_the_unexplained_share_of_the_teacher():
    """Alternating map fits and gradient steps lowers the unexplained share on held-out states."""
    student, test, unexplained = migrated(MigrationConfig(5.0)), taught_batch(64, seed=99), []
    optimizer = torch.optim.AdamW(student.parameters(), lr=3e-3)
    for step in range(50):
        optimizer.zero_grad()
        student(taught_batch(16, step % 16), step).total.backward()
        optimizer.step()
        student.after_step(step)
        with torch.no_grad():
            unexplained.append(student.lesson.map(student.encode(test.shared[0]), test.shared[1]).item())
    assert np.mean(unexplained[-10:]) < 0.7 * np.mean(unexplained[5:15])


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_logit_distillation_matches_its_definition(temperature: float):
    student, batch = distilled(DistillationConfig(2.0, "logits", temperature)), taught_batch()
    h = student.encode(batch.shared[0])
    divergences = []
    for latent, logits in zip(h, batch.shared[1], strict=True):
        predicted = torch.softmax((student.lesson.head.weight @ latent + student.lesson.head.bias) / temperature, 0)
        target = torch.softmax(logits / temperature, 0)
        divergences.append(temperature**2 * (target * (target.log() - predicted.log())).sum())
    loss = student(batch, STEP)
    torch.testing.assert_close(loss.terms["taught"], torch.stack(divergences).mean().detach())
    torch.testing.assert_close(loss.total, loss.terms["own"] + 2 * loss.terms["taught"])


def test_latent_distillation_matches_its_definition():
    student, batch = distilled(DistillationConfig(1.0, "latents")), taught_batch()
    predicted = student.lesson.head(student.encode(batch.shared[0]))
    torch.testing.assert_close(
        student(batch, STEP).terms["taught"], (predicted - batch.shared[1]).square().sum(1).div(5).mean().detach()
    )


def test_cross_teaching_matches_its_definition_with_gradients_for_both():
    both, batch = mutual(MutualConfig("cross", 0.5, ridge=0.1)).double(), double(batch_of_two())
    settle(both, batch)
    z1, z2 = both.first.encode(batch.shared[0]), both.second.encode(batch.shared[1])
    loss = both(batch, STEP)
    owns = [agent(crops, STEP).total for agent, crops in zip((both.first, both.second), batch.own, strict=True)]
    assert loss.terms["mutual"].item() == pytest.approx(unexplained_share(z1, z2, 0.1), rel=1e-4)
    torch.testing.assert_close(loss.total, owns[0] + owns[1] + 0.5 * loss.terms["mutual"])
    off = (z2 - F.linear(z1, both.there.weight, both.there.offset)).detach()
    scale = 2 * 0.5 / (len(z1) * both.there.variance)
    gradients = {0: (z1, -scale * off @ both.there.weight), 1: (z2, scale * off)}
    for agent, (z, by_hand) in gradients.items():
        weights = [*(both.first, both.second)[agent].encoder.parameters()]
        ours = torch.autograd.grad(both(batch, STEP).total - owns[agent], weights)
        for one, other in zip(ours, torch.autograd.grad(z, weights, by_hand), strict=True):
            torch.testing.assert_close(one, other)


def test_alternating_teaching_updates_one_agent_at_a_time():
    both, batch = mutual(MutualConfig("alternating", 0.5, turn=2, ridge=0.1)), batch_of_two()
    agents = (both.first, both.second)
    for step in range(12):
        loss = both(batch, step)
        learner = step // 2 % 2
        if step >= 8:  # both maps are fitted
            z = [agent.encode(images) for agent, images in zip(agents, batch.shared, strict=True)]
            pair = (z[0], z[1]) if learner == 0 else (z[1], z[0])
            assert loss.terms["mutual"].item() == pytest.approx(unexplained_share(*pair, penalty=0.1), rel=1e-4)
            for number, agent in enumerate(agents):
                extra = loss.total - agent(batch.own[number], step).total
                found = torch.autograd.grad(extra, agent.encoder.class_token, retain_graph=True)[0]
                assert (found.abs().max() > 1e-6) == (number == learner)
        both.after_step(step)


def test_zero_weight_gives_the_plain_objectives():
    both, batch = mutual(MutualConfig("cross", 0.0)), batch_of_two()
    settle(both, batch)
    alone = both.first(batch.own[0], STEP).total + both.second(batch.own[1], STEP).total
    assert torch.equal(both(batch, STEP).total, alone)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: MigrationConfig(-1.0), "weight.*-1.0"),
        (lambda: MigrationConfig(through="up"), "up"),  # pyright: ignore[reportArgumentType]
        (lambda: DistillationConfig(float("nan")), "weight"),
        (lambda: DistillationConfig(temperature=0.0), "temperature.*0.0"),
        (lambda: DistillationConfig(tells="words"), "words"),  # pyright: ignore[reportArgumentType]
        (lambda: MutualConfig("both"), "both"),  # pyright: ignore[reportArgumentType]
        (lambda: MutualConfig(weight=-2.0), "weight.*-2.0"),
        (lambda: MutualConfig("alternating", turn=0), "turn.*0"),
        (lambda: MutualConfig(ridge=-1.0), "ridge.*-1.0"),
        (
            lambda: migrated(MigrationConfig())(
                PairedCrops(taught_batch().own, (taught_batch().shared[0], taught_batch().shared[1][:3])), 0
            ),
            "8.*rows",
        ),
    ],
)
def test_errors_name_the_argument(wrong: Any, message: str):
    with pytest.raises(InputError, match=message):
        wrong()
