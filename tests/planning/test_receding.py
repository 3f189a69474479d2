"""Receding-horizon control: replanning, warm starts and termination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from jepatlas.core.contracts import Cost
from jepatlas.core.errors import InputError
from jepatlas.core.records import Plan
from jepatlas.planning import ActionBox, CEMConfig, LQRConfig, finite_regulator, receding_horizon
from jepatlas.planning.receding import shift_plan
from jepatlas.testing.linear_problems import double_integrator

BOX = ActionBox.symmetric(3.0, 2)


class World:
    """The double integrator with a disturbance at one time, which only replanning corrects."""

    def __init__(self, gust: int | None = None, near: float = 0.0) -> None:
        self.problem, self.gust, self.near, self.time = double_integrator(), gust, near, 0
        self.info: dict[str, Tensor] = dict(self.problem.info)
        self.seen: list[Tensor] = []

    def step(self, actions: Tensor) -> Mapping[str, Tensor]:
        self.seen.append(actions)
        start = self.problem.system.rollout(self.info["start"], actions[:, None])[:, 0]
        start = start + (0.5 if self.time == self.gust else 0.0)
        self.time += 1
        self.info = {"start": start, "goal": self.info["goal"], "done": self.distance(start) < self.near}
        return self.info

    def distance(self, start: Tensor) -> Tensor:
        return (start - self.info["goal"]).norm(dim=-1)


def drive(planner: Any, world: World, **how: Any):
    return receding_horizon(planner, world.problem.cost, world.info, world.step, **how)


def test_a_single_plan_is_executed_unchanged():
    world, planner = World(), LQRConfig(8).build(BOX)
    loop = drive(planner, world, steps=8, replan=8)
    plan = planner(world.problem.cost, world.problem.info, torch.Generator())
    assert torch.equal(loop.actions, plan.actions) and torch.equal(loop.expected[:, 0], plan.cost)
    assert torch.equal(torch.stack(world.seen, 1), loop.actions) and not loop.done.any()


def test_each_plan_starts_from_the_current_state():
    """With LQR, the first action of each plan is the first gain applied to the current state."""
    world = World(gust=2)
    system, weights = world.problem.system, world.problem.cost.weights
    gain = torch.as_tensor(finite_regulator(system, weights, 8).gains[0])
    loop, h = drive(LQRConfig(8).build(BOX), world, steps=5), world.problem.info["start"]
    for s in range(5):
        torch.testing.assert_close(loop.actions[:, s], BOX.clamp(-(h - world.info["goal"]) @ gain.T))
        h = system.rollout(h, loop.actions[:, s : s + 1])[:, 0] + (0.5 if s == 2 else 0.0)
    assert loop.expected.shape == (3, 5)


def test_replanning_corrects_a_disturbance():
    remaining = {}
    for replan in (1, 16):
        world = World(gust=3)
        drive(LQRConfig(16).build(BOX), world, steps=16, replan=replan)
        remaining[replan] = world.distance(world.info["start"])
    assert (remaining[1] < 0.5 * remaining[16]).all()


def test_plans_are_warm_started_with_the_remainder():
    given: list[Tensor | None] = []

    def planner(cost: Cost, info: Mapping[str, Tensor], generator: torch.Generator, warm: Tensor | None = None) -> Plan:
        given.append(warm)
        actions = torch.arange(6.0).view(1, 6, 1).expand(len(info["start"]), 6, 2) + 10 * len(given)
        return Plan(actions.double(), torch.zeros(len(info["start"]), dtype=torch.float64))

    drive(planner, World(), steps=5, replan=2)
    assert given[0] is None and len(given) == 3
    for count, warm in enumerate(given[1:], 1):
        assert warm is not None
        assert warm[0, :, 0].tolist() == [10 * count + s for s in (2, 3, 4, 5, 5, 5)]


def test_shift_plan_repeats_the_last_action():
    actions = torch.arange(3.0).view(1, 3, 1)
    assert shift_plan(actions, 0).flatten().tolist() == [0, 1, 2]
    assert shift_plan(actions, 1).flatten().tolist() == [1, 2, 2]
    assert shift_plan(actions, 9).flatten().tolist() == [2, 2, 2]


def test_starts_that_are_done_are_not_planned_for():
    """The plans of the other starts do not depend on the starts that are done."""
    world = World(near=0.35)
    loop = drive(CEMConfig(8).build(BOX), world, steps=40)
    assert loop.done.all() and loop.actions.shape[1] < 40
    ends = loop.expected.isfinite().sum(1)
    assert ends.min() < ends.max() == loop.actions.shape[1]
    for row in range(3):
        assert (loop.actions[row, ends[row] :] == 0).all() and (loop.actions[row, : ends[row]] != 0).any(1).all()
        alone = World(near=0.35)
        alone.info = {name: value[row : row + 1] for name, value in alone.info.items()}
        single = drive(CEMConfig(8).build(BOX), alone, steps=40)
        torch.testing.assert_close(single.actions[0], loop.actions[row, : ends[row]], rtol=1e-6, atol=1e-6)


def test_unreachable_starts_are_listed():
    def cost(info: Mapping[str, Tensor], actions: Tensor) -> Tensor:
        unreachable = torch.tensor([0.0, float("inf"), 0.0])[: len(actions), None]
        return unreachable.expand(actions.shape[:2])

    world = World()
    loop = receding_horizon(CEMConfig(4).build(BOX), cost, world.info, world.step, steps=3, seed=1)
    assert loop.unreachable == (1,) and loop.actions.isfinite().all()


def test_invalid_replan_and_start_are_refused():
    world, planner = World(), LQRConfig(4).build(BOX)
    with pytest.raises(InputError, match=r"replan is 5.*4 actions"):
        drive(planner, world, steps=8, replan=5)
    with pytest.raises(InputError, match="replan is 0"):
        drive(planner, world, steps=8, replan=0)
    world.info = world.info | {"done": torch.ones(3, dtype=torch.bool)}
    with pytest.raises(InputError, match="done"):
        drive(planner, world, steps=8)
