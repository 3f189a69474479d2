"""What every action does in every state of a gymnasium environment: from its own table, or by trying each of them."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["Step", "TabularDynamics", "read_dynamics"]

TRIES = 3  # of each action in each state, where there is no table: what differs between them is random

Step = tuple[int, int, float, bool]
"""State, next state, reward, and whether the next state ends the episode."""


@dataclass(frozen=True)
class TabularDynamics:
    """States are numbered from 0, whatever number the environment's own begin with."""

    size: int
    begins: tuple[int, ...]
    """States in which episodes begin."""
    steps: tuple[Step, ...]
    shape: tuple[int, int] | None
    """Rows and columns, where states are the cells of a grid."""


def read_dynamics(name: str) -> TabularDynamics:
    """The dynamics of a registered environment; refused where they are random or not tabular."""
    env = _make(name)
    try:
        inner = env.unwrapped
        size, first = _size(name, env)
        table = getattr(inner, "P", None)
        steps = _tried(name, env) if table is None else _listed(name, table)
        numbered = tuple((s - first, end - first, reward, over) for s, end, reward, over in steps)
        return TabularDynamics(size, _begins(env, first), numbered, _shape(inner, size))
    finally:
        env.close()


def _make(name: str) -> Any:
    import gymnasium  # noqa: PLC0415  (most worlds do without)

    try:
        spec = gymnasium.spec(name)
        creator = spec.entry_point if callable(spec.entry_point) else _creator(str(spec.entry_point))
        # frozen lakes are slippery unless told not to be; an environment registered as slippery is left as it is
        dry = "is_slippery" in inspect.signature(creator).parameters and "is_slippery" not in spec.kwargs
        return gymnasium.make(name, **({"is_slippery": False} if dry else {}))
    except (gymnasium.error.Error, ImportError) as error:
        raise InputError(f"gymnasium cannot make the environment '{name}': {error}") from error


def _creator(entry_point: str) -> Any:
    from gymnasium.envs.registration import load_env_creator  # noqa: PLC0415

    return load_env_creator(entry_point)


def _size(name: str, env: Any) -> tuple[int, int]:
    from gymnasium.spaces import Discrete  # noqa: PLC0415

    for what, space in (("observation", env.observation_space), ("action", env.action_space)):
        if not isinstance(space, Discrete):
            raise InputError(
                f"'{name}' has the {what} space {space}, but exact energies need finitely many states and actions. "
                "Choose an environment whose two spaces are Discrete, such as CliffWalking-v1."
            )
    return int(env.observation_space.n), int(env.observation_space.start)


def _listed(name: str, table: Any) -> list[Step]:
    steps = []
    for state, actions in table.items() if isinstance(table, dict) else enumerate(table):
        for outcomes in actions.values() if isinstance(actions, dict) else actions:
            likely = [outcome for outcome in outcomes if outcome[0] > 0]
            if len({(int(end), float(reward)) for _, end, reward, _ in likely}) > 1:
                raise _random(name, state)
            _, end, reward, over = likely[0]
            steps.append((int(state), int(end), float(reward), bool(over)))
    return steps


def _tried(name: str, env: Any) -> list[Step]:
    """Set each state and take each action, more than once."""
    env.reset(seed=0)  # some have no state before
    settable = ("s", "state")
    where = next((key for key in settable if isinstance(getattr(env.unwrapped, key, None), int | np.integer)), None)
    if where is None:
        raise InputError(
            f"'{name}' has neither a table of transitions `P` nor a state `s` or `state` that can be set, so its "
            "dynamics cannot be listed. Give the environment one of them, or learn the energy from its episodes."
        )
    space, actions = env.observation_space, env.action_space
    states = range(space.start, space.start + space.n)
    choices = range(actions.start, actions.start + actions.n)
    return [_try(name, env, where, state, action) for state in states for action in choices]


def _try(name: str, env: Any, where: str, state: int, action: int) -> Step:
    seen = set()
    for trial in range(TRIES):
        env.reset(seed=trial)
        setattr(env.unwrapped, where, state)
        end, reward, over, _, _ = env.step(action)
        seen.add((int(end), float(reward), bool(over)))
    if len(seen) > 1:
        raise _random(name, state)
    return (state, *seen.pop())


def _random(name: str, state: int) -> InputError:
    return InputError(
        f"An action in state {state} of '{name}' has more than one outcome, and the shortest path is only the energy "
        "of a deterministic world. Choose an environment without chance (is_slippery=False where there is such an "
        "option)."
    )


def _begins(env: Any, first: int) -> tuple[int, ...]:
    chances = getattr(env.unwrapped, "initial_state_distrib", None)
    if chances is None:
        return (int(env.reset(seed=0)[0]) - first,)
    return tuple(int(state) for state in np.flatnonzero(chances))


def _shape(inner: Any, size: int) -> tuple[int, int] | None:
    """Rows and columns as the toy-text environments say them."""
    shape = getattr(inner, "shape", None) or (getattr(inner, "nrow", 0), getattr(inner, "ncol", 0))
    return (int(shape[0]), int(shape[1])) if len(shape) == 2 and shape[0] * shape[1] == size else None
