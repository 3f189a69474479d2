"""Receding-horizon control: plan, execute a few actions, plan again from the resulting state.

The environment is a function `step(actions (b, a)) -> info` with the next "start" and "goal", and optionally "done",
(b,). Each plan is warm-started with the remainder of the previous one. Starts that are done are no longer planned for;
their actions are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jepatlas.core.contracts import Cost, Planner
from jepatlas.core.errors import InputError, check_count
from jepatlas.core.lazy import lazy_import
from jepatlas.core.progress import track
from jepatlas.core.records import Plan
from jepatlas.core.seeding import torch_generator
from jepatlas.planning.candidates import start_and_goal

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    Step = Callable[[Tensor], Mapping[str, Tensor]]
else:
    torch = lazy_import("torch")

__all__ = ["ClosedLoop", "receding_horizon", "shift_plan"]


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """Executed actions and the costs of the plans they come from."""

    actions: Tensor  # (b, steps, a)
    expected: Tensor  # (b, plans): the cost of each plan; NaN where a start was already done
    done: Tensor  # (b,) bool

    @property
    def unreachable(self) -> tuple[int, ...]:
        """Indices of the starts whose first plan costs +∞: no candidate leads to the goal."""
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
    """Execute at most `steps` actions, with a new plan every `replan` of them; noise is derived from (seed, time)."""
    check_count("steps", steps)
    check_count("replan", replan)
    done = _done(info)
    warm: Tensor | None = None
    plan: Plan | None = None
    executed, expected = [], []
    for s in track("planning", steps):
        if bool(done.all()):
            break
        if plan is None or s % replan == 0:
            rows = (~done).nonzero()[:, 0]
            generator = torch_generator(seed, "plan", s, device=info["start"].device)
            active = {name: value[rows] for name, value in info.items()}
            found = planner(cost, active, generator, None if warm is None else warm[rows])
            plan = _scatter(found, rows, len(done))
            if plan.actions.shape[1] < replan:
                raise InputError(
                    f"replan is {replan}, but the planner's horizon is {plan.actions.shape[1]} actions. "
                    "Lower replan or raise the horizon."
                )
            warm = shift_plan(plan.actions, replan)
            expected.append(plan.cost)
        executed.append(torch.where(done[:, None], 0.0, plan.actions[:, s % replan]))
        info = step(executed[-1])
        done = done | _done(info)
    if not executed:
        raise InputError("All starts are done before the first step, so there is nothing to plan.")
    return ClosedLoop(torch.stack(executed, dim=1), torch.stack(expected, dim=1), done)


def shift_plan(actions: Tensor, count: int) -> Tensor:
    """Drop the first `count` actions and repeat the last one, (b, t, a) → (b, t, a).

    >>> shift_plan(torch.tensor([[[1.0], [2.0], [3.0]]]), 2).flatten()
    tensor([3., 3., 3.])
    """
    rest = actions[:, min(count, actions.shape[1] - 1) :]
    return torch.cat([rest, rest[:, -1:].expand(-1, actions.shape[1] - rest.shape[1], -1)], dim=1)


def _scatter(found: Plan, rows: Tensor, count: int) -> Plan:
    """Extend a plan for some starts to all of them, with zero actions and NaN costs."""
    actions = found.actions.new_zeros(count, *found.actions.shape[1:])
    costs = found.cost.new_full((count,), torch.nan)
    actions[rows] = found.actions
    costs[rows] = found.cost
    return Plan(actions, costs)


def _done(info: Mapping[str, Tensor]) -> Tensor:
    start, _ = start_and_goal(info)
    if "done" in info:
        return info["done"].bool()
    return torch.zeros(len(start), dtype=torch.bool, device=start.device)
