"""Stacked frame history, row by row from the definition, and lazily rendered images."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.data import EpisodeArrays, RenderedColumn, history_rows, stack_history


def test_history_before_an_episode_repeats_its_first_row():
    episodes = EpisodeArrays({"x": np.arange(9.0)}, np.array([4, 2, 3]))
    found = history_rows(episodes, np.array([[0, 3], [5, 8]]), history=3, skip=2)
    assert found.tolist() == [[[0, 0, 0], [0, 1, 3]], [[4, 4, 5], [6, 6, 8]]]
    assert history_rows(episodes, np.array([5]), history=1, skip=2).tolist() == [[5]]


@pytest.mark.parametrize("history", [1, 2, 3])
def test_frames_are_stacked_along_channels(history: int):
    frames = [np.random.default_rng(i).integers(0, 256, (2, 4, 5, 3), np.uint8) for i in range(2)]
    found = stack_history(frames, history)
    assert found.shape == (2, 4, 5, 3 * history)
    for place, age in enumerate(reversed(range(history))):  # oldest first, clamped to the first frame
        assert np.array_equal(found[..., 3 * place : 3 * place + 3], frames[max(0, 1 - age)])


def test_only_requested_images_are_rendered():
    drawn: list[int] = []

    def draw(states: np.ndarray) -> np.ndarray:
        drawn.extend(states[:, 0].astype(int))
        return (states[:, :, None] * np.ones(3)).astype(np.uint8)

    states = np.arange(10.0)[:, None]
    column, whole = RenderedColumn(draw, states), draw(states)
    episodes = EpisodeArrays({"seen": column, "state": states}, np.array([6, 4]))
    assert episodes.columns["seen"].shape == (1, 3) and episodes.columns["seen"].dtype == np.uint8
    drawn.clear()
    asked = np.array([[7, 2], [7, 9]])
    assert np.array_equal(episodes.rows("seen", asked), whole[asked]) and drawn == [2, 7, 9]
    drawn.clear()
    assert np.array_equal(episodes.episode(1)["seen"], whole[6:]) and drawn == [6, 7, 8, 9]


def test_columns_of_different_lengths_are_rejected():
    with pytest.raises(InputError, match="'x' has 3, 'y' has 2"):
        EpisodeArrays({"x": np.zeros(3), "y": np.zeros(2)}, np.array([3]))
    with pytest.raises(InputError, match=r" 4.* 3 "):
        EpisodeArrays({"x": np.zeros(3)}, np.array([2, 2]))
