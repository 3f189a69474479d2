"""Collection from environments in several processes; interrupted collections resume bit for bit."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from data.collected import Forgetful, Unbounded, Walk, interrupted_pendulum, killed_pendulum, pendulum, rooms
from gymnasium.spaces import Box, Discrete

from jepatlas import __version__
from jepatlas.core.errors import InputError
from jepatlas.core.seeding import derive, numpy_generator
from jepatlas.data import EpisodeFile, RandomPolicy, WindowStream, collect
from jepatlas.data.collecting import plain_description

NUMBERS: Any = {"episodes": 9, "length": 6, "seed": 5, "shard": 2}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of an uninterrupted collection in one process."""
    out = tmp_path_factory.mktemp("whole") / "a.h5"
    collect(pendulum, RandomPolicy(0.5), **NUMBERS, out=out)
    assert [path.name for path in out.parent.iterdir()] == ["a.h5"]
    return out.read_bytes()


def test_episodes_match_the_environment(tmp_path: Path):
    file = collect(partial(Walk, "rgb_array"), RandomPolicy(), 12, 8, 3, out=tmp_path / "a.h5")
    assert len(set(file.lengths)) > 1 and file.lengths.max() == 9  # some ended early
    for number in range(len(file)):
        data, env = file.episode(number), Walk()
        state, _ = env.reset(seed=derive(3, "episode", number) >> 31)
        assert np.isnan(data["reward"][0]) and np.isnan(data["action"][-1]).all()
        for step, action in enumerate(data["action"][:-1]):
            state, reward, terminated, _, _ = env.step(action)
            assert (data["reward"][step + 1], data["terminated"][step + 1]) == (reward, terminated)
            assert data["truncated"][step + 1] == (step == 7 and not terminated)
        assert data["state"][-1].tolist() == [state[0], 7.0]  # from the info dict
        assert data["pixels"].shape == (len(data["action"]), 4, 6, 3)
        assert (data["pixels"] == np.arange(len(data["action"]))[:, None, None, None]).all()


def test_file_records_its_collection_settings(tmp_path: Path):
    file = collect(Walk, RandomPolicy(0.5), 2, 4, 7, out=tmp_path / "a.h5", about={"environment": "Walk-v0"})
    assert file.about == EpisodeFile(tmp_path / "a.h5").about
    assert file.about["environment"] == "Walk-v0" and file.about["seed"] == 7 and file.about["version"] == __version__
    assert file.about["policy"]["persistence"] == 0.5


def test_result_is_independent_of_process_count_and_progress_is_reported(whole: bytes, tmp_path: Path):
    calls: list[tuple[int, int]] = []
    out = tmp_path / "a.h5"
    file = collect(
        pendulum, RandomPolicy(0.5), **NUMBERS, out=out, processes=2, progress=lambda *now: calls.append(now)
    )
    assert out.read_bytes() == whole
    assert calls[0] == (0, 9) and calls[-1] == (9, 9)
    done = [now for now, _ in calls]
    assert done == sorted(set(done))
    assert "pixels" not in file.columns and file.columns["state"].shape == (3,) and file.lengths.tolist() == [7] * 9
    assert np.abs(file.rows("action", np.arange(6))).max() <= 2
    with pytest.raises(InputError, match=r"a\.h5"):
        collect(pendulum, RandomPolicy(0.5), **NUMBERS, out=out)


@pytest.mark.slow
def test_killed_process_loses_at_most_one_shard(whole: bytes, tmp_path: Path):
    again = partial(killed_pendulum, str(tmp_path / "mark"))
    numbers, out = NUMBERS | {"shard": 3}, tmp_path / "a.h5"
    with pytest.raises(InputError, match=r"of 9 episodes .*a\.h5\.parts"):
        collect(again, RandomPolicy(0.5), **numbers, out=out, processes=2)
    assert not out.exists()
    collect(again, RandomPolicy(0.5), **numbers, out=out)
    assert out.read_bytes() == whole  # for any sharding


def test_interrupted_collection_resumes(whole: bytes, tmp_path: Path):
    make = partial(interrupted_pendulum, str(tmp_path / "mark"))
    numbers, out, calls = NUMBERS | {"shard": 4}, tmp_path / "a.h5", []
    with pytest.raises(KeyboardInterrupt):
        collect(make, RandomPolicy(0.5), **numbers, out=out)
    assert not (tmp_path / "a.h5.parts").exists()  # the first shard was incomplete, so there is nothing to resume
    collect(make, RandomPolicy(0.5), **numbers, out=out, progress=lambda *now: calls.append(now))
    assert out.read_bytes() == whole and calls == [(0, 9), (4, 9), (8, 9), (9, 9)]


@pytest.mark.slow
def test_interrupted_parent_stops_its_processes_and_keeps_finished_shards(whole: bytes, tmp_path: Path):
    out, calls = tmp_path / "a.h5", []

    def interrupt(done: int, episodes: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(pendulum, RandomPolicy(0.5), **NUMBERS, out=out, processes=2, progress=interrupt)
    collect(pendulum, RandomPolicy(0.5), **NUMBERS, out=out, progress=lambda *now: calls.append(now))
    assert out.read_bytes() == whole and calls[0][0] >= 2


def test_resuming_with_other_settings_is_rejected(tmp_path: Path):
    def stop(done: int, episodes: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(pendulum, RandomPolicy(0.5), **NUMBERS, out=tmp_path / "a.h5", progress=stop)
    with pytest.raises(InputError, match=r"policy .*0\.5.*0\.0.*seed \(5, now 6\)"):
        collect(pendulum, RandomPolicy(), **NUMBERS | {"seed": 6}, out=tmp_path / "a.h5")


def test_finished_collection_with_leftover_parts_is_complete(whole: bytes, tmp_path: Path):
    """As after a kill between writing the file and removing its parts."""
    out, calls = tmp_path / "a.h5", []

    def stop(done: int, episodes: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect(pendulum, RandomPolicy(0.5), **NUMBERS, out=out, progress=stop)
    out.write_bytes(whole)
    with pytest.raises(InputError, match="seed"):
        collect(pendulum, RandomPolicy(0.5), **NUMBERS | {"seed": 6}, out=out)
    file = collect(pendulum, RandomPolicy(0.5), **NUMBERS, out=out, progress=lambda *now: calls.append(now))
    assert len(file) == 9 and calls == [(9, 9)]
    assert out.read_bytes() == whole and [path.name for path in tmp_path.iterdir()] == ["a.h5"]


def test_discrete_actions_are_one_hot(tmp_path: Path):
    file = collect(partial(Walk, choices=True), RandomPolicy(), 4, 5, 0, out=tmp_path / "a.h5", options={"from": 0.0})
    data = file.episode(0)
    assert data["action"].shape[1] == 3 and (data["action"][:-1].sum(1) == 1).all()
    assert data["state"][0, 0] == 0.0 and np.array_equal(data["action"][:-1] @ [-1, 0, 1], np.diff(data["state"][:, 0]))


def test_windows_of_rendered_episodes(tmp_path: Path):
    file = collect(rooms, RandomPolicy(0.8), 3, 5, 0, out=tmp_path / "a.h5", options={"goal": None})
    batch = WindowStream(file, 4, 0, horizon=2, z="state")(0)
    assert batch.frames.shape == (4, 3, 3, 64, 64) and batch.u.shape == (4, 2, 2) and batch.z is not None
    assert file.lengths.tolist() == [6, 6, 6]


def scripted(observation: Any, info: Any, generator: np.random.Generator) -> np.ndarray:
    return np.clip(-observation, -1, 1).astype(np.float32)


def too_far(observation: Any, info: Any, generator: np.random.Generator) -> np.ndarray:
    return np.array([3.0], np.float32)


def test_function_is_accepted_as_policy(tmp_path: Path):
    file = collect(Walk, scripted, 2, 4, 0, out=tmp_path / "a.h5")
    data = file.episode(1)
    assert data["action"][0, 0] == np.float32(-data["state"][0, 0])
    with pytest.raises(InputError, match=r"3.* step 0"):
        collect(Walk, too_far, 2, 4, 0, out=tmp_path / "b.h5")
    with pytest.raises(InputError, match="step 1"):
        collect(Forgetful, scripted, 2, 4, 0, out=tmp_path / "b.h5")


def test_unbounded_actions_are_rejected(tmp_path: Path):
    with pytest.raises(InputError, match="TransformAction"):
        collect(Unbounded, RandomPolicy(), 2, 4, 0, out=tmp_path / "a.h5")

    def bounded() -> gymnasium.Env:
        return gymnasium.wrappers.TransformAction(Unbounded(), lambda action: action, Box(-1, 1, (1,)))

    with pytest.raises(InputError, match="processes"):
        collect(bounded, RandomPolicy(), 40, 4, 0, out=tmp_path / "a.h5", processes=2)
    assert len(collect(bounded, RandomPolicy(), 2, 4, 0, out=tmp_path / "a.h5")) == 2


@pytest.mark.parametrize("changes", [{"episodes": 0}, {"length": 0}, {"shard": 0}, {"processes": 0}])
def test_errors_name_the_argument(tmp_path: Path, changes: dict[str, int]):
    with pytest.raises(InputError, match=rf"{next(iter(changes))} .*0"):
        collect(pendulum, RandomPolicy(), **NUMBERS | {"out": tmp_path / "a.h5"} | changes)


def draw(policy: RandomPolicy, space: Any, count: int) -> np.ndarray:
    act, generator = policy.begin(space), numpy_generator(0, "test")
    return np.array([act(None, {}, generator) for _ in range(count)])


@pytest.mark.parametrize("persistence", [0.0, 0.8])
def test_random_actions_are_uniform_and_persist(persistence: float):
    actions = draw(RandomPolicy(persistence), Box(np.array([-1, 0]), np.array([1, 3]), dtype=np.float32), 20_000)
    scaled = (actions - [0, 1.5]) / [1, 1.5]
    for column in scaled.T:
        quantiles = np.quantile(column, [0.1, 0.5, 0.9])
        np.testing.assert_allclose(quantiles, [-0.8, 0, 0.8], atol=0.08)
        lasting = np.corrcoef(column[1:], column[:-1])[0, 1]
        assert lasting == pytest.approx(6 / np.pi * np.arcsin(persistence / 2), abs=0.03)  # Spearman's ρ of a Gaussian
    assert abs(np.corrcoef(scaled[:, 0], scaled[:, 1])[0, 1]) < 0.06


def test_discrete_actions_persist_and_are_held():
    chosen = draw(RandomPolicy(0.7), Discrete(4, start=2), 20_000)
    assert set(chosen) == {2, 3, 4, 5}
    assert np.mean(chosen[1:] == chosen[:-1]) == pytest.approx(0.7 + 0.3 / 4, abs=0.02)
    held = draw(RandomPolicy(repeat=3), Box(-1, 1, (1,)), 30).reshape(10, 3)
    assert (held == held[:, :1]).all() and len(set(held[:, 0])) == 10
    with pytest.raises(InputError, match=r"persistence .*1\.0"):
        RandomPolicy(persistence=1.0)
    with pytest.raises(InputError, match=r"repeat .*0"):
        RandomPolicy(repeat=0)


def test_descriptions_distinguish_settings_but_not_copies():
    first, again = (partial(Walk, "rgb_array", choices=choice) for choice in (True, True))
    assert plain_description(first) == plain_description(again) != plain_description(partial(Walk, "rgb_array"))
    assert plain_description(RandomPolicy(0.1).begin) != plain_description(RandomPolicy(0.2).begin)
    assert plain_description({"a": np.arange(2), "b": Box}) == {"a": [0, 1], "b": "gymnasium.spaces.box.Box"}
    assert plain_description(Walk()) == {"class": "data.collected.Walk"}


def test_collected_file_has_the_published_layout(whole: bytes, tmp_path: Path):
    import h5py

    (tmp_path / "a.h5").write_bytes(whole)
    with h5py.File(tmp_path / "a.h5") as file:
        names = {"action", "reward", "terminated", "truncated", "state", "ep_idx", "step_idx", "ep_len", "ep_offset"}
        assert set(file) == names
        length, offset = (np.asarray(file[name]) for name in ("ep_len", "ep_offset"))
        assert np.array_equal(offset, np.append(0, np.cumsum(length)[:-1]))
        assert np.asarray(file["action"]).dtype == np.float32
    assert len(EpisodeFile(tmp_path / "a.h5")) == 9
