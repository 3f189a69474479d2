"""Streams of steps against the experience they are sampled from."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from jepatlas.core.contracts import Batches
from jepatlas.core.errors import InputError
from jepatlas.core.records import Experience, Steps
from jepatlas.data import StepStream, experience_from_arrays

X = np.arange(9.0)[:, None]  # three episodes, of 3, 4 and 2 states
EPISODE = np.array([4, 4, 4, 7, 7, 7, 7, 1, 1])
COST = np.arange(10.0, 19.0)


def experience() -> Experience:
    return experience_from_arrays({"x": X, "episode": EPISODE, "cost": COST})


def rows(batch: Steps) -> set[tuple[float, float, float]]:
    return set(zip(batch.x[:, 0].tolist(), batch.x_next[:, 0].tolist(), batch.cost.tolist(), strict=True))


def test_batches_hold_observed_steps_and_goals_cover_all_states():
    given, stream = experience(), StepStream(experience(), 400, seed=0)
    batch = stream(0)
    assert rows(batch) == set(zip(given.x[:, 0], given.x_next[:, 0], given.cost, strict=True))
    goals, counts = np.unique(batch.goal[:, 0].numpy(), return_counts=True)
    assert goals.tolist() == list(range(9))  # all states, also the last of an episode
    assert counts.min() > 20 and counts.max() < 80  # expected 400/9; random range 25 to 65
    assert batch.x.dtype == batch.cost.dtype == torch.float32


def test_future_goals_lie_ahead_in_the_same_episode():
    batch = StepStream(experience(), 600, seed=0, future=1.0)(0)
    pairs = set(zip(batch.x[:, 0].tolist(), batch.goal[:, 0].tolist(), strict=True))
    assert pairs == {(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (3, 6), (4, 5), (4, 6), (5, 6), (7, 8)}
    mixed = StepStream(experience(), 4000, seed=0, future=0.5)(0)
    ahead = [(a, b) in pairs for a, b in zip(mixed.x[:, 0].tolist(), mixed.goal[:, 0].tolist(), strict=True)]
    by_chance = (2 + 1 + 3 + 2 + 1 + 1) / 6 / 9
    assert np.mean(ahead) == pytest.approx(0.5 + 0.5 * by_chance, abs=0.03)


def test_jitter_shifts_steps_rigidly_and_goals_independently():
    plain, moved = (StepStream(experience(), 4000, seed=0, jitter=jitter)(3) for jitter in (0.0, 0.3))
    by = (moved.x - plain.x)[:, 0]
    assert by.abs().max() <= 0.3 + 1e-6 and by.std().item() == pytest.approx(0.3 / np.sqrt(3), rel=0.05)  # uniform
    torch.testing.assert_close(moved.x_next - moved.x, plain.x_next - plain.x)  # length unchanged
    assert abs(np.corrcoef(by, (moved.goal - plain.goal)[:, 0])[0, 1]) < 0.05
    assert torch.equal(moved.cost, plain.cost)


@pytest.mark.parametrize("world_size", [2, 4])
def test_process_slices_form_the_joint_batch(world_size: int):
    joint = StepStream(experience(), 16, 7, future=0.3)(5)
    parts = [StepStream(experience(), 16, 7, rank=r, world_size=world_size, future=0.3)(5) for r in range(world_size)]
    for field in dataclasses.fields(Steps):
        assert torch.equal(torch.cat([getattr(part, field.name) for part in parts]), getattr(joint, field.name))


def test_batch_depends_only_on_its_step():
    stream: Batches = StepStream(experience(), 32, seed=0)
    first, second, other = stream(3), stream(3), stream(4)
    assert torch.equal(first.goal, second.goal) and not torch.equal(first.goal, other.goal)
    assert not torch.equal(first.x, StepStream(experience(), 32, seed=1)(3).x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 10, "world_size": 4}, "batch_size .*10.* 4 "),
        ({"batch_size": 8, "world_size": 2, "rank": 2}, "rank .*2"),
        ({"batch_size": 8, "future": 1.5}, "future .*1.5"),
    ],
)
def test_errors_name_the_argument(options: dict, message: str):
    with pytest.raises(InputError, match=message):
        StepStream(experience(), seed=0, **options)


def test_stream_validates_the_experience_of_a_world():
    bad = dataclasses.replace(experience(), cost=-experience().cost)
    with pytest.raises(InputError, match="negative"):
        StepStream(bad, 8, 0)
