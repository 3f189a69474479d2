"""Receding horizon: plan, act for a while, plan again from where that led, and begin from what is left of the plan.

The world is a function `step(actions (b, a)) -> info`: the next "start" and "goal", and where it says so "done", (b,).
Starts that are done are planned for no longer; their actions are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from jepatlas.core.contracts import Cost, Planner
from jepatlas.core.errors import InputError
from jepatlas.core.records import Plan
from jepatlas.core.seeding import torch_generator
from jepatlas.planning.checks import check_count, latents

__all__ = ["ClosedLoop", "receding_horizon", "shifted"]

Step = Callable[[Tensor], Mapping[str, Tensor]]


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """What was done, and what was expected of it."""

    actions: Tensor  # (b, steps, a)
    expected: Tensor  # (b, plans): the cost of each plan; NaN where a start was done by then
    done: Tensor  # (b,) bool

    @property
    def out_of_reach(self) -> tuple[int, ...]:
        """The starts whose first plan already cost +∞: nothing that was tried leads to the goal."""
        return tuple(int(row) for row in self.expected[:, 0].isinf().nonzero())


def receding_horizon(
    planner: Planner,
    cost: Cost,
    info: Mapping[str, Tensor],
    step: Step,
    *,
    steps: int,
    replan: int = 1,
    seed: int = 0,
) -> ClosedLoop:
    """At most so many steps, with a new plan every `replan` of them; noise is derived from (seed, time)."""
    check_count("steps", steps)
    check_count("replan", replan)
    done, warm, plan = _done(info), None, None
    taken, expected = [], []
    for s in range(steps):
        if bool(done.all()):
            break
        if s % replan == 0:
            rows, generator = (~done).nonzero()[:, 0], torch_generator(seed, "plan", s, device=info["start"].device)
            found = planner(cost, _rows(info, rows), generator, None if warm is None else warm[rows])
            plan = _spread(_long_enough(found, replan), rows, len(done))
            warm = shifted(plan.actions, replan)
            expected.append(plan.cost)
        assert plan is not None
        taken.append(torch.where(done[:, None], 0.0, plan.actions[:, s % replan]))
        info = step(taken[-1])
        done = done | _done(info)
    if not taken:
        raise InputError("All starts are done before the first step: there is nothing to plan.")
    return ClosedLoop(torch.stack(taken, dim=1), torch.stack(expected, dim=1), done)


def shifted(actions: Tensor, count: int) -> Tensor:
    """What is left of a plan after its first `count` actions, with the last one repeated, (b, t, a).

    >>> shifted(torch.tensor([[[1.0], [2.0], [3.0]]]), 2).flatten()
    tensor([3., 3., 3.])
    """
    rest = actions[:, min(count, actions.shape[1] - 1) :]
    return torch.cat([rest, rest[:, -1:].expand(-1, actions.shape[1] - rest.shape[1], -1)], dim=1)


def _spread(found: Plan, rows: Tensor, count: int) -> Plan:
    """A plan for all starts from one for some of them: no action and no cost for the others."""
    actions = found.actions.new_zeros(count, *found.actions.shape[1:])
    costs = found.cost.new_full((count,), torch.nan)
    actions[rows], costs[rows] = found.actions, found.cost
    return Plan(actions, costs)


def _long_enough(plan: Plan, replan: int) -> Plan:
    if (planned := plan.actions.shape[1]) < replan:
        raise InputError(f"A plan of {planned} actions ends before the next one is made, after {replan} steps.")
    return plan


def _rows(info: Mapping[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
    return {name: value[rows] for name, value in info.items()}


def _done(info: Mapping[str, Tensor]) -> Tensor:
    start, _ = latents(info)
    done = info.get("done")
    return torch.zeros(len(start), dtype=torch.bool, device=start.device) if done is None else done.bool()
