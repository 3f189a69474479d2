"""What all planners share: where a search begins, what candidates cost, and the best of them so far.

A cost that is infinite or not a number never wins. Where all are, the plan is where the search began and its cost
is +∞: nothing that was tried leads to the goal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch
from torch import Tensor

from jepatlas.core.contracts import Cost
from jepatlas.core.errors import InputError
from jepatlas.core.records import Plan
from jepatlas.planning.bounds import ActionBox
from jepatlas.planning.checks import latents

__all__ = ["Best", "evaluate", "first_guess", "out_of_reach", "plan_of"]

INFINITE: Final = float("inf")


def first_guess(info: Mapping[str, Tensor], box: ActionBox, horizon: int, warm: Tensor | None) -> Tensor:
    """(b, t, a): the centre of the box, or what is left of the plan before."""
    start, _ = latents(info)
    shape = (len(start), horizon, box.dim)
    if warm is None:
        return box.centre(start).expand(shape).clone()
    if warm.shape != shape:
        raise InputError(
            f"A warm start needs the shape {shape} of starts, horizon and actions, but {tuple(warm.shape)} was given."
        )
    return box.clamp(warm.to(start))


def evaluate(cost: Cost, info: Mapping[str, Tensor], actions: Tensor) -> Tensor:
    """The costs of candidates, (b, k, t, a) → (b, k); +∞ for whatever is not finite."""
    found = cost(info, actions)
    if found.shape != actions.shape[:2]:
        raise InputError(
            f"A cost of actions (b, k, t, a) = {tuple(actions.shape)} has the shape (b, k), "
            f"but this one has {tuple(found.shape)}."
        )
    return torch.where(found.isfinite(), found, INFINITE)


class Best:
    """The cheapest sequence that was offered, for each start; the first guess until one has a finite cost."""

    def __init__(self, first: Tensor) -> None:
        self.actions, self.cost = first, first.new_full((len(first),), INFINITE)

    def offer(self, actions: Tensor, cost: Tensor) -> None:
        """(b, k, t, a) and (b, k)."""
        least, at = cost.detach().min(dim=1)
        chosen = actions.detach()[torch.arange(len(at), device=at.device), at]
        better = least < self.cost
        self.actions = torch.where(better[:, None, None], chosen, self.actions)
        self.cost = torch.where(better, least.to(self.cost), self.cost)

    def plan(self) -> Plan:
        return Plan(self.actions, self.cost)


def plan_of(cost: Cost, info: Mapping[str, Tensor], actions: Tensor) -> Plan:
    """One sequence for each start, (b, t, a), with what it costs."""
    return Plan(actions, evaluate(cost, info, actions[:, None])[:, 0])


def out_of_reach(plan: Plan) -> tuple[int, ...]:
    """The starts for which nothing was found that leads to the goal at a finite cost.

    >>> out_of_reach(Plan(torch.zeros(3, 5, 2), torch.tensor([1.0, float("inf"), 2.0])))
    (1,)
    """
    return tuple(int(row) for row in plan.cost.isinf().nonzero())
