"""Driving in gymnasium environments that are no worlds of jepatlas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from training.small import call

import jepatlas as ja
from jepatlas.core.files import read_json
from jepatlas.data import RandomPolicy, collect
from jepatlas.nn import LinearDynamicsConfig, MLPConfig
from jepatlas.planning import CEMConfig
from jepatlas.recipes import EpisodeSource, Predictive, WorldModelRecipe
from jepatlas.training import TrainingConfig
from jepatlas.workflows.plan import DrivingConfig

LENGTH = 12
FAST = DrivingConfig(CEMConfig(horizon=5, samples=64, iterations=3, elites=8), steps=LENGTH)


class Dot(gymnasium.Env[np.ndarray, Any]):
    """A dot in a square of side 4, which actions of at most 2 move by a tenth of them."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  (gymnasium's convention)
    observation_space = Box(-2.0, 2.0, (2,))
    action_space: Any = Box(-2.0, 2.0, (2,))

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1, 1, 2)
        return self.place.astype(np.float32), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        assert self.action_space.contains(action)
        self.place = np.clip(self.place + 0.1 * self.move(action), -2, 2)
        return self.place.astype(np.float32), 1.0, False, False, {}

    def move(self, action: Any) -> np.ndarray:
        return np.asarray(action, float)

    def render(self) -> Any:
        frame = np.zeros((300, 200, 3), np.uint8)
        row, column = ((self.place + 2) / 4 * (299, 199)).astype(int)
        frame[row, column] = 255
        return frame


class Compass(Dot):
    """The same with four actions, and without images."""

    metadata = {"render_modes": []}  # noqa: RUF012
    action_space = Discrete(4, start=1)

    def move(self, action: Any) -> np.ndarray:
        return 2 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])[int(action) - 1]


class Wide(Dot):
    action_space = Box(-2.0, 2.0, (3,))


for maker in (Dot, Compass, Wide):
    gymnasium.register(f"{maker.__name__}Test-v0", entry_point=maker, max_episode_steps=LENGTH)


def trained(make: Callable[[], Any], name: str, folder: Path) -> Path:
    """A world model of random episodes; its encoder and dynamics are nearly linear, so a short training suffices."""
    file = folder / "episodes.h5"
    collect(make, RandomPolicy(0.5), 60, LENGTH, 0, out=file, about={"environment": name}).close()
    recipe = WorldModelRecipe(
        source=EpisodeSource(str(file)),
        encoder=MLPConfig(32, 1),
        model=Predictive(dynamics=LinearDynamicsConfig()),
        latent_dim=2,
        training=TrainingConfig(steps=300, batch_size=64, lr=3e-3, collapse=0.0),
    )
    return ja.train(recipe, folder / "run").folder


@pytest.fixture(scope="module")
def dot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(Dot, "DotTest-v0", tmp_path_factory.mktemp("dot"))


def test_an_agent_drives_in_the_environment_of_its_training(dot: Path, tmp_path: Path):
    found = ja.drive(dot, tasks=12, config=FAST, film=tmp_path / "dot.gif")
    assert found.success_rate > 0.7 and found.chance.mean() < 0.4
    starts, goals, ends = found.drive.tasks.starts, found.drive.tasks.goals, found.drive.states[:, -1]
    assert (np.linalg.norm(starts - goals, axis=1) > 0.1).all(), "no goal is reached before the first step"
    nearer = np.linalg.norm(ends - goals, axis=1) < 0.2 * np.linalg.norm(starts - goals, axis=1)
    assert nearer[found.drive.reached].all()
    assert np.abs(found.drive.actions).max() > 1, "actions are in the bounds of the environment"
    assert (tmp_path / "dot.gif").read_bytes().startswith(b"GIF")
    assert found.record.provenance["environment"] == "DotTest-v0" and "rewards" in found.summary()
    again = ja.drive(dot, tasks=12, config=FAST)
    np.testing.assert_array_equal(again.drive.states, found.drive.states)


def test_discrete_actions(tmp_path: Path):
    run = trained(Compass, "CompassTest-v0", tmp_path)
    found = ja.drive(run, tasks=10, config=FAST)
    assert found.success_rate > found.chance.mean()
    with pytest.raises(ja.InputError, match="cannot be rendered"):
        ja.drive(run, tasks=2, config=FAST, film=tmp_path / "a.gif")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"environment": "WideTest-v0"}, "actions of 2"),
        ({"environment": "CartPole-v1"}, "observations of shape"),
        ({"environment": "NoSuch-v0"}, "NoSuch-v0"),
        ({"start": [0.0, 0.0], "goal": [1.0, 1.0]}, "'start'"),
        ({"tasks": 0}, "tasks"),
    ],
)
def test_what_does_not_fit_is_refused(dot: Path, options: dict[str, Any], name: str):
    with pytest.raises(ja.InputError, match=name):
        ja.drive(dot, config=FAST, **options)


def test_a_module_is_imported_only_if_it_is_named(dot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "episodes.h5"
    name = "my_dot:MyDot-v0"
    collect(Dot, RandomPolicy(0.5), 20, LENGTH, 0, out=file, about={"environment": name}).close()
    source = EpisodeSource(str(file))
    recipe = WorldModelRecipe(source=source, encoder=MLPConfig(8, 1), latent_dim=2, training=TrainingConfig(steps=3))
    run = str(ja.train(recipe, tmp_path / "run").folder)
    monkeypatch.chdir(tmp_path)
    code = "import gymnasium\ngymnasium.register('MyDot-v0', entry_point='DOT')\n"
    Path("my_dot.py").write_text(code.replace("DOT", f"{Dot.__module__}:Dot"))
    with pytest.raises(ja.InputError, match="--environment"):
        ja.drive(run, tasks=2)
    words = ("plan", run, "--environment", name, "--tasks", "2", "--steps", "4", "--json", "answer.json")
    assert call(*words) == 0
    assert read_json(Path("answer.json"))["provenance"]["environment"] == name
