"""Contract of planners: near-optimal cost, bounds, infinite costs, batching, determinism and rejected input."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from linear_worlds import Problem, double_integrator, rotation, walker
from torch import Tensor

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.contracts import Cost, Planner
from jepatlas.core.errors import InputError
from jepatlas.core.records import Plan
from jepatlas.core.seeding import torch_generator
from jepatlas.planning import (
    PLANNERS,
    ActionBox,
    CEMConfig,
    GradientConfig,
    ICEMConfig,
    LQRConfig,
    MPPIConfig,
    ShootingConfig,
    StraightLineConfig,
    unreachable,
)

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
every_search = parametrised([config for config in CONFIGS if config.kind not in NOT_SEARCHING])
all_but_lqr = parametrised([config for config in CONFIGS if config.kind != "lqr"])


def world_of(config: Any) -> Problem:
    """The world of a planner. A straight line is optimal without inertia only."""
    return walker() if config.kind == "straight-line" else double_integrator()


def plan(planner: Planner, problem: Problem, warm: Tensor | None = None, *, name: str = "noise") -> Plan:
    return planner(problem.cost, problem.info, torch_generator(0, name), warm)


def optimum(problem: Problem) -> Plan:
    return plan(LQRConfig(HORIZON).build(WIDE), problem)


@dataclass(frozen=True, eq=False)
class SpoiltCost:
    """A cost with the same dynamics that is not finite where `spoils` is true."""

    cost: Cost
    spoils: Any
    value: float = math.inf

    @property
    def dynamics(self) -> Any:
        return self.cost.dynamics  # pyright: ignore[reportAttributeAccessIssue]

    def __call__(self, info: Mapping[str, Tensor], actions: Tensor) -> Tensor:
        return torch.where(self.spoils(info, actions), self.value, self.cost(info, actions))


def test_list_contains_every_planner():
    assert {config.kind for config in CONFIGS} == set(PLANNERS)
    assert all(PLANNERS[config.kind] is type(config) for config in CONFIGS)


@every_planner
def test_configs_round_trip_through_plain_data(config: Any):
    assert from_plain(PLANNERS[config.kind], to_plain(config)) == config


@every_planner
def test_cost_is_near_the_optimum(config: Any):
    problem = world_of(config)
    best = optimum(problem)
    found = plan(config.build(WIDE), problem)
    assert (found.cost >= best.cost * (1 - 1e-9)).all()
    assert (found.cost <= best.cost * FACTORS[config]).all(), found.cost / best.cost


@every_planner
def test_cost_of_a_plan_matches_its_actions(config: Any):
    problem = world_of(config)
    found = plan(config.build(WIDE), problem)
    assert found.actions.shape == (3, HORIZON, 2) and found.cost.shape == (3,)
    assert not found.actions.requires_grad and not found.cost.requires_grad
    torch.testing.assert_close(found.cost, problem.cost(problem.info, found.actions[:, None])[:, 0])


@every_planner
def test_actions_stay_within_each_bound(config: Any):
    actions = plan(config.build(NARROW), world_of(config)).actions
    low, high = NARROW.sides(actions)
    assert (actions >= low).all() and (actions <= high).all()
    assert (actions == high).any() or (actions == low).any() or config.kind in ("shooting", "gradient", "mppi")


@every_planner
def test_plans_do_not_depend_on_the_batch(config: Any):
    problem, planner = world_of(config), config.build(WIDE)
    together = plan(planner, problem)
    for row in range(3):
        alone = Problem(problem.cost, {name: value[row : row + 1] for name, value in problem.info.items()})
        torch.testing.assert_close(plan(planner, alone).actions[0], together.actions[row], rtol=1e-9, atol=1e-9)


@every_planner
def test_same_noise_gives_identical_actions(config: Any):
    problem, planner = world_of(config), config.build(WIDE)
    first, again, other = (plan(planner, problem, name=name).actions for name in ("noise", "noise", "other"))
    assert torch.equal(first, again)
    if config.kind not in ("lqr", "gradient"):  # the restart without noise may be the best
        assert not torch.equal(first, other)


@every_planner
def test_rotated_latents_give_the_same_actions(config: Any):
    problem, planner = world_of(config), config.build(WIDE)
    rotated = problem.rotated(rotation(problem.info["start"].shape[1]))
    torch.testing.assert_close(plan(planner, rotated).actions, plan(planner, problem).actions, rtol=0, atol=1e-6)


@every_search
def test_actions_of_infinite_cost_are_never_chosen(config: Any):
    """Candidates with a positive first action, about half of them, have a cost that is not finite."""
    problem = world_of(config)
    for value in (math.inf, math.nan, -math.inf):
        spoilt = SpoiltCost(problem.cost, lambda info, actions: actions[:, :, 0, 0] > 0, value)
        found = plan(config.build(WIDE), Problem(spoilt, problem.info))  # pyright: ignore[reportArgumentType]
        assert found.cost.isfinite().all()
        assert (found.actions[:, 0, 0] <= 0).all()


@all_but_lqr
@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_unreachable_goals_cost_infinity(config: Any, value: float):
    problem = world_of(config)
    blocked = torch.tensor([False, True, False])
    spoilt = SpoiltCost(problem.cost, lambda info, actions: blocked[:, None], value)
    found = plan(config.build(WIDE), Problem(spoilt, problem.info))  # pyright: ignore[reportArgumentType]
    assert unreachable(found) == (1,) and found.cost[1] == math.inf
    assert found.actions.isfinite().all()
    without = plan(config.build(WIDE), problem)  # other goals are unaffected
    torch.testing.assert_close(found.actions[blocked.logical_not()], without.actions[blocked.logical_not()])


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
def test_float32_plans_are_near_the_optimum(config: Any):
    problem = world_of(config)
    single = Problem(problem.cost, {name: value.float() for name, value in problem.info.items()})
    found = plan(config.build(WIDE), single)
    assert found.actions.dtype == found.cost.dtype == torch.float32
    assert (found.cost <= optimum(problem).cost * (FACTORS[config] + 1e-3)).all()


@every_planner
def test_invalid_inputs_are_rejected(config: Any):
    problem, planner = world_of(config), config.build(WIDE)
    with pytest.raises(InputError, match=r"'goal'.*start"):
        plan(planner, Problem(problem.cost, {"start": problem.info["start"]}))
    with pytest.raises(InputError, match=r"start.*goal"):
        plan(planner, Problem(problem.cost, problem.info | {"goal": problem.info["goal"][:1]}))
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
