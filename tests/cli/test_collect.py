"""`collect`, and whether what it names as the next step can be taken: worlds of numbers, foreign environments."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
from cli.calls import Captured, answer, refused
from gymnasium.spaces import Box
from training.small import call

from jepatlas.data import EpisodeFile, EpisodeWriter
from jepatlas.nn import ConvConfig, MLPConfig
from jepatlas.recipes import world_of_file
from jepatlas.workflows.plan import load_world_model
from jepatlas.worlds import Maze

FEW = ["--episodes", "12", "--length", "6"]
SHORT = ["--steps", "2", "--batch-size", "8", "--schedule", "constant", "--latent-dim", "4"]


class Plain(gymnasium.Env):
    """One that draws nothing, and does not know of a render_mode; it says in which process it lives."""

    def __init__(self) -> None:
        self.observation_space, self.action_space = Box(-9, 9, (3,), np.float64), Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1, 1, 3)
        return self.place, {"state": np.array([os.getpid()])}

    def step(self, action: Any) -> Any:
        self.place = 0.9 * self.place + 0.1 * action
        return self.place, 0.0, False, False, {"state": np.array([os.getpid()])}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "Plain-v0" not in gymnasium.registry:
        gymnasium.register("Plain-v0", cast(Any, Plain))


def next_words(said: str) -> list[str]:
    """The command after 'Next:'."""
    return shlex.split(said.split("Next: jepatlas ")[1].splitlines()[0])


@pytest.mark.parametrize(
    ("words", "seen", "pictures"),
    [
        (["linear-quadratic"], (4,), False),
        (["Pendulum-v1", "--no-pixels"], (3,), False),
        (["rooms"], (3, 64, 64), True),
    ],
)
def test_the_suggested_next_command_works(words: list[str], seen: tuple[int, ...], pictures: bool, capsys: Captured):
    assert call("collect", *words, *FEW, "--out", "a b.h5") == 0
    assert call(*next_words(capsys.readouterr().out), *SHORT, "--out", "run") == 0
    said, model = " ".join(capsys.readouterr().out.split()), load_world_model(Path("run"))
    assert "Next: jepatlas plan run" in said and "--world WORLD" not in said
    assert model.environment == words[0] if model.world is None else model.world.kind == words[0]
    assert model.data.shape == seen and model.data.z == "state"
    assert isinstance(model.recipe.encoder, ConvConfig if pictures else MLPConfig)


def test_environments_without_a_render_mode_are_made_by_gymnasium(capsys: Captured):
    found = answer(capsys, "collect", "Plain-v0", "--no-pixels", *FEW, "--out", "plain.h5")
    assert found["columns"]["observation"] == [3] and "pixels" not in found["columns"]
    assert "takes no render_mode" in refused(capsys, "collect", "Plain-v0", *FEW, "--out", "drawn.h5")


def test_few_steps_are_collected_in_one_process():
    assert call("collect", "Plain-v0", "--no-pixels", "--episodes", "40", "--length", "2", "--out", "plain.h5") == 0
    states = EpisodeFile("plain.h5").rows("state", np.arange(120))
    assert (states == os.getpid()).all(), "three shards, and no process for them"


@pytest.mark.parametrize(("column", "options"), [("place", []), ("state", ["--source.state", "none"])])
def test_the_truth_may_be_unknown(column: str, options: list[str], capsys: Captured):
    with EpisodeWriter("a.h5") as writer:
        for seed in range(12):
            rng = np.random.default_rng(seed)
            action = np.append(rng.uniform(-1, 1, (5, 2)), [[np.nan] * 2], 0).astype(np.float32)
            writer.append({"observation": rng.normal(size=(6, 3)), "action": action, column: np.zeros((6, 2))})
    assert call("train", "world-model", "a.h5", *SHORT, *options, "--out", "run") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert load_world_model(Path("run")).data.z is None
    assert "--world WORLD" in said and "plan from Python" in said
    assert "without true states" in refused(capsys, "certify", "run")


def test_a_missing_column_is_reported_with_its_option(capsys: Captured):
    assert call("collect", "Plain-v0", "--no-pixels", *FEW, "--out", "plain.h5") == 0
    capsys.readouterr()
    for option, name in (("observation", "pixels"), ("action", "u"), ("state", "z")):
        said = refused(capsys, "train", "world-model", "plain.h5", *SHORT, f"--source.{option}", name)
        assert f"no column '{name}'" in said and f"--source.{option}" in said


def test_the_file_is_named_after_its_world_and_describes_it(capsys: Captured):
    assert answer(capsys, "collect", "maze", "--world.cells", "3", *FEW)["file"] == "maze.h5"
    assert world_of_file(EpisodeFile("maze.h5")) == Maze(cells=3)
    assert EpisodeFile("maze.h5").about["policy"] == {"kind": "random", "persistence": 0.8, "repeat": 1}
    assert answer(capsys, "collect", "gymnasium.envs:Plain-v0", "--no-pixels", *FEW)["file"] == (
        "gymnasium.envs-Plain-v0.h5"
    )
    assert EpisodeFile("gymnasium.envs-Plain-v0.h5").about["environment"] == "gymnasium.envs:Plain-v0"
    assert "maze.h5 exists already" in refused(capsys, "collect", "maze", *FEW)


def test_help_lists_worlds_and_currents(capsys: Captured):
    assert call("collect", "maze", "--help") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "maze.h5" in said and "--current KIND Kind of current: constant, shear, jet, vortex, none." in said


@pytest.mark.parametrize("words", [["--motion", "scripted"], ["--motion=sac"]])
def test_motions_without_actions_are_referred_to_train_world_model(words: list[str], capsys: Captured):
    assert "train world-model reacher --model frames --motion" in refused(capsys, "collect", "reacher", *words)


def uneven(path: str, lengths: list[int]) -> None:
    with EpisodeWriter(path) as writer:
        for length in lengths:
            action = np.zeros((length, 1), np.float32)
            writer.append({"state": np.random.default_rng(length).normal(size=(length, 3)), "action": action})


def test_unusable_episodes_are_reported(capsys: Captured):
    uneven("a.h5", [9] * 8 + [3, 2])
    assert call("train", "world-model", "a.h5", *SHORT, "--out", "run") == 0
    assert "2 of 10 episodes" in capsys.readouterr().out
    assert call("train", "world-model", "a.h5", *SHORT, "--model.horizon", "1", "--out", "other") == 0
    assert "of 10 episodes" not in capsys.readouterr().out


def test_a_certificate_of_few_held_out_frames_reports_it(capsys: Captured):
    uneven("a.h5", [5] * 30)
    assert call("train", "world-model", "a.h5", *SHORT, "--latent-dim", "16", "--out", "run") == 0
    capsys.readouterr()
    said = refused(capsys, "certify", "run")
    assert "12 pairs of held-out frames" in said and "more or longer episodes" in said and "transposed" not in said


def test_modules_in_the_working_directory_are_found(capsys: Captured):
    Path("my_worlds.py").write_text(
        "import gymnasium\nfrom cli.test_collect import Plain\ngymnasium.register('Mine-v0', Plain)\n"
    )
    found = answer(capsys, "collect", "my_worlds:Mine-v0", "--no-pixels", *FEW, "--out", "mine.h5")
    assert found["episodes"] == 12
    assert "no_such_module" in refused(capsys, "collect", "no_such_module:Mine-v0", *FEW, "--out", "other.h5")
