"""Is it an effort at all? Held to both conditions at given points, in random directions and at several speeds.

homogeneity = max |L(x, s·v) / (s·L(x, v)) − 1|        effort_floor = min L(x, v) / (c‖v‖)
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import torch_generator
from jepatlas.energy.action.effort import Effort

__all__ = ["effort_verdicts", "require_effort"]

DIRECTIONS = 32
SPEEDS = (1e-3, 0.5, 3.0, 1e3)
TOLERANCE = 1e-4  # efforts in float32 are held to it, too


def effort_verdicts(effort: Effort, points: np.ndarray, *, seed: int = 0) -> tuple[Verdict, Verdict]:
    """`homogeneity` and `effort_floor`, at points (n, d)."""
    x, v = _tangents(points, seed)
    with torch.no_grad():
        still = effort(x, v)
        faster = torch.stack([effort(x, speed * v) / speed for speed in SPEEDS])
    alike = torch.where(torch.isinf(faster) & torch.isinf(still), 0.0, (faster / still - 1).abs())
    ratio = still / effort.floor if effort.floor > 0 else torch.zeros_like(still)
    return _homogeneity(x, v, alike.nan_to_num(torch.inf).amax(0)), _floor(x, v, ratio.nan_to_num(-torch.inf), effort)


def require_effort(effort: Effort, points: np.ndarray) -> None:
    """Refuse what is no effort, before paths are sought on which nothing would be minimal."""
    for verdict in effort_verdicts(effort, points):
        if not verdict.passed:
            raise InputError(f"This is not an effort ({verdict.name} {verdict.value:.4g}). {verdict.advice}")


def _tangents(points: np.ndarray, seed: int) -> tuple[Tensor, Tensor]:
    x = torch.as_tensor(np.asarray(points, dtype=np.float64)).repeat_interleave(DIRECTIONS, 0)
    v = torch.randn(x.shape, generator=torch_generator(seed, "energy/action/directions"), dtype=x.dtype)
    return x, v / v.norm(dim=-1, keepdim=True)


def _homogeneity(x: Tensor, v: Tensor, off: Tensor) -> Verdict:
    worst = int(off.argmax())
    return Verdict.judge(
        "homogeneity",
        _exactly(off[worst], len(off)),
        direction="lower",
        threshold=TOLERANCE,
        null=0.0,
        good="Twice as fast takes twice the effort: the action is a length.",
        bad=f"At x = {_row(x[worst])} in direction {_row(v[worst])}, effort is not proportional to speed: the "
        "action depends on how fast a path is gone. A quadratic one is 0 for who goes slowly: take its square root.",
    )


def _floor(x: Tensor, v: Tensor, ratio: Tensor, effort: Effort) -> Verdict:
    worst = int(ratio.argmin())
    return Verdict.judge(
        "effort_floor",
        _exactly(ratio[worst], len(ratio)),
        direction="higher",
        threshold=1 - TOLERANCE,
        good=f"Nowhere below {effort.floor:.4g}‖v‖, as promised.",
        bad=f"At x = {_row(x[worst])} in direction {_row(v[worst])}, effort is {float(ratio[worst]):.4g} times the "
        f"promised floor of {effort.floor:.4g}‖v‖. Promise less, or add c‖v‖ to it; a floor must be above 0.",
    )


def _exactly(value: Tensor, n: int) -> Estimate:
    return Estimate(float(value), float(value), float(value), n)


def _row(row: Tensor) -> str:
    return "(" + ", ".join(f"{value:.3g}" for value in row[:4].tolist()) + (", …)" if len(row) > 4 else ")")
