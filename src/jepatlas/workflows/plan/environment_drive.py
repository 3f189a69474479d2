"""Planning in any gymnasium environment, with one copy of it for each task.

The dynamics and states of such an environment are unknown, so tasks are made of what it shows. A task starts at a
reset. Its goal is the observation of a random episode from the same start that is farthest from it, so it can be
reached. With x the numbers of a row (`info["state"]` or the flattened observation; pixels if there is nothing else),
divided by their standard deviations over the random episodes, a goal g is reached when

    ‖x − g‖ ≤ 0.1 ‖x₀ − g‖

Chance is what random actions reach from the same starts in as many steps.
"""

from __future__ import annotations

import importlib
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.config import choices
from jepatlas.core.errors import InputError
from jepatlas.core.figures import Film, FilmPanel, FilmStrip
from jepatlas.core.linear import subsample
from jepatlas.core.progress import track
from jepatlas.core.seeding import derive, numpy_generator
from jepatlas.data import RandomPolicy, check_actions, network_shape, observed_columns, stack_history
from jepatlas.planning import ActionBox, receding_horizon
from jepatlas.recipes import AnyActionWorld
from jepatlas.workflows.plan.driving import Drive, DrivingConfig, planning_cost
from jepatlas.workflows.plan.planning_agent import PlanningAgent
from jepatlas.workflows.plan.planning_tasks import Tasks
from jepatlas.workflows.plan.trained_world_model import TrainedModel

if TYPE_CHECKING:
    import gymnasium

__all__ = ["EnvironmentDrive", "drive_environment", "environment_maker"]

NEAR = 0.1  # a goal is reached within this share of its distance from the start
FILMED = 6  # tasks with a film
FILM_FRAMES = 40
FILM_SIDE = 128  # pixels of a film's longer side, at most


def environment_maker(name: str, pixels: bool) -> Callable[[], gymnasium.Env[Any, Any]]:
    """A function that makes the environment. It is tried here, before processes start.

    A name `module:Name-v0` imports the module, which may be in the working directory. Without pixels no render_mode is
    given, because not every environment takes one.
    """
    library = importlib.import_module("gymnasium")
    if ":" in name and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # gymnasium imports the module before the colon
    make = partial(library.make, name, render_mode="rgb_array") if pixels else partial(library.make, name)
    try:
        make().close()
    except (library.error.Error, ModuleNotFoundError) as error:
        reason = str(error).rstrip(". ")
        worlds = ", ".join(choices(AnyActionWorld))
        raise InputError(f"gymnasium cannot make '{name}': {reason}. The worlds of jepatlas are {worlds}.") from error
    except TypeError as error:
        if not pixels or "render_mode" not in str(error):
            raise
        raise InputError(
            f"'{name}' cannot be rendered: it takes no render_mode. Collect its own observations: --no-pixels."
        ) from error
    return make


@dataclass(frozen=True)
class EnvironmentDrive:
    """A drive in an environment, what random actions do from the same starts, and the sums of rewards of both."""

    drive: Drive
    chance: np.ndarray  # (b,) bool
    returns: np.ndarray  # (b,)
    chance_returns: np.ndarray  # (b,)
    films: tuple[dict[str, np.ndarray], Film]


def drive_environment(
    name: str, model: TrainedModel, agent: PlanningAgent, count: int, config: DrivingConfig, *, seed: int
) -> EnvironmentDrive:
    """Plan to `count` goals in the environment `name`."""
    copies = _Copies(name, model, count, seed)
    try:
        policy = model.explored or RandomPolicy()
        first = copies.restart()
        goals, scale = _goals(copies, policy, max(1, config.steps // 2), seed)
        tasks = Tasks(first.z, goals.z)
        near = _Near(tasks, scale)
        chance, chance_returns = _at_random(copies, policy, near, config.steps, seed)
        episode = _Episode(copies, agent, goals, near)
        planner = config.planner.build(copies.planning_box(agent.stride))
        with torch.no_grad():
            loop = receding_horizon(
                planner,
                planning_cost(agent, config),
                episode.info(),
                episode.step,
                steps=-(-config.steps // agent.stride),
                replan=config.replan,
                seed=seed,
            )
        unreachable = np.zeros(count, dtype=bool)
        unreachable[list(loop.unreachable)] = True
        drive = episode.result(tasks, unreachable)
        return EnvironmentDrive(drive, chance, copies.returns, chance_returns, episode.films(drive))
    finally:
        copies.close()


@dataclass(frozen=True)
class _Rows:
    """What all copies show: what the agent observes, the numbers that distances are measured in, and frames."""

    x: np.ndarray  # (b, …)
    z: np.ndarray  # (b, n)
    frames: Sequence[np.ndarray | None]


class _Copies:
    """Copies of an environment. One that has ended stays as it is."""

    def __init__(self, name: str, model: TrainedModel, count: int, seed: int) -> None:
        self.name, self.column, self.seed = name, model.data.x, seed
        make = environment_maker(name, pixels=_can_render(name))
        self.envs = [make() for _ in range(count)]
        self.space: Any = self.envs[0].action_space
        check_actions(self.envs[0])
        self.shape = model.data.shape
        if self.box.dim != model.data.action_dim:
            self.close()
            raise InputError(
                f"The run was trained on actions of {model.data.action_dim} numbers, but those of '{name}' have "
                f"{self.box.dim}. Plan in the environment of its training."
            )

    @property
    def box(self) -> ActionBox:
        """The bounds of one action; a discrete action is the largest of its numbers."""
        if hasattr(self.space, "n"):
            return ActionBox((0.0,) * int(self.space.n), (1.0,) * int(self.space.n))
        return ActionBox(tuple(map(float, self.space.low.ravel())), tuple(map(float, self.space.high.ravel())))

    def planning_box(self, stride: int) -> ActionBox:
        return ActionBox(self.box.low * stride, self.box.high * stride)

    def restart(self) -> _Rows:
        """Reset all copies to the starts of the tasks."""
        self.returns = np.zeros(len(self.envs))
        self.ended = np.zeros(len(self.envs), dtype=bool)
        self.last = [self._shown(env, *self._reset(env, number)) for number, env in enumerate(self.envs)]
        return self.rows()

    def _reset(self, env: Any, number: int) -> tuple[Any, dict[str, Any]]:
        return env.reset(seed=derive(self.seed, "task", number) >> 31)

    def step(self, actions: np.ndarray, still: np.ndarray) -> _Rows:
        """One step of each copy that has not ended and is not `still`."""
        for number in np.flatnonzero(~(self.ended | still)):
            env = self.envs[number]
            observation, reward, terminated, truncated, info = env.step(self._action(actions[number]))
            self.returns[number] += float(reward)
            self.ended[number] = bool(terminated or truncated)
            self.last[number] = self._shown(env, observation, info)
        return self.rows()

    def _action(self, numbers: np.ndarray) -> Any:
        if hasattr(self.space, "n"):
            return int(self.space.start) + int(np.argmax(numbers))
        clipped = np.clip(numbers.reshape(self.space.shape), self.space.low, self.space.high)
        return clipped.astype(self.space.dtype)

    def _shown(self, env: Any, observation: Any, info: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, Any]:
        columns = observed_columns(env, observation, info)
        if self.column not in columns:
            raise InputError(
                f"The run observes the column '{self.column}', but '{self.name}' shows {', '.join(columns)}. Train on "
                "episodes that 'jepatlas collect' wrote."
            )
        x = columns[self.column]
        if network_shape(x.shape) != self.shape:
            raise InputError(
                f"The run was trained on observations of shape {self.shape}, but those of '{self.name}' have shape "
                f"{network_shape(x.shape)}. Plan in the environment of its training."
            )
        numbers = columns.get("state", x)
        return x, np.asarray(numbers, dtype=np.float64).ravel(), _small(columns.get("pixels"))

    def rows(self) -> _Rows:
        x, z, frames = zip(*self.last, strict=True)
        return _Rows(np.stack(x), np.stack(z), frames)

    def close(self) -> None:
        for env in self.envs:
            env.close()


def _can_render(name: str) -> bool:
    """Whether the environment draws images; some need packages for it that are found missing at the first image."""
    plain = environment_maker(name, pixels=False)()
    modes = plain.metadata.get("render_modes") or ()
    plain.close()
    if "rgb_array" not in modes:
        return False
    library = importlib.import_module("gymnasium")
    env = library.make(name, render_mode="rgb_array")
    try:
        env.reset(seed=0)
        env.render()
    except library.error.DependencyNotInstalled:
        return False
    finally:
        env.close()
    return True


def _small(frame: np.ndarray | None) -> np.ndarray | None:
    """Every k-th pixel, so that films are not large."""
    if frame is None:
        return None
    stride = -(-max(frame.shape[:2]) // FILM_SIDE)
    return frame[::stride, ::stride]


@dataclass(frozen=True)
class _Near:
    """Which goals are reached."""

    tasks: Tasks
    scale: np.ndarray  # (n,)

    def __call__(self, z: np.ndarray) -> np.ndarray:
        return self._distance(z) <= NEAR * self._distance(self.tasks.starts)

    def _distance(self, z: np.ndarray) -> np.ndarray:
        return np.linalg.norm((z - self.tasks.goals) / self.scale, axis=1)


def _random_episodes(copies: _Copies, policy: RandomPolicy, name: str, seed: int) -> Callable[[_Rows], np.ndarray]:
    """Random actions for all copies, (b, a)."""
    policies = [policy.begin(copies.space) for _ in copies.envs]
    generators = [numpy_generator(seed, name, number) for number in range(len(policies))]

    def draw(rows: _Rows) -> np.ndarray:
        actions = [act(rows.x[k], {}, generators[k]) for k, act in enumerate(policies)]
        if hasattr(copies.space, "n"):
            return np.eye(int(copies.space.n))[np.array(actions, dtype=int) - int(copies.space.start)]
        return np.stack([np.asarray(action, dtype=np.float64).ravel() for action in actions])

    return draw


def _goals(copies: _Copies, policy: RandomPolicy, steps: int, seed: int) -> tuple[_Rows, np.ndarray]:
    """For each task the row of a random episode that is farthest from its start, and the scale of each number."""
    rows = copies.restart()
    draw = _random_episodes(copies, policy, "goals", seed)
    every = [rows]
    nobody = np.zeros(len(rows.z), dtype=bool)
    for _ in track("goals", steps):
        every.append(copies.step(draw(every[-1]), nobody))
    z = np.stack([one.z for one in every])  # (t, b, n)
    spread = z.reshape(-1, z.shape[-1]).std(0)
    scale = np.where(spread > 0, spread, 1.0)
    distance = np.linalg.norm((z - z[0]) / scale, axis=2)
    if not (distance.max(0) > 0).all():
        raise InputError(f"Random actions change nothing in '{copies.name}', so there are no goals to drive to.")
    farthest = distance.argmax(0)
    place = np.arange(z.shape[1])
    x = np.stack([every[t].x[k] for k, t in zip(place, farthest, strict=True)])
    frames = [every[t].frames[k] for k, t in zip(place, farthest, strict=True)]
    return _Rows(x, z[farthest, place], frames), scale


def _at_random(
    copies: _Copies, policy: RandomPolicy, near: _Near, steps: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Which goals random actions reach, and their sums of rewards."""
    rows = copies.restart()
    draw = _random_episodes(copies, policy, "chance", seed)
    done = near(rows.z)
    for _ in track("random actions", steps):
        rows = copies.step(draw(rows), done)
        done = done | near(rows.z)
    return done, copies.returns.copy()


class _Episode:
    """One episode of all copies, planned by the agent."""

    def __init__(self, copies: _Copies, agent: PlanningAgent, goals: _Rows, near: _Near) -> None:
        self.copies, self.agent, self.near, self.goals = copies, agent, near, goals
        self.rows = [copies.restart()]
        self.seen = [self.rows[0].z]
        self.actions: list[np.ndarray] = []
        self.done = near(self.rows[0].z)
        self.steps = np.zeros(len(self.done), dtype=int)
        self.goal = agent.encode(goals.x)
        self.history: deque[np.ndarray] = deque(maxlen=agent.history)
        self.frames = [self.rows[0].frames[:FILMED]]
        self._observe()
        self.energies = [self._energy()]

    def info(self) -> Mapping[str, Tensor]:
        stopped = self.done | self.copies.ended
        return {"start": self.latent, "goal": self.goal, "done": torch.from_numpy(stopped)}

    def step(self, actions: Tensor) -> Mapping[str, Tensor]:
        """One action of the plan, `stride` steps of the environment."""
        for action in actions.double().numpy().reshape(len(actions), self.agent.stride, -1).swapaxes(0, 1):
            still = self.done | self.copies.ended
            rows = self.copies.step(action, self.done)
            self.rows = [rows]
            self.seen.append(rows.z)
            self.frames.append(rows.frames[:FILMED])
            self.actions.append(np.where(still[:, None], 0.0, action))
            self.steps += ~still
            self.energies.append(self.energies[-1])  # the agent observes only after all steps of an action
            self.done = self.done | self.near(rows.z)
        self._observe()
        self.energies[-1] = self._energy()
        return self.info()

    def _observe(self) -> None:
        self.history.append(self.rows[-1].x)
        self.latent = self.agent.encode(stack_history([*self.history], self.agent.history))

    def _energy(self) -> np.ndarray:
        with torch.no_grad():
            return self.agent.energy(self.latent, self.goal).double().numpy()

    def result(self, tasks: Tasks, unreachable: np.ndarray) -> Drive:
        states, actions = np.stack(self.seen, 1), np.stack(self.actions, 1)
        return Drive(tasks, states, actions, self.done, self.steps, np.stack(self.energies, 1), unreachable)

    def films(self, drive: Drive) -> tuple[dict[str, np.ndarray], Film]:
        """The first episodes with their goals; none if the environment cannot be rendered."""
        arrays, panels = {}, []
        for number, goal in enumerate(self.goals.frames[:FILMED]):
            if goal is None:
                continue
            steps = int(drive.steps[number])
            times = subsample(np.arange(steps + 1), FILM_FRAMES)
            arrays[f"driven-{number}"] = np.stack([self.frames[time][number] for time in times])
            arrays[f"goal-{number}"] = goal[None]
            strips = [FilmStrip(kind, f"{kind}-{number}") for kind in ("driven", "goal")]
            outcome = "reached" if drive.reached[number] else "not reached"
            panels.append(FilmPanel(strips, title=f"Task {number + 1}: {outcome} in {steps} steps"))
        return arrays, Film(title="Driven episodes", panels=panels)
