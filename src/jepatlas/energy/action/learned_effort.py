"""A neural effort that satisfies the conditions of an effort by construction, and its fit to observed step costs.

    L(x, v) = c‖v‖ + Σ_j w_j(x) · max_k (a_jk(x)·v)⁺        w_j ≥ 0, a softplus of the network's output

Every term is non-negative, convex and homogeneous of degree one in v, so the floor is c for all parameters. With one
a_j per term, L(x, v) − L(x, −v) would be linear in v; the maximum over several removes this restriction.

    fit:  minimise  mean (L(½(x + x'), x' − x)/cost − 1)²

The loss is relative so that short and long steps have equal weight. The error is measured on held-out steps and
compared with that of the best constant isotropic effort.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from jepatlas.core.arrays import check_finite, check_rows
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out
from jepatlas.core.records import Verdict
from jepatlas.core.seeding import forked_rng, numpy_generator, torch_generator
from jepatlas.core.stats import bootstrap
from jepatlas.energy.action.effort import norm

__all__ = ["FittedEffort", "LearnedEffort", "learn_effort"]

FLOOR_SHARE = 0.5  # default floor, relative to the smallest observed cost per length
ERROR_ALLOWED = 0.1
FEWEST_STEPS = 20


class LearnedEffort(nn.Module):
    """A neural effort on points of the given width, which are standardised by the buffers `mean` and `spread`."""

    mean: Tensor
    spread: Tensor
    unit: Tensor

    def __init__(self, width: int, floor: float, *, hidden: int = 32, terms: int = 8, choices: int = 2) -> None:
        super().__init__()
        if not floor > 0:
            raise InputError(f"floor must be positive, but {floor} was given.")
        self.width = width
        self.floor = float(floor)
        self.terms = terms
        self.choices = choices
        self.net = nn.Sequential(
            nn.Linear(width, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, terms * (choices * width + 1)),
        ).double()
        self.register_buffer("mean", torch.zeros(width, dtype=torch.float64))
        self.register_buffer("spread", torch.ones(width, dtype=torch.float64))
        self.register_buffer("unit", torch.ones((), dtype=torch.float64))  # typical effort per length

    def forward(self, x: Tensor, v: Tensor) -> Tensor:
        output = self.net((x - self.mean) / self.spread)
        weights, directions = output.split([self.terms, self.terms * self.choices * self.width], -1)
        products = directions.unflatten(-1, (self.terms, self.choices, self.width)) @ v[..., None, :, None]
        rises = torch.relu(products[..., 0]).amax(-1)  # (..., terms)
        return self.floor * norm(v) + self.unit * (softplus(weights) * rises).sum(-1)


@dataclass(frozen=True)
class FittedEffort:
    """A learned effort and the verdict on its error on held-out steps."""

    effort: LearnedEffort
    error: Verdict


def learn_effort(
    x: np.ndarray,
    x_next: np.ndarray,
    cost: np.ndarray,
    *,
    groups: np.ndarray | None = None,
    floor: float | None = None,
    updates: int = 1500,
    batch: int = 256,
    rate: float = 3e-3,
    seed: int = 0,
) -> FittedEffort:
    """Fit an effort to steps x → x_next, (t, d) each, of the given cost (t,).

    Steps with x = x_next carry no information and are dropped. `floor` defaults to half of the smallest cost per length
    among the steps. With `groups`, whole groups are held out.
    """
    x, v, cost, groups = _moving_steps(x, x_next, cost, groups)
    split = hold_out(len(x), numpy_generator(seed, "energy/action/split"), groups=groups, share=0.25)
    fitted = x[split.fit], v[split.fit], cost[split.fit]
    with forked_rng(seed, "energy/action/effort"):
        effort = _initial_effort(*fitted, floor)
    generator = torch_generator(seed, "energy/action/batches")
    batches = torch.randint(len(split.fit), (updates, batch), generator=generator)
    _train(effort, [torch.as_tensor(part) for part in fitted], batches, rate)
    return FittedEffort(effort, _held_out_error(effort, (x, v, cost), split, groups, seed))


def _initial_effort(x: np.ndarray, v: np.ndarray, cost: np.ndarray, floor: float | None) -> LearnedEffort:
    """An untrained effort on the scale of the steps."""
    per_length = cost / np.linalg.norm(v, axis=1)
    effort = LearnedEffort(x.shape[1], FLOOR_SHARE * float(per_length.min()) if floor is None else floor)
    effort.mean += torch.as_tensor(x.mean(0))
    effort.spread *= torch.as_tensor(np.where(x.std(0) > 0, x.std(0), 1.0))
    effort.unit *= float(np.median(per_length))
    return effort


def _train(effort: LearnedEffort, rows: list[Tensor], batches: Tensor, rate: float) -> None:
    optimiser = torch.optim.Adam(effort.parameters(), rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, len(batches))
    for chosen in batches:
        x, v, cost = (part[chosen] for part in rows)
        loss = (effort(x, v) / cost - 1).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    effort.requires_grad_(False)


def _held_out_error(
    effort: LearnedEffort, steps: tuple[np.ndarray, ...], split: Split, groups: np.ndarray | None, seed: int
) -> Verdict:
    x, v, cost = (torch.as_tensor(part[split.score]) for part in steps)
    errors = (effort(x, v) / cost - 1).abs().numpy()
    _, fit_v, fit_cost = (part[split.fit] for part in steps)
    constant = np.median(fit_cost / np.linalg.norm(fit_v, axis=1))
    null = float(np.mean(np.abs(constant * v.norm(dim=1).numpy() / cost.numpy() - 1)))
    rng = numpy_generator(seed, "energy/action/error")
    held = None if groups is None else groups[split.score]
    estimate = bootstrap(lambda w: {"error": float(np.average(errors, weights=w))}, len(errors), rng, groups=held)
    return Verdict.judge(
        "effort_error",
        estimate["error"],
        direction="lower",
        threshold=ERROR_ALLOWED,
        null=null,
        good="The learned effort predicts the costs of held-out steps.",
        bad="The learned effort does not predict the costs of held-out steps. Try more steps, more updates or shorter "
        "steps. Costs that depend on more than position and direction cannot be learned.",
    )


def _moving_steps(
    x: np.ndarray, x_next: np.ndarray, cost: np.ndarray, groups: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Midpoints, displacements, costs and groups of the steps that move."""
    x, x_next, cost = (np.asarray(part, dtype=np.float64) for part in (x, x_next, cost))
    if x.ndim != 2 or x.shape != x_next.shape or cost.shape != (len(x),):
        raise InputError(
            f"x and x_next must be (t, d) and cost (t,), but their shapes are {x.shape}, {x_next.shape}, {cost.shape}."
        )
    arrays = {"x": x, "x_next": x_next, "cost": cost}
    check_rows(arrays | ({} if groups is None else {"groups": np.asarray(groups)}))
    for name, array in arrays.items():
        check_finite(name, array)
    moved = (x != x_next).any(1)
    if (cost[moved] <= 0).any():
        raise InputError(
            f"cost must be positive for steps that move, but {cost[moved].min():g} was given: an effort is ≥ c‖v‖ > 0."
        )
    if moved.sum() < FEWEST_STEPS:
        raise InputError(f"At least {FEWEST_STEPS} steps that move are needed, but there are {int(moved.sum())}.")
    middle = ((x + x_next) / 2)[moved]
    step = (x_next - x)[moved]
    return middle, step, cost[moved], None if groups is None else np.asarray(groups)[moved]
