"""Detection of the channel axis, and windows that do not depend on it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from jepatlas.data import EpisodeArrays, WindowStream, channels_last, network_shape
from jepatlas.data.image_axes import channels_first

FIRST = [(3, 64, 64), (1, 28, 28), (4, 32, 48), (12, 64, 64), (2, 20, 30)]
LAST = [(64, 64, 3), (28, 28, 1), (32, 48, 4), (8, 8, 12), (5, 4, 3), (2, 64, 3), (3, 64, 3), (3, 3, 64), (9, 7, 9)]


@pytest.mark.parametrize("row", FIRST)
def test_leading_channels_are_detected(row: tuple[int, ...]):
    rows = np.arange(2 * np.prod(row)).reshape(2, *row)
    assert network_shape(row) == row and np.array_equal(channels_first(torch.from_numpy(rows), row).numpy(), rows)
    assert np.array_equal(channels_last(rows, row), rows.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("row", LAST)
def test_trailing_channels_may_have_any_number(row: tuple[int, ...]):
    rows = np.arange(2 * np.prod(row)).reshape(2, *row)
    assert network_shape(row) == (row[2], row[0], row[1]) and channels_last(rows, row) is rows
    assert np.array_equal(channels_first(torch.from_numpy(rows), row).numpy(), rows.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("row", [(), (5,), (3, 6)])
def test_other_arrays_are_unchanged(row: tuple[int, ...]):
    rows = np.zeros((2, *row))
    assert network_shape(row) == (row or (1,)) and channels_last(rows, row) is rows
    assert channels_first(torch.from_numpy(rows), row).shape == (2, *row)


@pytest.mark.parametrize("channels", [1, 3, 4, 6])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_windows_do_not_depend_on_the_channel_axis(channels: int, dtype: type):
    film = np.random.default_rng(0).integers(0, 256, (10, 16, 12, channels)).astype(dtype)
    columns = {"last": film, "first": film.transpose(0, 3, 1, 2).copy(), "action": np.zeros((10, 2), np.float32)}
    episodes = EpisodeArrays(columns, np.array([6, 4]))
    last, first = (WindowStream(episodes, 5, 0, 2, x=name, history=2)(0).frames for name in ("last", "first"))
    assert last.shape == (5, 3, 2 * channels, 16, 12) and torch.equal(last, first)
