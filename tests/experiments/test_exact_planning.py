"""Planning with the truth, against the world's own distances and steps, one by one."""

import numpy as np
import pytest
import torch

from jepatlas.experiments.planning.exact_planning import (
    exact_agent,
    exact_energy,
    exact_way_back,
    symmetrised,
    with_states,
)
from jepatlas.experiments.planning.one_way_doors import through_doors
from jepatlas.planning import MPPIConfig
from jepatlas.workflows.plan import DrivingConfig, Tasks, drive
from jepatlas.worlds import Rooms

WORLD = Rooms(one_way=True)
X, Y = (WORLD.states(12, np.random.default_rng(seed)) for seed in (0, 1))


def one_by_one() -> tuple[np.ndarray, np.ndarray]:
    """Steps there and back of each pair."""
    there = [WORLD.distance_to(y, x[None])[0] for x, y in zip(X, Y, strict=True)]
    back = [WORLD.distance_to(x, y[None])[0] for x, y in zip(X, Y, strict=True)]
    return np.array(there), np.array(back)


def test_energies_are_those_of_the_world_row_by_row():
    there, back = one_by_one()
    x, y = torch.from_numpy(X), torch.from_numpy(Y)
    energy = exact_energy(WORLD)
    assert np.allclose(energy(x, y), there) and np.allclose(energy(x[:, None], y[:, None])[:, 0], there)
    both = symmetrised(energy, exact_way_back(WORLD))
    assert np.allclose(both(x, y), (there + back) / 2) and np.allclose(both(y, x), (there + back) / 2)
    assert np.allclose(symmetrised(energy)(x, y), (there + back) / 2), "whichever way it is told"
    assert not np.allclose(there, back)


def test_what_is_imagined_is_what_happens():
    rng = np.random.default_rng(2)
    actions = rng.uniform(-1, 1, (12, 4, 2))
    imagined = exact_agent(WORLD, exact_energy(WORLD)).dynamics.rollout(torch.from_numpy(X), torch.from_numpy(actions))
    states = X
    for t in range(4):
        states = WORLD.step(states, actions[:, t])
        assert np.allclose(imagined[:, t], states)


def test_tasks_lead_through_a_door():
    tasks = through_doors(WORLD, 20, seed=3)
    assert len(tasks.starts) == 20
    assert ((tasks.starts[:, 0] < 0) != (tasks.goals[:, 0] < 0)).all()


@pytest.mark.parametrize("goal", [[0.5, -0.6], [-0.5, -0.6]])
def test_the_exact_energy_leads_through_the_right_door(goal: list[float]):
    start = [[-0.6, -0.2]] if goal[0] > 0 else [[0.6, 0.4]]
    tasks = Tasks(np.array(start), np.array([goal]))
    config = DrivingConfig(MPPIConfig(horizon=6, samples=24, iterations=2), steps=40)
    driven = drive(with_states(WORLD), exact_agent(WORLD, exact_energy(WORLD)), tasks, config)
    assert driven.reached.all()
    assert driven.steps[0] <= WORLD.distance_to(tasks.goals[0], tasks.starts)[0] * 1.5 + 2
