"""Deterministic tabular gymnasium environments as worlds with exact energies.

Each action in each state is an edge s → s'. E(s, s') is the least cost of actions that lead from s to s', or +∞ if none
do. Terminal states have no outgoing edges: an agent that falls into a hole stays there.

Transitions come from the environment's table `P`, or from trying every action in every state.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError
from jepatlas.core.graphs import Graph
from jepatlas.core.records import Experience
from jepatlas.worlds.random_episodes import as_experience, walk_graph

__all__ = ["GymTable", "TabularDynamics", "read_dynamics"]

TRIALS = 3  # of each action in each state without a table, to detect random outcomes

Step = tuple[int, int, float, bool]
"""State, next state, reward, and whether the next state is terminal."""


@dataclass(frozen=True)
class GymTable:
    """The states that can be entered from the initial states, and the steps between different states.

    Actions that do not change the state (into a wall) are left out: they are on no shortest path.

    >>> len(GymTable("CliffWalking-v1").positions)  # 4 × 12 cells without the 10 cliff cells
    38
    """

    kind: ClassVar[str] = "gym"

    env: str = "CliffWalking-v1"
    """Registered name of the environment, such as CliffWalking-v1, FrozenLake-v1, FrozenLake8x8-v1 or Taxi-v4."""
    cost: Literal["step", "reward"] = "step"
    """Cost of a step: 1, or the negative reward."""

    def __post_init__(self) -> None:
        check_literals(self)

    @cached_property
    def _dynamics(self) -> TabularDynamics:
        return read_dynamics(self.env)

    @cached_property
    def _steps(self) -> tuple[Step, ...]:
        """All steps except those out of terminal states, which some tables list."""
        terminal = {end for _, end, _, over in self._dynamics.steps if over}
        return tuple(step for step in self._dynamics.steps if step[0] not in terminal)

    @cached_property
    def numbers(self) -> np.ndarray:
        """The number of each state in the environment, counted from 0: (n,)."""
        successors: dict[int, set[int]] = {}
        for state, end, _, _ in self._steps:
            successors.setdefault(state, set()).add(end)
        entered = set(self._dynamics.initial)
        frontier = list(self._dynamics.initial)
        while frontier:
            new = successors.get(frontier.pop(), set()) - entered
            entered |= new
            frontier.extend(new)
        return np.array(sorted(entered))

    @property
    def observed_dim(self) -> int:
        return 2 if self._dynamics.shape else self._dynamics.size

    @cached_property
    def positions(self) -> np.ndarray:
        """Row and column of each state if the environment is a grid, else its number: (n, 2) or (n, 1)."""
        shape = self._dynamics.shape or (self._dynamics.size,)
        return np.stack(np.unravel_index(self.numbers, shape), -1).astype(np.float64)

    @cached_property
    def graph(self) -> Graph:
        """All steps between rows of `positions`, with their costs."""
        known = set(self.numbers.tolist())
        steps = [(s, end, reward) for s, end, reward, _ in self._steps if s in known and s != end]
        ends = np.array([step[:2] for step in steps], dtype=np.int64).reshape(-1, 2)
        reward = np.array([step[2] for step in steps])
        source, target = np.searchsorted(self.numbers, ends).T
        return Graph(len(self.numbers), source, target, self._cost(reward))

    def _cost(self, reward: np.ndarray) -> np.ndarray:
        if self.cost == "step":
            return np.ones(len(reward))
        if len(reward) and reward.max() > 0:
            raise InputError(
                f"'{self.env}' has steps with reward {reward.max():g}, so their cost would be negative. Set cost to "
                "'step'."
            )
        return -reward + 0.0  # no negative zeros

    def observe(self, z: np.ndarray) -> np.ndarray:
        """Row and column, each scaled to [−1, 1], if the environment is a grid; else the state one-hot encoded."""
        z = np.asarray(z, dtype=np.float64)
        if self._dynamics.shape:
            return 2 * z / np.maximum(1, np.array(self._dynamics.shape) - 1) - 1
        return np.eye(self._dynamics.size)[z[..., 0].astype(np.int64)]

    def walk(self, episodes: int, length: int, seed: int, coverage: float = 1.0) -> Experience:
        """Random episodes, from any state, that use a share `coverage` of the possible steps."""
        states, cost = walk_graph(self.graph, episodes, length, seed, coverage)
        return as_experience(self.positions[states], states[:, 1:] >= 0, cost, self.observe)


@dataclass(frozen=True)
class TabularDynamics:
    """All transitions of an environment; states are counted from 0, whatever number the environment starts from."""

    size: int
    initial: tuple[int, ...]
    """States in which episodes start."""
    steps: tuple[Step, ...]
    shape: tuple[int, int] | None
    """Rows and columns, if the states are the cells of a grid."""


def read_dynamics(name: str) -> TabularDynamics:
    """The dynamics of a registered environment; raises InputError if they are random or not tabular."""
    env = _make(name)
    try:
        size, first = _state_count(name, env)
        inner = env.unwrapped
        table = getattr(inner, "P", None)
        steps = _try_all(name, env) if table is None else _read_table(name, table)
        counted = tuple((state - first, end - first, reward, over) for state, end, reward, over in steps)
        return TabularDynamics(size, _initial_states(env, first), counted, _grid_shape(inner, size))
    finally:
        env.close()


def _make(name: str) -> Any:
    import gymnasium  # noqa: PLC0415  (slow to import)
    from gymnasium.envs.registration import load_env_creator  # noqa: PLC0415

    try:
        spec = gymnasium.spec(name)
        creator: Callable[..., Any] = (
            spec.entry_point if callable(spec.entry_point) else load_env_creator(str(spec.entry_point))
        )
        options = {}
        # Frozen lakes are slippery by default. An environment registered with an explicit choice keeps it.
        if "is_slippery" in inspect.signature(creator).parameters and "is_slippery" not in spec.kwargs:
            options["is_slippery"] = False
        return gymnasium.make(name, **options)
    except (gymnasium.error.Error, ImportError) as error:
        raise InputError(f"gymnasium cannot make the environment '{name}': {error}") from error


def _state_count(name: str, env: Any) -> tuple[int, int]:
    """Number of states, and the number of the first one."""
    from gymnasium.spaces import Discrete  # noqa: PLC0415

    for what, space in (("observation", env.observation_space), ("action", env.action_space)):
        if not isinstance(space, Discrete):
            raise InputError(
                f"'{name}' has the {what} space {space}, but exact energies need finitely many states and actions. "
                "Choose an environment with two Discrete spaces, such as CliffWalking-v1."
            )
    return int(env.observation_space.n), int(env.observation_space.start)


def _read_table(name: str, table: Any) -> list[Step]:
    steps = []
    for state, actions in table.items() if isinstance(table, dict) else enumerate(table):
        for outcomes in actions.values() if isinstance(actions, dict) else actions:
            possible = [outcome for outcome in outcomes if outcome[0] > 0]
            if len({(int(end), float(reward)) for _, end, reward, _ in possible}) > 1:
                raise _random_outcome(name, state)
            _, end, reward, over = possible[0]
            steps.append((int(state), int(end), float(reward), bool(over)))
    return steps


def _try_all(name: str, env: Any) -> list[Step]:
    """Set each state and take each action, more than once."""
    env.reset(seed=0)  # some environments have no state before
    settable = [key for key in ("s", "state") if isinstance(getattr(env.unwrapped, key, None), int | np.integer)]
    if not settable:
        raise InputError(
            f"'{name}' has neither a transition table `P` nor a state `s` or `state` that can be set, so its "
            "transitions cannot be listed. Add one of them to the environment, or learn the energy from episodes."
        )
    space, actions = env.observation_space, env.action_space
    steps = []
    for state in range(space.start, space.start + space.n):
        for action in range(actions.start, actions.start + actions.n):
            steps.append(_try(name, env, settable[0], state, action))
    return steps


def _try(name: str, env: Any, attribute: str, state: int, action: int) -> Step:
    outcomes = set()
    for trial in range(TRIALS):
        env.reset(seed=trial)
        setattr(env.unwrapped, attribute, state)
        end, reward, over, _, _ = env.step(action)
        outcomes.add((int(end), float(reward), bool(over)))
    if len(outcomes) > 1:
        raise _random_outcome(name, state)
    return (state, *outcomes.pop())


def _random_outcome(name: str, state: int) -> InputError:
    return InputError(
        f"'{name}' is random: an action in state {state} has more than one outcome. Shortest paths are exact energies "
        "of deterministic environments only. Choose such an environment (is_slippery=False where this option exists)."
    )


def _initial_states(env: Any, first: int) -> tuple[int, ...]:
    probabilities = getattr(env.unwrapped, "initial_state_distrib", None)
    if probabilities is None:
        return (int(env.reset(seed=0)[0]) - first,)
    return tuple(int(state) for state in np.flatnonzero(probabilities))


def _grid_shape(inner: Any, size: int) -> tuple[int, int] | None:
    """Rows and columns, from the attributes of gymnasium's toy-text environments."""
    shape = getattr(inner, "shape", None) or (getattr(inner, "nrow", 0), getattr(inner, "ncol", 0))
    if len(shape) == 2 and shape[0] * shape[1] == size:
        return int(shape[0]), int(shape[1])
    return None
