"""Contract of planners, on linear problems with a known optimum."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from jepatlas.core.contracts import Cost, Planner
from jepatlas.core.records import Plan
from jepatlas.core.seeding import torch_generator
from jepatlas.planning import ActionBox, LQRConfig, unreachable
from jepatlas.testing.contract import check_rules, expect, expect_input_error, round_trips
from jepatlas.testing.linear_problems import Problem, double_integrator, walker

__all__ = ["PLANNER_RULES", "SEARCH_RULES", "SpoiltCost", "Trial", "check_planner", "marks_unreachable_goals"]

WIDE = ActionBox.symmetric(3.0, 2)  # no optimal action reaches the bound
NARROW = ActionBox((-0.5, -1.0), (0.25, 2.0))


@dataclass(frozen=True)
class Trial:
    """A planner's configuration and the requirements on it."""

    config: Any
    factor: float
    inertia: bool

    @property
    def problem(self) -> Problem:
        return double_integrator() if self.inertia else walker()

    def plan(self, problem: Problem, box: ActionBox = WIDE, *, name: str = "noise") -> Plan:
        return _plan(self.config.build(box), problem, name)

    @property
    def optimum(self) -> Plan:
        return _plan(LQRConfig(self.config.horizon).build(WIDE), self.problem)

    def __str__(self) -> str:
        return str(self.config)


def _plan(planner: Planner, problem: Problem, name: str = "noise") -> Plan:
    return planner(problem.cost, problem.info, torch_generator(0, name), None)


def check_planner(config: Any, *, factor: float = 4.0, inertia: bool = True, searches: bool = True) -> None:
    """Check a configuration with a `horizon` whose `build(box)` gives a planner.

    Its cost must be at most `factor` times the optimum: of a double integrator, or without `inertia` of a point that
    actions move. `searches`: it compares costs of candidates, so it must avoid those that are infinite.
    """
    check_rules(config, [round_trips])
    trial = Trial(config, factor, inertia)
    check_rules(trial, PLANNER_RULES)
    if searches:
        check_rules(trial, SEARCH_RULES)


def cost_is_near_the_optimum(trial: Trial) -> None:
    """The cost of a plan is between the optimum and `factor` times the optimum."""
    found, best = trial.plan(trial.problem).cost, trial.optimum.cost
    worst = float((found / best).max())
    expect((found >= best * (1 - 1e-9)).all(), "a cost is below the optimum: is it that of the actions?")
    expect(worst <= trial.factor, f"the cost is {worst:.3g} times the optimum, more than {trial.factor:g}.")


def cost_is_that_of_the_actions(trial: Trial) -> None:
    """A plan has actions (b, horizon, a) and their cost (b,), without gradients."""
    problem = trial.problem
    found = trial.plan(problem)
    shape = (3, trial.config.horizon, 2)
    expect(found.actions.shape == shape, f"actions have the shape {tuple(found.actions.shape)}, not {shape}.")
    expect(not found.actions.requires_grad and not found.cost.requires_grad, "the plan has gradients.")
    torch.testing.assert_close(found.cost, problem.cost(problem.info, found.actions[:, None])[:, 0])


def actions_stay_within_each_bound(trial: Trial) -> None:
    """Actions are in the box, with its own bounds for each action."""
    actions = trial.plan(trial.problem, NARROW).actions
    low, high = NARROW.sides(actions)
    expect((actions >= low).all() and (actions <= high).all(), "an action is outside of the box.")


def plans_do_not_depend_on_the_batch(trial: Trial) -> None:
    """The plan for a start is the same alone and among others."""
    problem = trial.problem
    together = trial.plan(problem).actions
    for row in range(len(together)):
        alone = Problem(problem.cost, {name: value[row : row + 1] for name, value in problem.info.items()})
        torch.testing.assert_close(trial.plan(alone).actions[0], together[row], rtol=1e-9, atol=1e-9)


def same_noise_gives_identical_actions(trial: Trial) -> None:
    """All randomness comes from the generator that the planner is given."""
    first, again = (trial.plan(trial.problem).actions for _ in range(2))
    expect(torch.equal(first, again), "equal generators give different actions.")


def plans_in_float32(trial: Trial) -> None:
    """Inputs in float32 give a plan in float32, as good as that in float64."""
    problem = trial.problem
    single = Problem(problem.cost, {name: value.float() for name, value in problem.info.items()})
    found = trial.plan(single)
    types = {found.actions.dtype, found.cost.dtype}
    expect(types == {torch.float32}, f"the plan is {types}.")
    worst = float((found.cost / trial.optimum.cost).max())
    expect(worst <= trial.factor + 1e-3, f"the cost is {worst:.3g} times the optimum.")


def invalid_inputs_are_rejected(trial: Trial) -> None:
    """A missing goal, and starts and goals of different number, raise InputError."""
    problem = trial.problem
    start, goal = problem.info["start"], problem.info["goal"]
    expect_input_error(lambda: trial.plan(Problem(problem.cost, {"start": start})))
    expect_input_error(lambda: trial.plan(Problem(problem.cost, {"start": start, "goal": goal[:1]})))
    expect_input_error(lambda: dataclasses.replace(trial.config, horizon=0))


@dataclass(frozen=True, eq=False)
class SpoiltCost:
    """A cost with the same dynamics that is not finite where `spoils` is true."""

    cost: Cost
    spoils: Callable[[Mapping[str, Tensor], Tensor], Tensor]
    value: float = math.inf

    @property
    def dynamics(self) -> Any:
        return self.cost.dynamics  # pyright: ignore[reportAttributeAccessIssue]

    def __call__(self, info: Mapping[str, Tensor], actions: Tensor) -> Tensor:
        return torch.where(self.spoils(info, actions), self.value, self.cost(info, actions))


def _spoilt(problem: Problem, spoils: Callable[[Mapping[str, Tensor], Tensor], Tensor], value: float) -> Problem:
    cost: Any = SpoiltCost(problem.cost, spoils, value)
    return Problem(cost, problem.info)


def actions_of_infinite_cost_are_never_chosen(trial: Trial) -> None:
    """Where half of all candidates cost ∞, NaN or −∞, the plan is one of the others."""
    for value in (math.inf, math.nan, -math.inf):
        found = trial.plan(_spoilt(trial.problem, lambda info, actions: actions[:, :, 0, 0] > 0, value))
        expect(found.cost.isfinite().all(), f"with candidates that cost {value}, the cost is {found.cost.tolist()}.")
        expect((found.actions[:, 0, 0] <= 0).all(), f"an action that costs {value} was chosen.")


def marks_unreachable_goals(trial: Trial) -> None:
    """Where every candidate costs ∞ or NaN, the cost is ∞, actions are finite, and other rows are unaffected."""
    blocked = torch.tensor([False, True, False])
    without = trial.plan(trial.problem)
    for value in (math.inf, math.nan):
        found = trial.plan(_spoilt(trial.problem, lambda info, actions: blocked[:, None], value))
        expect(unreachable(found) == (1,) and found.cost[1] == math.inf, f"costs are {found.cost.tolist()}.")
        expect(found.actions.isfinite().all(), "actions are not finite.")
        torch.testing.assert_close(found.actions[~blocked], without.actions[~blocked])


PLANNER_RULES = (
    cost_is_near_the_optimum,
    cost_is_that_of_the_actions,
    actions_stay_within_each_bound,
    plans_do_not_depend_on_the_batch,
    same_noise_gives_identical_actions,
    plans_in_float32,
    invalid_inputs_are_rejected,
)
SEARCH_RULES = (actions_of_infinite_cost_are_never_chosen, marks_unreachable_goals)
