"""Worlds and tasks that an agent plans in."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from workflows.plan.small import recipe

from jepatlas.core.errors import InputError
from jepatlas.data import EpisodeWriter
from jepatlas.recipes import EpisodeSource, gather_episodes
from jepatlas.workflows.plan import TrainedModel, check_reachable, draw_tasks, place_of
from jepatlas.worlds import ConstantCurrent, JetCurrent, Rooms

ONE_WAY = Rooms(one_way=True, way_back=False)
RIGHT, LEFT = np.array([[0.5, 0.0]]), np.array([[-0.5, 0.0]])


@pytest.mark.parametrize("current", [None, ConstantCurrent(-0.5), JetCurrent(1.5)])
def test_one_way_doors_block_also_in_currents(current):
    world = replace(ONE_WAY, current=current)
    assert world.connected(LEFT, RIGHT)[0] and not world.connected(RIGHT, LEFT)[0]
    check_reachable(world, LEFT, RIGHT)
    with pytest.raises(InputError, match=r"one-way door"):
        check_reachable(world, RIGHT, LEFT)


def test_runs_on_external_environments_are_refused(tmp_path: Path):
    with EpisodeWriter(tmp_path / "a.h5", about={"environment": "Pendulum-v1"}) as writer:
        for _ in range(2):
            writer.append({"pixels": np.zeros((3, 64, 64, 3), np.uint8), "action": np.zeros((3, 2))})
    source = EpisodeSource(str(tmp_path / "a.h5"))
    model = TrainedModel(replace(recipe(), source=source), None, gather_episodes(source, 0))
    for given in (None, Rooms()):
        with pytest.raises(InputError, match="Pendulum-v1"):
            place_of(model, given, "run")


def test_goals_in_currents_respect_one_way_doors():
    tasks = draw_tasks(replace(ONE_WAY, current=ConstantCurrent()), 60, seed=0)
    assert not ((tasks.starts[:, 0] > 0) & (tasks.goals[:, 0] < 0)).any()


def test_fast_currents_give_a_warning():
    assert check_reachable(replace(Rooms(), current=JetCurrent(0.9)), RIGHT, LEFT) == ""
    assert "as fast as the agent" in check_reachable(replace(Rooms(), current=JetCurrent(1.2)), RIGHT, LEFT)
