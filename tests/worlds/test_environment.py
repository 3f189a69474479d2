"""Every world with actions as a gymnasium environment: check_env, seeds, episodes, invalid input."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from dataclasses import dataclass
from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from jepatlas.core.errors import InputError
from jepatlas.testing import check_world
from jepatlas.worlds import (
    ActionEnv,
    Camera,
    ConstantCurrent,
    Coupling,
    LinearQuadratic,
    Maze,
    Rooms,
    ShearCurrent,
)

WORLDS = [
    Rooms(),
    Rooms(size="big", wall=None, door=None, seed=4, one_way=True, camera=Camera(30.0, palette="night")),
    Rooms(one_way=True, way_back=False),
    Rooms(current=ShearCurrent(0.4)),
    Maze(),
    Maze(cells=4, seed=2, loops=3, one_way=True, camera=Camera(mirror=True, zoom=0.8, palette="clay")),
    Maze(cells=3, current=ConstantCurrent(0.2, -0.1)),
    LinearQuadratic(),
    LinearQuadratic(dim=3, actions=1, mixing=Coupling(layers=2)),
]

every_world = pytest.mark.parametrize("world", WORLDS, ids=lambda world: f"{world.kind}-{WORLDS.index(world)}")


@every_world
def test_worlds_keep_the_contract(world):
    check_world(world)


@pytest.mark.parametrize("order", ["gymnasium, jepatlas", "jepatlas, gymnasium"])
def test_worlds_are_registered_with_gymnasium_whichever_is_imported_first(order: str):
    code = f"import {order}; print(gymnasium.make('jepatlas/Maze-v0', cells=4, loops=2).unwrapped.world)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == str(Maze(cells=4, loops=2))


def test_a_world_makes_its_environment_before_gymnasium_is_imported():
    code = "from jepatlas.worlds import Maze; print(Maze().make().spec.id)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "jepatlas/Maze-v0"


@pytest.mark.parametrize("name", ["Rooms", "Maze", "LinearQuadratic"])
def test_registered_worlds_pass_check_env(name: str):
    env = gymnasium.make(f"jepatlas/{name}-v0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*infinity.*")  # of unbounded observations
        check_env(env.unwrapped)
    again = gymnasium.make(env.spec)
    np.testing.assert_array_equal(env.reset(seed=3)[0], again.reset(seed=3)[0])


@every_world
def test_same_seed_gives_bitwise_equal_episodes(world):
    episodes = []
    for env in (world.make(), pickle.loads(pickle.dumps(world)).make()):
        actions = np.random.default_rng(1).uniform(-1, 1, (30, world.action_dim))
        seen, info = env.reset(seed=7)
        episodes.append([seen, info["state"], info["goal"]])
        episodes[-1] += [part for action in actions for part in (env.step(action)[0], env.unwrapped.state)]
    for first, second in zip(*episodes, strict=True):
        np.testing.assert_array_equal(first, second)
    assert not np.array_equal(world.make().reset(seed=8)[1]["state"], episodes[0][1])


def test_episode_terminates_at_the_goal_with_reward_minus_one_per_step():
    env = Rooms().make()
    start, goal = np.array([-0.8, -0.5]), np.array([-0.42, -0.5])
    _, info = env.reset(seed=0, options={"state": start, "goal": goal})
    np.testing.assert_array_equal(info["state"], start)
    np.testing.assert_array_equal(info["goal"], goal)
    steps = [env.step(np.array([1.0, 0.0], dtype=np.float32)) for _ in range(3)]
    assert [step[1:4] for step in steps] == [(-1.0, False, False), (-1.0, False, False), (-1.0, True, False)]
    assert [step[4]["success"] for step in steps] == [False, False, True]


def test_without_a_goal_there_is_no_termination_and_no_reward():
    env = Maze().make()
    _, info = env.reset(seed=0, options={"goal": None})
    assert np.isnan(info["goal"]).all()
    for action in np.random.default_rng(0).uniform(-1, 1, (50, 2)):
        _, reward, over, cut, info = env.step(action)
        assert (reward, over, cut, info["success"]) == (0.0, False, False, False)


def test_observations_are_rendered_images_except_for_linear_worlds():
    env = Rooms().make()
    seen, info = env.reset(seed=0)
    np.testing.assert_array_equal(seen, Rooms().render(info["state"][None])[0])
    np.testing.assert_array_equal(env.render(), seen)
    assert Rooms().make(render_mode=None).unwrapped.metadata["render_modes"] == ["rgb_array"]
    assert LinearQuadratic().make().observation_space.dtype == np.float64
    with pytest.raises(InputError, match="render_mode is 'rgb_array'"):
        LinearQuadratic().make(render_mode="rgb_array")


def test_gymnasium_make_copies_from_the_spec():
    env = Maze(cells=3).make()
    assert env.spec is not None
    copy = gymnasium.make(env.spec, max_episode_steps=5)
    assert copy.unwrapped.world == Maze(cells=3)  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_array_equal(copy.reset(seed=3)[0], env.reset(seed=3)[0])
    vectors = gymnasium.make_vec(env.spec, num_envs=2, vectorization_mode="sync")
    assert vectors.reset(seed=0)[0].shape == (2, 64, 64, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gaol": None}, "'goal'"),
        ({"state": [0.0, 0.0]}, "state .*'rooms'"),  # in the wall
        ({"goal": [3.0, 0.0]}, "goal"),
        ({"goal": [0.5]}, "2 finite numbers"),
        ({"state": [np.nan, 0.0]}, "state"),
    ],
)
def test_reset_refuses_invalid_options(options, message: str):
    with pytest.raises(InputError, match=message):
        Rooms().make().reset(seed=0, options=options)


def test_step_refuses_invalid_actions_and_needs_reset():
    env = Rooms().make()
    with pytest.raises(InputError, match="reset"):
        env.step(np.zeros(2))
    env.reset(seed=0)
    for action in (np.array([np.nan, 0.0]), np.zeros(3)):
        with pytest.raises(InputError, match="2 finite numbers"):
            env.step(action)


@dataclass(frozen=True)
class ClosableWorld(LinearQuadratic):
    """A world that counts the calls of `close`."""

    kind: ClassVar[str] = "closable"
    closed: tuple[list[int], ...] = ([],)

    def close(self) -> None:
        self.closed[0].append(1)


def test_close_closes_the_world():
    world = ClosableWorld()
    env = world.make()
    env.reset(seed=0)
    assert world.closed == ([],)
    env.close()
    assert world.closed == ([1],)
    Rooms().make().close()


@dataclass(frozen=True)
class InvalidWorld(LinearQuadratic):
    """A world that violates the protocol in one way."""

    kind: ClassVar[str] = "invalid"
    violation: str = ""

    @property
    def action_dim(self) -> int:
        return 0 if self.violation == "no actions" else 2

    def states(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return super().states(count, rng) * (np.inf if self.violation == "unbounded" else 1)

    def observe(self, states: np.ndarray) -> np.ndarray:
        return states.astype(np.float32) if self.violation == "another type" else super().observe(states)


@pytest.mark.parametrize(
    ("violation", "message"),
    [
        ("no actions", "action_dim is 0"),
        ("unbounded", "4 finite numbers"),
        ("another type", "float32"),
    ],
)
def test_worlds_that_violate_the_protocol_are_refused(violation: str, message: str):
    with pytest.raises(InputError, match=message):
        ActionEnv(InvalidWorld(violation=violation))


@pytest.mark.parametrize("first", ["jepatlas.worlds.gym_registration", "jepatlas.data.episode_formats", "gymnasium"])
def test_modules_that_know_the_registered_worlds_are_imported_in_any_order(first: str):
    code = f"import jepatlas, {first}, gymnasium; print(gymnasium.spec('jepatlas/Rooms-v0').id)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "jepatlas/Rooms-v0", done.stderr
