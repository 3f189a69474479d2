"""Experience from arrays in both layouts, and its validation."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.core.records import Experience
from jepatlas.data import experience_from_arrays

X = np.arange(9.0)[:, None]  # three episodes, of 3, 4 and 2 states
EPISODE = np.array([4, 4, 4, 7, 7, 7, 7, 1, 1])
COST = np.arange(10.0, 19.0)


def experience() -> Experience:
    return experience_from_arrays({"x": X, "episode": EPISODE, "cost": COST})


def test_episodes_become_steps_between_consecutive_rows():
    found = experience()
    assert found.x[:, 0].tolist() == [0, 1, 3, 4, 5, 7] and found.x_next[:, 0].tolist() == [1, 2, 4, 5, 6, 8]
    assert found.cost.tolist() == [10, 11, 13, 14, 15, 17] and found.episode.tolist() == [0, 0, 1, 1, 1, 2]
    assert found.z is None


def test_both_layouts_agree():
    first = experience()
    again = experience_from_arrays(
        {f.name: getattr(first, f.name) for f in dataclasses.fields(first) if getattr(first, f.name) is not None}
    )
    for field in ("x", "x_next", "cost", "episode"):
        assert np.array_equal(getattr(first, field), getattr(again, field))


def test_true_states_are_kept_and_vectors_become_columns():
    z = np.arange(18.0).reshape(9, 2)
    cost = np.where(np.isin(np.arange(9), [2, 6, 8]), np.nan, 1.0)  # of final states: unused
    text = np.array(list("aaabbbbcc"))
    found = experience_from_arrays({"x": X[:, 0], "episode": text, "cost": cost, "z": z, "other": np.zeros(3)})
    assert found.z is not None and found.z_next is not None
    assert found.x.shape == (6, 1) and np.array_equal(found.z[:, 0] / 2, found.x[:, 0])
    assert np.array_equal(found.z_next[:, 0] / 2, found.x_next[:, 0])


def test_steps_without_episodes_are_unconnected():
    found = experience_from_arrays({"x": X, "x_next": X + 5, "cost": COST})
    assert len(np.unique(found.episode)) == 9


STEP = np.array([0, 1, 2, 0, 1, 3, 4, 0, 1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step": STEP}, "Episode 7 .*1 .*3"),
        ({"episode": np.array([4, 4, 7, 7, 7, 4, 4, 1, 1])}, "Episode 4 .*row 5"),
        ({"episode": np.arange(9)}, "no steps"),
        ({"cost": np.where(COST == 14, -1.0, COST)}, "cost .*-1 in row 3"),
        ({"cost": np.where(COST == 14, np.nan, COST)}, "'cost' .*1 "),
        ({"cost": np.zeros(9)}, "cost"),
        ({"cost": np.zeros(0)}, "rows"),
        ({"x": np.where(X == 4, np.inf, X)}, "'x' .*1 "),
        ({"x": np.zeros((9, 2, 2))}, "shape"),
        ({"x_next": X + 1, "episode": np.repeat(0, 9), "x": np.where(X == 6, 60, X)}, "step 5"),
        ({"x_next": np.zeros((9, 3))}, "x_next"),
    ],
)
def test_invalid_experience_error_names_the_position(changes: dict, message: str):
    with pytest.raises(InputError, match=message):
        experience_from_arrays({"x": X, "episode": EPISODE, "cost": COST} | changes)


@pytest.mark.parametrize("names", [("x", "cost"), ("x", "episode"), ("h",)])
def test_missing_arrays_error_lists_the_arrays_found(names: tuple[str, ...]):
    with pytest.raises(InputError, match=", ".join(sorted(names))):
        experience_from_arrays({name: np.zeros(3) for name in names})
