"""Drives by agents with the true dynamics, and by random actions."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from workflows.plan.small import tracking_agent

from jepatlas.core.errors import InputError
from jepatlas.data import RandomPolicy
from jepatlas.planning import MPPIConfig
from jepatlas.workflows.plan import DrivingConfig, Tasks, draw_tasks, drive, drive_at_random
from jepatlas.worlds import ConstantCurrent, JetCurrent, Rooms

WORLD = Rooms()
SHORT = DrivingConfig(MPPIConfig(horizon=5, samples=64, iterations=3), steps=40)


def same_room(count: int) -> Tasks:
    """Tasks without obstacles: both ends are in the left room."""
    rng = np.random.default_rng(0)
    return Tasks(rng.uniform([-0.9, -0.9], [-0.2, 0.9], (count, 2)), rng.uniform([-0.9, -0.9], [-0.2, 0.9], (count, 2)))


def test_an_agent_with_true_dynamics_reaches_its_goals():
    driven = drive(WORLD, tracking_agent(WORLD, WORLD.step_length), same_room(8), SHORT)
    assert driven.reached.all()
    least = np.linalg.norm(driven.tasks.goals - driven.tasks.starts, axis=1) / WORLD.step_length - WORLD.reach
    assert (driven.steps <= 1.5 * np.maximum(np.ceil(least), 1) + 2).all()
    assert (driven.energies[:, -1] <= driven.energies[:, 0]).all()


def test_drive_follows_the_worlds_dynamics():
    driven = drive(WORLD, tracking_agent(WORLD, WORLD.step_length), same_room(6), SHORT)
    for row in range(6):
        for time in range(int(driven.steps[row])):
            after = WORLD.step(driven.states[row, time][None], driven.actions[row, time][None])[0]
            assert np.allclose(after, driven.states[row, time + 1])
        rest = driven.states[row, int(driven.steps[row]) :]
        assert (rest == rest[0]).all() and WORLD.reached(rest[:1], driven.tasks.goals[row][None])[0]


def test_drives_are_determined_by_the_seed():
    agent = tracking_agent(WORLD, WORLD.step_length)
    first, again = (drive(WORLD, agent, same_room(3), SHORT, seed=2).states for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, drive(WORLD, agent, same_room(3), SHORT, seed=3).states)


def test_euclidean_energy_fails_behind_a_wall():
    """The straight line to the goal leads into the wall, far from the door."""
    tasks = Tasks(np.array([[-0.3, -0.8]]), np.array([[0.3, -0.8]]))
    assert not drive(WORLD, tracking_agent(WORLD, WORLD.step_length), tasks, SHORT).reached.any()


def test_tasks_done_at_the_start_take_no_step():
    driven = drive(WORLD, tracking_agent(WORLD, 0.1), Tasks(np.array([[0.5, 0.5]]), np.array([[0.5, 0.5]])), SHORT)
    assert driven.reached.all() and driven.steps.tolist() == [0] and driven.actions.shape == (1, 0, 2)


def test_infinite_energies_are_recorded_as_unreachable():
    """With energy +∞ to goals in the upper half, the agent takes zero actions until the last step."""
    agent = tracking_agent(WORLD, WORLD.step_length)

    def energy(h: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        return torch.where(goal[..., 1] > 0, torch.inf, (h - goal).norm(dim=-1))

    tasks = Tasks(np.array([[-0.7, -0.5]] * 3), np.array([[-0.7, 0.5], [-0.3, -0.5], [-0.7, -0.5]]))
    driven = drive(WORLD, replace(agent, energy=energy), tasks, replace(SHORT, steps=12))
    assert driven.unreachable.tolist() == [True, False, False]
    assert driven.reached.tolist() == [False, True, True] and driven.steps[0] == 12 and driven.steps[2] == 0


def test_steps_count_time_even_without_actions():
    world = replace(WORLD, current=ConstantCurrent(0.0, 0.9))

    def unreachable(h: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        return torch.full_like(h[..., 0] + goal[..., 0], torch.inf)

    agent = replace(tracking_agent(world, 0.1), energy=unreachable)
    driven = drive(world, agent, Tasks(np.array([[-0.5, -0.5]]), np.array([[-0.5, 0.0]])), SHORT)
    assert driven.reached.all() and not driven.actions.any() and driven.steps.tolist() == [5]


def test_tasks_depend_on_the_seed_and_are_feasible():
    world = replace(WORLD, one_way=True, way_back=False)
    tasks, again = (draw_tasks(world, 30, seed=1) for _ in range(2))
    assert np.array_equal(tasks.starts, again.starts) and np.array_equal(tasks.goals, again.goals)
    distances = [world.distance_to(goal, start[None])[0] for start, goal in zip(tasks.starts, tasks.goals, strict=True)]
    assert np.isfinite(distances).all() and min(distances) > world.reach
    with pytest.raises(InputError, match="tasks is 0"):
        draw_tasks(WORLD, 0, seed=0)


@pytest.mark.parametrize("current", [ConstantCurrent(1.5), ConstantCurrent(1.2, 1.2), JetCurrent(1.5)])
def test_goals_are_reachable_in_fast_currents(current: Any):
    """The agent cannot move against a faster current, not even by sliding along a wall."""
    world = replace(WORLD, current=current)
    tasks = draw_tasks(world, 20, seed=0)
    assert not world.reached(tasks.starts, tasks.goals).any()
    if isinstance(current, ConstantCurrent):
        fast = np.abs([current.along, current.across]) >= 1
        against = (tasks.starts - tasks.goals)[:, fast]
        assert against.max() <= world.reach * world.step_length


def test_slow_currents_do_not_change_tasks():
    without, with_current = (draw_tasks(replace(WORLD, current=c), 20, seed=0) for c in (None, ConstantCurrent(0.9)))
    assert np.array_equal(without.goals, with_current.goals)


def test_persistent_random_actions_travel_further():
    """The goal is twelve steps away; independent actions travel about four in 60 steps."""
    tasks = Tasks(np.array([[-0.8, -0.6]] * 60), np.array([[-0.8, 0.6]] * 60))
    independent, persistent = (drive_at_random(WORLD, tasks, 60, 0, RandomPolicy(p)).mean() for p in (0.0, 0.9))
    assert persistent > independent + 0.1
    assert drive_at_random(WORLD, tasks, 60).mean() <= 0.1


def test_random_actions_reach_near_goals_only():
    near = Tasks(np.array([[0.5, 0.5]] * 20), np.array([[0.62, 0.5]] * 20))
    far = Tasks(np.array([[0.5, 0.5]] * 20), np.array([[-0.9, -0.9]] * 20))
    assert drive_at_random(WORLD, near, 40).mean() > 0.5 and drive_at_random(WORLD, far, 20).mean() == 0


def test_invalid_action_width_and_steps_are_refused():
    with pytest.raises(InputError, match="3 action dimensions"):
        drive(WORLD, replace(tracking_agent(WORLD, 0.1), action_dim=3), same_room(2), SHORT)
    with pytest.raises(InputError, match="steps is 0"):
        DrivingConfig(steps=0)
