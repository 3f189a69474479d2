"""Contract of all teaching objectives, including that two processes take the same steps as one."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import yaml
from objectives.teaching.tiny_agents import batch_of_two, distilled, double, migrated, mutual, taught_batch
from processes import run_processes
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.distributed import rank, world_size
from jepatlas.core.records import Crops, Loss, PairedCrops
from jepatlas.objectives.teaching import DistillationConfig, MigrationConfig, MutualConfig, RunningMapConfig

QUICK = RunningMapConfig(memory=2.0)
TEACHINGS = [
    MigrationConfig(map=QUICK),
    MigrationConfig(through="teacher-to-student", map=QUICK),
    DistillationConfig(),
    DistillationConfig(tells="latents"),
    MutualConfig("cross", memory=2.0),
    MutualConfig("alternating", turn=2, memory=2.0),
]
every_teaching = pytest.mark.parametrize("config", TEACHINGS, ids=[f"{i}-{c.kind}" for i, c in enumerate(TEACHINGS)])
ROWS = 8


def objective_of(config: Any, seed: int = 0) -> Any:
    return {"migration": migrated, "distillation": distilled, "mutual": mutual}[config.kind](config, seed)


def batch_for(config: Any, seed: int = 0) -> PairedCrops:
    return (batch_of_two if config.kind == "mutual" else taught_batch)(ROWS, seed)


def descend(config: Any, objective: Any, steps: int, first: int = 0) -> list[Loss]:
    optimizer = torch.optim.SGD([p for p in objective.parameters() if p.requires_grad], lr=1e-2)
    losses = []
    for step in range(first, first + steps):
        optimizer.zero_grad()
        losses.append(objective(batch_for(config, step), step))
        losses[-1].total.backward()
        optimizer.step()
        objective.after_step(step)
    return losses


@every_teaching
def test_returns_a_loss_with_gradients_for_all_weights(config: Any):
    objective = objective_of(config)
    descend(config, objective, 3)
    objective.zero_grad()
    loss = objective(batch_for(config), 3)
    assert loss.total.shape == () and loss.total.isfinite() and loss.total.dtype == torch.float32
    for name, term in loss.terms.items():
        assert term.shape == () and term.isfinite() and not term.requires_grad, name
    loss.total.backward()
    trained = {name for name, p in objective.named_parameters() if p.requires_grad}
    reached = {name for name, p in objective.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}
    assert reached == trained


@every_teaching
def test_first_agent_batch_is_accepted_by_encode(config: Any):
    objective, batch = objective_of(config).eval(), batch_for(config)
    agent = objective.first if config.kind == "mutual" else objective.own
    assert torch.equal(objective.encode(batch.x), agent.encoder(batch.own[0].x))
    assert objective.smallest_batch(16) == 2


@every_teaching
def test_evaluation_does_not_change_the_state(config: Any):
    objective = objective_of(config)
    descend(config, objective, 3)
    batch = batch_for(config, 5)
    first = objective(batch, 5).total
    objective(batch_for(config, 6), 5)
    assert torch.equal(objective(batch, 5).total, first)


@every_teaching
def test_restored_state_continues_identically(config: Any):
    one, other = objective_of(config), objective_of(config, seed=5)
    descend(config, one, 3)
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for agent in (other.first, other.second) if config.kind == "mutual" else (other.own,):
        agent.seed = 0 if agent.encoder.width == 16 else agent.seed
    ours, theirs = (descend(config, objective, 3, first=3) for objective in (one, other))
    assert all(torch.equal(a.total, b.total) for a, b in zip(ours, theirs, strict=True))


@every_teaching
def test_teaching_loss_is_computed_in_full_precision(config: Any):
    exact, mixed = objective_of(config), objective_of(config)
    for objective in (exact, mixed):
        descend(config, objective, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = mixed(batch_for(config), 3)
    assert loss.total.dtype == torch.float32 and all(term.dtype == torch.float32 for term in loss.terms.values())
    torch.testing.assert_close(loss.total, exact(batch_for(config), 3).total, rtol=0.1, atol=0.05)


@every_teaching
def test_configs_round_trip_through_recipe_files(config: Any):
    assert from_plain(type(config), yaml.safe_load(yaml.safe_dump(to_plain(config)))) == config


# Two processes, three steps, in float64 so that differences exceed rounding.


def part_of(batch: PairedCrops, part: int, parts: int) -> PairedCrops:
    def cut(rows: Tensor) -> Tensor:
        return rows.chunk(parts)[part]

    own = tuple(Crops(cut(crops.x), tuple(map(cut, crops.others))) for crops in batch.own)
    return PairedCrops(own, (cut(batch.shared[0]), cut(batch.shared[1])))


def three_steps(config: Any, part: int = 0, parts: int = 1) -> dict[str, Tensor]:
    """State and weights after three steps on slices of the joint batches."""
    objective = objective_of(config).double()
    module = DistributedDataParallel(objective) if world_size() > 1 else objective
    optimizer = torch.optim.SGD([p for p in objective.parameters() if p.requires_grad], lr=1e-2)
    for step in range(4):
        optimizer.zero_grad()
        module(part_of(double(batch_for(config, step)), part, parts), step).total.backward()
        optimizer.step()
        objective.after_step(step)
    return {name: value.clone() for name, value in objective.state_dict().items()}


def all_states() -> list[dict[str, Tensor]]:
    return [three_steps(config, rank(), world_size()) for config in TEACHINGS]


@pytest.fixture(scope="module")
def two_processes() -> list[list[dict[str, Tensor]]]:
    return run_processes(all_states, 2)


@every_teaching
def test_two_processes_match_one_process(two_processes: list[Any], config: Any):
    joint = three_steps(config)
    for states in two_processes:
        for name, value in joint.items():
            torch.testing.assert_close(states[TEACHINGS.index(config)][name], value, rtol=1e-8, atol=1e-10)
