"""Check that a function is an effort: homogeneous of degree one and bounded below by c‖v‖.

homogeneity = max |L(x, s·v) / (s·L(x, v)) − 1|        effort_floor = min L(x, v) / (c‖v‖)

Both are measured at given points, in random directions and at several speeds s.
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
TOLERANCE = 1e-4  # loose enough for efforts computed in float32


def effort_verdicts(effort: Effort, points: np.ndarray, *, seed: int = 0) -> tuple[Verdict, Verdict]:
    """The verdicts `homogeneity` and `effort_floor` at points (n, d)."""
    x = torch.as_tensor(np.asarray(points, dtype=np.float64)).repeat_interleave(DIRECTIONS, 0)
    v = torch.randn(x.shape, generator=torch_generator(seed, "energy/action/directions"), dtype=x.dtype)
    v = v / v.norm(dim=-1, keepdim=True)
    with torch.no_grad():
        unit = effort(x, v)
        scaled = torch.stack([effort(x, speed * v) / speed for speed in SPEEDS])
    error = torch.where(torch.isinf(scaled) & torch.isinf(unit), 0.0, (scaled / unit - 1).abs())
    ratio = unit / effort.floor if effort.floor > 0 else torch.zeros_like(unit)
    return (
        _homogeneity(x, v, error.nan_to_num(torch.inf).amax(0)),
        _effort_floor(x, v, ratio.nan_to_num(-torch.inf), effort.floor),
    )


def require_effort(effort: Effort, points: np.ndarray) -> None:
    """Raise InputError if the function is not an effort at the points."""
    for verdict in effort_verdicts(effort, points):
        if not verdict.passed:
            raise InputError(f"This is not an effort ({verdict.name} {verdict.value:.4g}). {verdict.advice}")


def _homogeneity(x: Tensor, v: Tensor, error: Tensor) -> Verdict:
    worst = int(error.argmax())
    return Verdict.judge(
        "homogeneity",
        Estimate.exact(float(error[worst]), len(error)),
        direction="lower",
        threshold=TOLERANCE,
        null=0.0,
        good="The effort is proportional to the speed, so the action is a length.",
        bad=f"The effort is not proportional to the speed at x = {_format(x[worst])} in direction "
        f"{_format(v[worst])}, so the action depends on the speed. If it is quadratic in v, take its square root.",
    )


def _effort_floor(x: Tensor, v: Tensor, ratio: Tensor, floor: float) -> Verdict:
    worst = int(ratio.argmin())
    return Verdict.judge(
        "effort_floor",
        Estimate.exact(float(ratio[worst]), len(ratio)),
        direction="higher",
        threshold=1 - TOLERANCE,
        good=f"The effort is at least {floor:.4g}‖v‖, as declared.",
        bad=f"The effort is {float(ratio[worst]):.4g} times the declared floor {floor:.4g}‖v‖ at "
        f"x = {_format(x[worst])} in direction {_format(v[worst])}. Declare a smaller positive floor, or add c‖v‖.",
    )


def _format(row: Tensor) -> str:
    numbers = ", ".join(f"{value:.3g}" for value in row[:4].tolist())
    return f"({numbers}, …)" if len(row) > 4 else f"({numbers})"
