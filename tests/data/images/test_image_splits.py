from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.data.images import MultiViewTable, official_split, split_states, time_blocks_of


def table(**columns: list[str]) -> MultiViewTable:
    return MultiViewTable(Path(), {name: np.array(values) for name, values in columns.items()})


def toys(instances: int = 8, views: int = 2, states: int = 3) -> MultiViewTable:
    rows = [(f"{i}-{s}", str(v), f"toy{i}") for i in range(instances) for s in range(states) for v in range(views)]
    return table(**dict(zip(("state", "view", "group"), map(list, zip(*rows, strict=True)), strict=True)))


@pytest.mark.parametrize("by", ["group", "state"])
def test_groups_are_disjoint_and_every_row_is_assigned(by: str):
    toy = toys()
    fit, score = split_states(toy, 0.25, seed=0, by=by)
    assert not set(toy.column(by)[fit]) & set(toy.column(by)[score])
    assert sorted([*fit, *score]) == list(range(len(toy))) and len(score) == 12
    assert not np.array_equal(score, split_states(toy, 0.25, seed=1, by=by)[1])
    assert np.array_equal(score, split_states(toy, 0.25, seed=0, by=by)[1])
    held = toy.only(score)
    assert held.unpaired("0", "1") == (0, 0)


def test_time_blocks_hold_consecutive_states():
    moments = table(state=["t9", "t10", "t2", "t2"], view=["l", "l", "l", "r"], timestamp=["9", "10", "2", "2"])
    assert time_blocks_of(moments, 2, column="timestamp").tolist() == [0, 1, 0, 0]
    assert time_blocks_of(moments, 1).tolist() == [2, 0, 1, 1]  # as strings
    fit, score = split_states(moments, 0.5, 0, by=time_blocks_of(moments, 2, column="timestamp"))
    assert sorted([len(fit), len(score)]) == [1, 3]
    with pytest.raises(InputError, match="length"):
        time_blocks_of(moments, 0)


def test_split_that_divides_a_state_or_group_is_rejected():
    toy = toys()
    with pytest.raises(InputError, match=r"state.*'0-0'"):
        split_states(toy, 0.5, 0, by="view")
    with pytest.raises(InputError, match=r"\b48\b.*\b3\b"):
        split_states(toy, 0.5, 0, by=np.zeros(3))
    with pytest.raises(InputError, match=r"held .*1.0"):
        split_states(toy, 1.0, 0)
    with pytest.raises(InputError, match="'group'"):
        split_states(toys(1), 0.5, 0)
    torn = table(state=["a", "b"], view=["l", "l"], group=["toy", "toy"], split=["train", "val"])
    with pytest.raises(InputError, match=r"'toy' .*split"):
        official_split(torn, "val")
    with pytest.raises(InputError, match="'test'"):
        official_split(torn, "test")


def test_single_group_error_names_the_column():
    alone = table(state=["a", "b"], view=["l", "l"], group=["toy", "toy"])
    with pytest.raises(InputError, match=r"column.*'group'.*'toy'.*rows\."):
        split_states(alone, 0.5, 0)
    with pytest.raises(InputError, match=r"'state' .*'a'"):
        split_states(table(state=["a", "a"], view=["l", "r"]), 0.5, 0, by="state")


@pytest.mark.data
def test_real_objects_are_held_out_whole():
    objects = MultiViewTable.read(Path(os.environ["JEPATLAS_DATA"]) / "eth80")
    fit, score = split_states(objects, 0.5, seed=0)
    assert len(set(objects.column("group")[score])) == 40
    assert not set(objects.column("group")[fit]) & set(objects.column("group")[score])
