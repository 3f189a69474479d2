"""Learn an effort from observed steps and what they cost.

    minimise  mean (L(½(x + x'), x' − x)/cost − 1)²

Relative, so that short steps count as long ones do. The error is held out, by groups where these are given, and stands
beside the best effort that is the same everywhere and in all directions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.arrays import check_finite, check_rows
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out
from jepatlas.core.records import Verdict
from jepatlas.core.seeding import forked_rng, numpy_generator, torch_generator
from jepatlas.core.stats import bootstrap
from jepatlas.energy.action.learned import LearnedEffort

__all__ = ["FittedEffort", "learn_effort"]

FLOOR_SHARE = 0.5  # of the least cost per length that was observed
ERROR_ALLOWED = 0.1
FEWEST_STEPS = 20


@dataclass(frozen=True)
class FittedEffort:
    """A learned effort, and how far off it is on steps it has not seen."""

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
    """From steps x → x_next, (t, d) each, at cost (t,). Steps that do not move say nothing of effort, and are left out.

    The floor c is half of the least cost per length among the steps, where none is given.
    """
    x, v, cost, groups = _steps(x, x_next, cost, groups)
    split = hold_out(len(x), numpy_generator(seed, "energy/action/split"), groups=groups, share=0.25)
    fitted = x[split.fit], v[split.fit], cost[split.fit]
    with forked_rng(seed, "energy/action/effort"):
        effort = _untrained(*fitted, floor)
    order = torch_generator(seed, "energy/action/batches")
    chosen = torch.randint(len(split.fit), (updates, batch), generator=order)
    _train(effort, [torch.as_tensor(part) for part in fitted], chosen, rate)
    return FittedEffort(effort, _error(effort, (x, v, cost), split, groups, seed))


def _untrained(x: np.ndarray, v: np.ndarray, cost: np.ndarray, floor: float | None) -> LearnedEffort:
    """On the scale of the steps."""
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


def _error(
    effort: LearnedEffort, steps: tuple[np.ndarray, ...], split: Split, groups: np.ndarray | None, seed: int
) -> Verdict:
    x, v, cost = (torch.as_tensor(part[split.score]) for part in steps)
    off = (effort(x, v) / cost - 1).abs().numpy()
    _, fit_v, fit_cost = (part[split.fit] for part in steps)
    usual = np.median(fit_cost / np.linalg.norm(fit_v, axis=1))
    null = float(np.mean(np.abs(usual * v.norm(dim=1).numpy() / cost.numpy() - 1)))
    rng = numpy_generator(seed, "energy/action/error")
    held = None if groups is None else groups[split.score]
    found = bootstrap(lambda w: {"error": float(np.average(off, weights=w))}, len(off), rng, groups=held)["error"]
    return Verdict.judge(
        "effort_error",
        found,
        direction="lower",
        threshold=ERROR_ALLOWED,
        null=null,
        good="Costs of unseen steps are as the learned effort says.",
        bad="Costs of unseen steps differ from the learned effort. More steps, more updates or shorter steps may "
        "help; costs that depend on more than place and direction cannot be learned so.",
    )


def _steps(
    x: np.ndarray, x_next: np.ndarray, cost: np.ndarray, groups: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Midpoints, displacements and costs of the steps that move."""
    x, x_next, cost = (np.asarray(part, dtype=np.float64) for part in (x, x_next, cost))
    if x.ndim != 2 or x.shape != x_next.shape or cost.shape != (len(x),):
        raise InputError(
            f"Steps need x and x_next (t, d) and cost (t,), but {x.shape}, {x_next.shape}, {cost.shape} came."
        )
    named = {"x": x, "x_next": x_next, "cost": cost}
    check_rows(named | ({} if groups is None else {"groups": np.asarray(groups)}))
    for name, array in named.items():
        check_finite(name, array)
    moved = (x != x_next).any(1)
    if (cost[moved] <= 0).any():
        raise InputError(
            "Steps that move must have a cost above 0: an effort is at least c‖v‖. Look at the costs given."
        )
    if moved.sum() < FEWEST_STEPS:
        raise InputError(f"At least {FEWEST_STEPS} steps that move are needed, but there are {int(moved.sum())}.")
    middle, step = ((x + x_next) / 2)[moved], (x_next - x)[moved]
    return middle, step, cost[moved], None if groups is None else np.asarray(groups)[moved]
