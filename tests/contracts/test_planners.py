"""Contract of planners: near-optimal cost, bounds, infinite costs, batching, determinism and rejected input."""

from __future__ import annotations

import math
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from jepatlas.core.contracts import Planner
from jepatlas.core.errors import InputError
from jepatlas.core.records import Plan
from jepatlas.core.seeding import torch_generator
from jepatlas.planning import (
    ActionBox,
    CEMConfig,
    GradientConfig,
    ICEMConfig,
    LQRConfig,
    MPPIConfig,
    PlannerConfig,
    ShootingConfig,
    StraightLineConfig,
)
from jepatlas.testing import check_planner
from jepatlas.testing.linear_problems import Problem, double_integrator, rotation, walker
from jepatlas.testing.planner_contract import Trial, marks_unreachable_goals

HORIZON = 8
WIDE = ActionBox.symmetric(3.0, 2)  # no optimal action reaches the bound
NARROW = ActionBox((-0.5, -1.0), (0.25, 2.0))
# Add new planners here, with their largest cost relative to the optimum.
FACTORS: dict[Any, float] = {
    CEMConfig(HORIZON, iterations=16): 1.1,
    ICEMConfig(HORIZON, samples=256, iterations=16): 1.25,
    MPPIConfig(HORIZON, iterations=16): 1.02,
    MPPIConfig(HORIZON, iterations=16, temperature=0.05, relative=False, colour=0.5): 1.1,
    GradientConfig(HORIZON, rate=0.1, restarts=2): 1.01,
    GradientConfig(HORIZON, rate=0.1, restarts=2, bounds="tanh"): 1.02,
    ShootingConfig(HORIZON, samples=4096): 4.0,
    StraightLineConfig(HORIZON): 1.01,
    LQRConfig(HORIZON): 1 + 1e-9,
}
CONFIGS = list(FACTORS)
NOT_SEARCHING = ("lqr", "straight-line")  # evaluate the cost of one sequence only


def parametrised(configs: list[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("config", configs, ids=[f"{CONFIGS.index(c)}-{c.kind}" for c in configs])


every_planner = parametrised(CONFIGS)
all_but_lqr = parametrised([config for config in CONFIGS if config.kind != "lqr"])


def world_of(config: Any) -> Problem:
    """The world of a planner. A straight line is optimal without inertia only."""
    return walker() if config.kind == "straight-line" else double_integrator()


def plan(planner: Planner, problem: Problem, warm: Tensor | None = None, *, name: str = "noise") -> Plan:
    return planner(problem.cost, problem.info, torch_generator(0, name), warm)


def optimum(problem: Problem) -> Plan:
    return plan(LQRConfig(HORIZON).build(WIDE), problem)


@every_planner
def test_planners_keep_the_contract(config: Any):
    inertia = config.kind != "straight-line"
    check_planner(config, factor=FACTORS[config], inertia=inertia, searches=config.kind not in NOT_SEARCHING)


def test_a_straight_line_to_an_unreachable_goal_is_marked():
    marks_unreachable_goals(Trial(StraightLineConfig(HORIZON), factor=1.01, inertia=False))


def test_list_contains_every_planner():
    assert {type(config) for config in CONFIGS} == set(get_args(PlannerConfig))


@every_planner
def test_bounds_are_reached_where_the_optimum_is_beyond_them(config: Any):
    actions = plan(config.build(NARROW), world_of(config)).actions
    low, high = NARROW.sides(actions)
    assert (actions == high).any() or (actions == low).any() or config.kind in ("shooting", "gradient", "mppi")


@every_planner
def test_other_noise_gives_other_actions(config: Any):
    problem, planner = world_of(config), config.build(WIDE)
    first, other = (plan(planner, problem, name=name).actions for name in ("noise", "other"))
    if config.kind not in ("lqr", "gradient"):  # the restart without noise may be the best
        assert not torch.equal(first, other)


@every_planner
def test_rotated_latents_give_the_same_actions(config: Any):
    problem, planner = world_of(config), config.build(WIDE)
    rotated = problem.rotated(rotation(problem.info["start"].shape[1]))
    torch.testing.assert_close(plan(planner, rotated).actions, plan(planner, problem).actions, rtol=0, atol=1e-6)


@all_but_lqr
def test_warm_start_lowers_the_cost(config: Any):
    """With few iterations, a search from the perturbed optimum is better than one from zero."""
    problem = world_of(config)
    best = optimum(problem).actions
    warm = best + 0.1 * torch.randn(best.shape, generator=torch_generator(0, "error"), dtype=best.dtype)
    effort = {"gradient": {"steps": 5}, "shooting": {"samples": 64}, "straight-line": {"rounds": 1}}
    short = type(config)(HORIZON, **effort.get(config.kind, {"iterations": 2})).build(WIDE)
    assert plan(short, problem, warm).cost.sum() < plan(short, problem).cost.sum()


@every_planner
def test_invalid_inputs_are_rejected(config: Any):
    problem, planner = world_of(config), config.build(WIDE)
    if config.kind != "lqr":
        with pytest.raises(InputError, match=r"warm.*\(3, 8, 2\).*\(3, 5, 2\)"):
            plan(planner, problem, torch.zeros(3, 5, 2))
    with pytest.raises(InputError, match="horizon is 0"):
        type(config)(0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: CEMConfig(samples=8, elites=9), "elites is 9.*8"),
        (lambda: CEMConfig(spread=0.0), "spread is 0.0"),
        (lambda: CEMConfig(momentum=1.0), "momentum is 1.0"),
        (lambda: ICEMConfig(elites=1), "elites is 1"),
        (lambda: ICEMConfig(decay=0.5), "decay is 0.5"),
        (lambda: ICEMConfig(kept=1.5), "kept is 1.5"),
        (lambda: ICEMConfig(colour=-1.0), "colour is -1.0"),
        (lambda: MPPIConfig(temperature=0.0), "temperature is 0.0"),
        (lambda: MPPIConfig(narrowing=math.nan), "narrowing is nan"),
        (lambda: GradientConfig(bounds="mirror"), "bounds.*mirror"),  # pyright: ignore
        (lambda: GradientConfig(rate=-1.0), "rate is -1.0"),
        (lambda: ShootingConfig(samples=0), "samples is 0"),
        (lambda: StraightLineConfig(narrowing=1.0), "narrowing is 1.0"),
    ],
)
def test_invalid_settings_are_rejected(wrong: Any, message: str):
    with pytest.raises(InputError, match=message):
        wrong()
