"""MPPI: overhead of planning over plain rollouts of the same network, and speed-up by torch.compile."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from benchmarks.measurement import Comparison, compare
from jepatlas.core.contracts import Dynamics
from jepatlas.core.seeding import forked_rng, torch_generator
from jepatlas.nn import ResidualDynamicsConfig
from jepatlas.planning import ActionBox, LatentCostConfig, MPPIConfig, compiled

__all__ = ["run"]

WIDTH, ACTIONS = 32, 2
SIZES = ((1, 512), (16, 512))  # starts, samples
CONFIG = MPPIConfig(horizon=16, iterations=4)


def run() -> Iterator[Comparison]:
    dynamics = network()
    for size in SIZES:
        work = rollouts(dynamics, *size), planning(dynamics, *size)
        yield compare(f"{_named(*size)}: bare rollouts, MPPI", *work)
    work = planning(dynamics, *SIZES[-1]), planning(compiled(dynamics), *SIZES[-1])
    yield compare(f"{_named(*SIZES[-1])}: MPPI, with compiled rollouts", *work)


def _named(starts: int, samples: int) -> str:
    return f"{CONFIG.iterations} × {starts} × {samples} futures of {CONFIG.horizon} steps"


def network() -> Dynamics:
    with forked_rng(0, "network"):
        return ResidualDynamicsConfig(width=256, depth=2).build(WIDTH, ACTIONS).requires_grad_(False)


def rollouts(dynamics: Dynamics, starts: int, samples: int) -> Callable[[], object]:
    """Rollouts of all candidates for given actions, as often as MPPI evaluates them."""
    h = torch.randn(starts * samples, WIDTH, generator=torch_generator(0, "starts"))
    actions = torch.randn(starts * samples, CONFIG.horizon, ACTIONS, generator=torch_generator(0, "actions"))
    return lambda: [dynamics.rollout(h, actions) for _ in range(CONFIG.iterations)]


def planning(dynamics: Dynamics, starts: int, samples: int) -> Callable[[], object]:
    planner = MPPIConfig(CONFIG.horizon, samples, CONFIG.iterations).build(ActionBox.symmetric(1.0, ACTIONS))
    cost = LatentCostConfig(stage=1.0).build(dynamics, euclidean)
    ends = torch.randn(2, starts, WIDTH, generator=torch_generator(0, "ends"))
    info = {"start": ends[0], "goal": ends[1]}
    return lambda: planner(cost, info, torch_generator(0, "noise"))


def euclidean(x: Tensor, y: Tensor) -> Tensor:
    return (x - y).norm(dim=-1)
