"""Windows against slices of their episodes, streams against their joint batch, and prefetching."""

from __future__ import annotations

import dataclasses
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from jepatlas.core.contracts import Batches
from jepatlas.core.errors import InputError
from jepatlas.core.records import Windows
from jepatlas.data import EpisodeFile, EpisodeWriter, Prefetched, WindowStream, split_episodes

LENGTHS = [9, 3, 6, 1, 12]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> EpisodeFile:
    path, random = tmp_path_factory.mktemp("episodes") / "a.h5", np.random.default_rng(0)
    with EpisodeWriter(path) as writer:
        for length in LENGTHS:
            action = random.normal(size=(length, 2)).astype(np.float32)
            action[-1] = np.nan
            pixels, state = random.integers(0, 256, (length, 5, 4, 3), np.uint8), random.normal(size=(length, 3))
            writer.append({"pixels": pixels, "action": action, "state": state, "reward": np.arange(length)})
    return EpisodeFile(path)


def slow(
    file: EpisodeFile, horizon: int, skip: int, episodes: Any, history: int = 1
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """All windows from the definition: frames with their history, actions between them, states."""
    found = []
    for number in episodes:
        data = file.episode(number)
        for start in range(len(data["action"]) - horizon * skip):
            times = [start + j * skip for j in range(horizon + 1)]
            seen = [[max(0, time - i * skip) for i in reversed(range(history))] for time in times]
            x = np.stack([np.concatenate([data["pixels"][i].transpose(2, 0, 1) for i in rows]) for rows in seen])
            u = np.stack([np.concatenate([data["action"][time + i] for i in range(skip)]) for time in times[:-1]])
            found.append((x, u, data["state"][times].astype(np.float32)))
    return found


@pytest.mark.parametrize("preload", [True, False])
@pytest.mark.parametrize(
    ("horizon", "skip", "episodes"), [(1, 1, None), (3, 1, [4, 0]), (2, 4, None), (1, 2, [1, 2, 3])]
)
def test_windows_are_slices_of_episodes(
    file: EpisodeFile, horizon: int, skip: int, episodes: list[int] | None, preload: bool
):
    stream = WindowStream(file, 4, 0, horizon, skip, z="state", episodes=episodes, preload=preload)
    expected = slow(file, horizon, skip, range(5) if episodes is None else episodes)
    assert stream.count == len(expected)
    batch = stream.windows(np.arange(stream.count))
    assert batch.frames.dtype == torch.uint8 and batch.u.dtype == torch.float32 and batch.z is not None
    for found, part in zip((batch.frames, batch.u, batch.z), zip(*expected, strict=True), strict=True):
        assert np.array_equal(found.numpy(), np.stack(part))


@pytest.mark.parametrize("preload", [True, False])
@pytest.mark.parametrize(("horizon", "skip", "history"), [(1, 1, 2), (2, 2, 3), (3, 1, 4)])
def test_frames_include_their_history(file: EpisodeFile, horizon: int, skip: int, history: int, preload: bool):
    numbers = [4, 0, 2]  # not in the order of the file
    stream = WindowStream(file, 4, 0, horizon, skip, z="state", episodes=numbers, preload=preload, history=history)
    batch, expected = stream.windows(np.arange(stream.count)), slow(file, horizon, skip, numbers, history)
    assert batch.frames.shape[1:] == (horizon + 1, 3 * history, 5, 4) and batch.frames.dtype == torch.uint8
    for found, part in zip((batch.frames, batch.u, batch.z), zip(*expected, strict=True), strict=True):
        assert found is not None and np.array_equal(found.numpy(), np.stack(part))


@pytest.mark.parametrize(("history", "skip"), [(12, 1), (4, 3)])
def test_longest_available_history_is_used(file: EpisodeFile, history: int, skip: int):
    assert WindowStream(file, 2, 0, skip=skip, x="state", history=history)(0).frames.shape == (2, 2, 3 * history)


def test_vector_history_is_concatenated(file: EpisodeFile):
    alone, together = (WindowStream(file, 6, 0, 2, 1, x="state", history=history)(0).frames for history in (1, 2))
    assert alone.shape == (6, 3, 3) and together.shape == (6, 3, 6)
    assert torch.equal(together[..., 3:], alone) and torch.equal(together[:, 1:, :3], alone[:, :-1])


def test_windows_are_sampled_uniformly(file: EpisodeFile):
    stream = WindowStream(file, 4000, 0, 2, 2, x="reward", z="ep_idx", preload=True)  # both values identify a window
    batch = stream(0)
    assert batch.frames.shape == (4000, 3, 1) and batch.z is not None
    drawn = torch.stack([batch.z[:, 0, 0], batch.frames[:, 0, 0]], 1)
    counts = torch.unique(drawn, dim=0, return_counts=True)[1]
    assert len(counts) == stream.count == 5 + 0 + 2 + 0 + 8
    assert counts.min() > 200 and counts.max() < 335  # expected 4000/15; random range 218 to 315


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_process_slices_form_the_joint_batch(file: EpisodeFile, world_size: int):
    joint = WindowStream(file, 16, 7, 2, z="state")(5)
    parts = [WindowStream(file, 16, 7, 2, z="state", rank=r, world_size=world_size)(5) for r in range(world_size)]
    for field in dataclasses.fields(Windows):
        assert torch.equal(torch.cat([getattr(part, field.name) for part in parts]), getattr(joint, field.name))


def test_batch_depends_only_on_its_step(file: EpisodeFile):
    stream: Batches = WindowStream(file, 8, seed=0)
    first, second, other = stream(3), stream(3), stream(4)
    assert torch.equal(first.frames, second.frames) and not torch.equal(first.frames, other.frames) and first.z is None
    assert not torch.equal(first.frames, WindowStream(file, 8, seed=1)(3).frames)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 10, "world_size": 4}, "batch_size .*10.* 4 "),
        ({"world_size": 2, "rank": 2}, "rank .*2"),
        ({"horizon": 0}, "horizon .*0"),
        ({"history": 0}, "history .*0"),
        ({"history": 13}, "12 rows .*12 rows.* 12"),
        ({"history": 5, "skip": 3}, "history of 5 .*3 .*12 .* 4"),
        ({"history": 7, "episodes": [1, 2]}, "history of 7 .* has 6 "),
        ({"horizon": 3, "skip": 4}, "5 episodes .* 13 rows, .*12"),
        ({"episodes": []}, "0 episodes"),
        ({"episodes": [5]}, "0 to 4, but .*5"),
        ({"x": "pixel"}, "'pixel'.*'pixels'"),
    ],
)
def test_errors_name_the_argument(file: EpisodeFile, options: dict[str, Any], message: str):
    defaults: dict[str, Any] = {"batch_size": 8, "seed": 0}
    with pytest.raises(InputError, match=message):
        WindowStream(file, **defaults | options)


def test_missing_action_error_names_step_and_episode(tmp_path: Path):
    with EpisodeWriter(tmp_path / "a.h5") as writer:
        for bad in (5, 2):
            writer.append({"x": np.zeros(5), "action": np.where(np.arange(5) == bad, np.nan, 0.0)})
    file = EpisodeFile(tmp_path / "a.h5")
    with pytest.raises(InputError, match=r"1 actions .* step 2 of episode 1"):
        WindowStream(file, 4, 0, x="x")
    assert WindowStream(file, 4, 0, x="x", episodes=[0])(0).u.shape == (4, 1, 1)


def test_splits_are_by_episode_and_depend_on_the_seed():
    learnt, held = split_episodes(20, 0.25, seed=3)
    assert len(held) == 5 and sorted([*learnt, *held]) == list(range(20))
    assert np.array_equal(held, split_episodes(20, 0.25, seed=3)[1])
    assert not np.array_equal(held, split_episodes(20, 0.25, seed=4)[1])
    for count, share in ((1, 0.5), (10, 0.0), (10, 1.0), (10, 0.01), (10, 0.99)):
        with pytest.raises(InputError, match=f"held={share} of {count} "):
            split_episodes(count, share, 0)


def test_prefetched_batches_are_the_same_in_any_order(file: EpisodeFile):
    plain = WindowStream(file, 8, seed=0)
    ahead = Prefetched(plain, ahead=2)
    for step in (0, 1, 2, 7, 3, 3, 4, 0):
        assert torch.equal(ahead(step).frames, plain(step).frames)
    assert torch.equal(pickle.loads(pickle.dumps(ahead))(5).frames, plain(5).frames)
    assert 0 < ahead.waiting < 1
    with pytest.raises(InputError, match=r"ahead .*0"):
        Prefetched(plain, ahead=0)


def test_the_next_batches_are_prefetched():
    made = {step: threading.Event() for step in range(10)}
    ahead = Prefetched(lambda step: made[step].set(), ahead=3)
    ahead(2)
    assert all(made[step].wait(20) for step in (2, 3, 4, 5))
    assert not made[6].is_set() and not made[1].is_set()


def test_errors_of_prefetched_batches_are_raised_on_access():
    def batches(step: int) -> int:
        if step == 2:
            raise InputError("not this one")
        return step

    ahead = Prefetched(batches)
    assert [ahead(0), ahead(1)] == [0, 1]
    with pytest.raises(InputError, match="not this one"):
        ahead(2)
    assert ahead(3) == 3
