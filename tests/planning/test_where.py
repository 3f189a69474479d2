"""Where an agent may drive, and what is said of it."""

from dataclasses import replace

import numpy as np
import pytest

from jepatlas.base.errors import InputError
from jepatlas.planning import draw_tasks, refuse_out_of_reach
from jepatlas.worlds import ConstantCurrent, JetCurrent, Rooms

ONE_WAY = Rooms(one_way=True, way_back=False)
RIGHT, LEFT = np.array([[0.5, 0.0]]), np.array([[-0.5, 0.0]])


@pytest.mark.parametrize("current", [None, ConstantCurrent(-0.5), JetCurrent(1.5)])
def test_no_current_leads_back_through_a_one_way_door(current):
    world = replace(ONE_WAY, current=current)
    assert world.lead_there(LEFT, RIGHT)[0] and not world.lead_there(RIGHT, LEFT)[0]
    refuse_out_of_reach(world, LEFT, RIGHT)
    with pytest.raises(InputError, match=r"the energy is \+∞"):
        refuse_out_of_reach(world, RIGHT, LEFT)


def test_goals_in_a_current_are_not_behind_doors_either():
    tasks = draw_tasks(replace(ONE_WAY, current=ConstantCurrent()), 60, seed=0)
    assert not ((tasks.starts[:, 0] > 0) & (tasks.goals[:, 0] < 0)).any()


def test_a_current_that_may_be_too_fast_is_said():
    assert refuse_out_of_reach(replace(Rooms(), current=JetCurrent(0.9)), RIGHT, LEFT) == ""
    assert "as fast as the agent" in refuse_out_of_reach(replace(Rooms(), current=JetCurrent(1.2)), RIGHT, LEFT)
