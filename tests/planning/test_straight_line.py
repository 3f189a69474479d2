"""Straight lines: waypoints, dynamics with hidden state, and a library of observed steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import torch_generator
from jepatlas.planning import (
    ActionBox,
    LatentCost,
    Library,
    LibraryLine,
    StraightLineConfig,
    detour,
    nearest_rows,
    waypoints,
)
from jepatlas.testing.linear_problems import walker

BOX = ActionBox.symmetric(3.0, 2)
PROBLEM = walker()


def observed(count: int) -> Library:
    """Steps of the walker from random states."""
    h = 4 * torch.rand(count, 2, generator=torch_generator(0, "h"), dtype=torch.float64) - 2
    u = BOX.uniform((count,), torch_generator(0, "u"), h)
    return Library(h, u, PROBLEM.system.rollout(h, u[:, None])[:, 0])


def test_paths_are_straight():
    found = StraightLineConfig(8).build(BOX)(PROBLEM.cost, PROBLEM.info, torch_generator(0, "noise"))
    start = PROBLEM.info["start"]
    path = torch.cat([start[:, None], PROBLEM.system.rollout(start, found.actions)], 1)
    torch.testing.assert_close(path, waypoints(start, PROBLEM.info["goal"], 8), rtol=0, atol=0.02)
    assert (detour(path) < 1.01).all()


def test_dynamics_may_have_hidden_state():
    class Inertia:
        """Actions change a velocity that is not part of the latent, like the hidden state of a GRU."""

        def rollout(self, h: Tensor, actions: Tensor) -> Tensor:
            return h[:, None] + actions.cumsum(1).cumsum(1) / 10

    cost = LatentCost(Inertia(), lambda x, y: (x - y).norm(dim=-1))
    found = StraightLineConfig(8, rounds=6).build(ActionBox.symmetric(9.0, 2))(
        cost, PROBLEM.info, torch_generator(0, "noise")
    )
    assert (found.cost < 0.05).all()


def test_nearest_rows_against_numpy():
    library = observed(300).h
    points = torch.randn(4, 5, 2, generator=torch_generator(0, "points"), dtype=torch.float64)
    expected = np.linalg.norm(points.numpy()[:, :, None] - library.numpy(), axis=-1).argmin(-1)
    assert np.array_equal(nearest_rows(points, library), expected)


def test_a_larger_library_follows_the_line_better():
    costs = []
    for size in (30, 3000, 30_000):
        planner = LibraryLine(observed(size), BOX, horizon=8)
        found = planner(PROBLEM.cost, PROBLEM.info, torch_generator(0, "unused"))
        torch.testing.assert_close(found.cost, PROBLEM.cost(PROBLEM.info, found.actions[:, None])[:, 0])
        costs.append(float(found.cost.sum()))
    assert costs[0] > 2 * costs[1] > 4 * costs[2], costs


def test_invalid_libraries_and_waypoints_are_refused():
    with pytest.raises(InputError, match=r"library.*\(rows, 2\).*\(0, 2\)"):
        nearest_rows(torch.zeros(3, 2), torch.zeros(0, 2))
    with pytest.raises(InputError, match=r"\(3, 2\), \(2, 2\), \(3, 2\)"):
        Library(torch.zeros(3, 2), torch.zeros(2, 2), torch.zeros(3, 2))
