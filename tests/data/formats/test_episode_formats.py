"""Episodes in the formats of others have the rows that were written, whatever package wrote them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from data.formats.written import Drawn, draw, write_lance, write_lerobot, write_npz
from training.small import call
from workflows.plan.small import WORDS

from jepatlas.core.errors import InputError
from jepatlas.data import (
    EpisodeArrays,
    EpisodeFile,
    EpisodeWriter,
    RandomPolicy,
    collect,
    experience_from_arrays,
    open_episodes,
    write_minari,
)
from jepatlas.recipes import EpisodeSource, StepFile, world_of_file
from jepatlas.worlds import Maze

LENGTHS = (6, 4, 7)
FORMATS: dict[str, Callable[[Path, Drawn], None]] = {
    "lerobot": write_lerobot,
    "table.lance": write_lance,
    "npz": write_npz,
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", FORMATS)
def test_rows_are_those_written(name: str, tmp_path: Path):
    drawn = draw(*LENGTHS)
    FORMATS[name](tmp_path / name, drawn)
    found = open_episodes(tmp_path / name)
    assert found.lengths.tolist() == list(LENGTHS) and found.offsets.tolist() == [0, 6, 10]
    for column in ("pixels", "state"):
        written = np.concatenate([episode[column] for episode in drawn])
        np.testing.assert_array_equal(found.rows(column, np.arange(17)), written)
        np.testing.assert_array_equal(found.rows(column, np.array([[16, 3]])), written[[[16, 3]]])
    for number, episode in enumerate(drawn):
        steps = found.offsets[number] + np.arange(len(episode["action"]) - 1)
        np.testing.assert_array_equal(found.rows("action", steps), episode["action"][:-1])
    again = open_episodes(tmp_path / name)
    np.testing.assert_array_equal(again.rows("pixels", np.array([5])), drawn[0]["pixels"][5:6])


@pytest.mark.parametrize("observed", ["images", "dict", "vector"])
def test_datasets_that_minari_writes(observed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    minari = pytest.importorskip("minari")
    from minari.data_collector.episode_buffer import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    drawn = draw(*LENGTHS, size=16)
    box = gymnasium.spaces.Box
    pixels, state = box(0, 255, (16, 16, 3), np.uint8), box(-np.inf, np.inf, (2,), np.float32)
    space = {"images": pixels, "vector": state, "dict": gymnasium.spaces.Dict({"pixels": pixels, "state": state})}
    buffers = []
    for number, episode in enumerate(drawn):
        given = {"images": episode["pixels"], "vector": episode["state"]}
        given["dict"] = {"pixels": episode["pixels"], "state": episode["state"]}
        steps = len(episode["action"]) - 1
        ends = [False] * (steps - 1) + [True]
        buffers.append(
            EpisodeBuffer(
                number, None, None, given[observed], episode["action"][:-1], [1.0] * steps, [False] * steps, ends
            )
        )
    minari.create_dataset_from_buffers(
        "made-v0", buffers, observation_space=space[observed], action_space=box(-1, 1, (1,), np.float32)
    )
    found = open_episodes(tmp_path / "made-v0")
    assert found.lengths.tolist() == list(LENGTHS)
    names = {"images": {"observation": "pixels"}, "vector": {"observation": "state"}}
    for column, written in names.get(observed, {"pixels": "pixels", "state": "state"}).items():
        expected = np.concatenate([episode[written] for episode in drawn])
        difference = np.abs(found.rows(column, np.arange(17)).astype(float) - expected)
        # Minari stores images as JPEG, which loses most of the noise that was drawn
        assert difference.max() == 0 or (written == "pixels" and difference.mean() < 60)
    np.testing.assert_array_equal(found.rows("action", np.arange(5)), drawn[0]["action"][:-1])
    assert np.isnan(found.rows("action", np.array([5]))).all() and np.isnan(found.rows("reward", np.array([0]))).all()
    assert found.rows("truncated", np.array([4, 5])).tolist() == [False, True]


def test_a_lerobot_folder_trains_a_world_model_which_is_certified(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write_lerobot(tmp_path / "robot", draw(*[10] * 60, size=16))
    assert call("train", "world-model", tmp_path / "robot", *WORDS[:6], *WORDS[10:], "--out", tmp_path / "run") == 0
    assert call("certify", tmp_path / "run", "--quick") == 0
    capsys.readouterr()


@pytest.mark.parametrize("name", [*FORMATS, "own.h5"])
def test_energies_are_learned_from_episodes_of_every_format(name: str, tmp_path: Path):
    drawn = draw(*LENGTHS)
    if name == "own.h5":
        with EpisodeWriter(tmp_path / name) as file:
            for episode in drawn:
                file.append(episode)
    else:
        FORMATS[name](tmp_path / name, drawn)
    experience = experience_from_arrays(StepFile(str(tmp_path / name)).read())
    states = [episode["state"] for episode in drawn]
    np.testing.assert_array_equal(experience.x, np.concatenate([one[:-1] for one in states]))
    np.testing.assert_array_equal(experience.x_next, np.concatenate([one[1:] for one in states]))
    assert experience.cost.tolist() == [1.0] * (17 - 3) and experience.episode.tolist() == [0] * 5 + [1] * 3 + [2] * 6
    chosen = StepFile(str(tmp_path / name), column="action").read()["x"]
    assert chosen.shape == (17, 1)
    with pytest.raises(InputError, match=r"column 'pixels'.*--source\.column"):
        StepFile(str(tmp_path / name), column="pixels").read()


def test_the_command_line_learns_an_energy_from_episodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write_lerobot(tmp_path / "robot", draw(*[9] * 20, size=4))
    assert call("energy", "fit", tmp_path / "robot", "--steps", "5", "--out", tmp_path / "energy") == 0
    words = ("--kind", "least-action", "--out", tmp_path / "action")
    assert call("energy", "fit", tmp_path / "robot", "--source.column", "observation.state", *words) == 0
    assert call("energy", "fit", tmp_path / "robot", "--source.column", "nothing", "--steps", "5") == 2
    capsys.readouterr()


def test_a_changed_folder_is_noticed(tmp_path: Path):
    drawn = draw(*LENGTHS)
    write_lerobot(tmp_path / "robot", drawn)
    open_episodes(tmp_path / "robot")
    darker = [episode | {"pixels": episode["pixels"] // 2} for episode in drawn]
    write_lerobot(tmp_path / "robot", darker)
    found = open_episodes(tmp_path / "robot").rows("pixels", np.arange(6))
    np.testing.assert_array_equal(found, darker[0]["pixels"], "frames are decoded again")
    write_npz(tmp_path / "npz", draw(*LENGTHS))
    sealed = EpisodeSource(str(tmp_path / "npz")).sealed()
    assert isinstance(sealed.open(), EpisodeArrays)
    (tmp_path / "npz" / "001.npz").unlink()
    with pytest.raises(InputError, match="has changed"):
        sealed.open()


def test_wrong_folders_are_refused(tmp_path: Path):
    drawn = draw(*LENGTHS)
    write_lerobot(tmp_path / "old", drawn)
    info = tmp_path / "old/meta/info.json"
    whole = json.loads(info.read_text())
    for change, words in (
        ({"codebase_version": "v2.1"}, "version 3"),
        ({"video_path": "../{video_key}.mp4"}, "outside the folder"),
        ({"video_path": "{video_key}.mp4"}, "no video"),
    ):
        info.write_text(json.dumps(whole | change))
        with pytest.raises(InputError, match=words):
            open_episodes(tmp_path / "old")
    write_npz(tmp_path / "npz", drawn)
    np.savez(tmp_path / "npz" / "003.npz", **drawn[0] | {"state": np.zeros((6, 3))})
    with pytest.raises(InputError, match="'state' has rows of shape"):
        open_episodes(tmp_path / "npz")
    np.savez(tmp_path / "npz" / "003.npz", **drawn[0] | {"state": np.zeros((5, 2))})
    with pytest.raises(InputError, match="needs 6 rows"):
        open_episodes(tmp_path / "npz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no known format"):
        open_episodes(tmp_path / "empty")
    with EpisodeWriter(tmp_path / "own.h5") as file:
        file.append(drawn[0])
    assert len(open_episodes(tmp_path / "own.h5")) == 1


@pytest.mark.parametrize("words", [["rooms"], ["Pendulum-v1", "--no-pixels"]], ids=["images", "vectors"])
def test_what_collect_writes_is_loaded_by_minari(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    minari = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    common = ["--episodes", "3", "--length", "5", "--processes", "1"]
    assert call("collect", *words, *common, "--out", tmp_path / "own.h5") == 0
    assert call("collect", *words, *common, "--format", "minari", "--out", "theirs-v0") == 0
    assert call("collect", *words, *common, "--format", "minari", "--out", tmp_path / "theirs-v0") == 2
    capsys.readouterr()
    own, found = EpisodeFile(tmp_path / "own.h5"), minari.load_dataset("theirs-v0")
    assert found.total_episodes == 3 and found.total_steps == 15
    column = "pixels" if "pixels" in own.columns else "state"
    for number, episode in enumerate(found.iterate_episodes()):
        written = own.episode(number)
        np.testing.assert_array_equal(episode.observations, written[column])
        np.testing.assert_array_equal(episode.actions, written["action"][:-1])
        np.testing.assert_array_equal(episode.rewards, written["reward"][1:])
        assert episode.truncations.tolist() == [False] * 4 + [True]
        if column == "pixels":
            np.testing.assert_array_equal(episode.infos["state"], written["state"])
    env = found.recover_environment()
    assert env.reset(seed=0)[0].shape == found.observation_space.shape == own.columns[column].shape
    again = open_episodes(tmp_path / "theirs-v0")
    assert again.about == own.about
    np.testing.assert_array_equal(again.rows("action", np.arange(18)), own.rows("action", np.arange(18)))
    assert [path.name for path in tmp_path.iterdir() if "theirs" in path.name] == ["theirs-v0"]


def test_an_agent_plans_in_the_world_that_minari_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Episodes that Minari's own recorder wrote name the world by the id and settings of its environment."""
    pytest.importorskip("minari")
    world = Maze(cells=3)
    collect(world.make, RandomPolicy(), 30, 8, 0, out=tmp_path / "own.h5", options={"goal": None})
    own = EpisodeFile(tmp_path / "own.h5")
    write_minari(own, tmp_path / "written-v0")
    metadata = tmp_path / "written-v0/data/metadata.json"
    plain = json.loads(metadata.read_text())
    spec = world.make().spec
    assert spec is not None
    metadata.write_text(
        json.dumps({key: plain[key] for key in plain if key != "jepatlas"} | {"env_spec": spec.to_json()})
    )
    assert world_of_file(open_episodes(tmp_path / "written-v0")) == world
    run = tmp_path / "run"
    assert call("train", "world-model", tmp_path / "written-v0", *WORDS[:6], *WORDS[10:], "--out", run) == 0
    assert call("plan", run, "--tasks", "2") == 0
    capsys.readouterr()
