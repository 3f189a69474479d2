"""One episode of a gymnasium environment as columns of an episode file.

`pixels` is the observation if that is an image (height, width, 3) of uint8, otherwise the rendered frame if the
environment was made with render_mode="rgb_array". `state` is `info["state"]` if present, otherwise the flattened
observation unless that is an image. Box actions are flattened; discrete actions are stored one-hot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import derive, numpy_generator
from jepatlas.data.policies import EpisodicPolicy, Policy

if TYPE_CHECKING:
    import gymnasium

__all__ = ["check_actions", "observed_columns", "roll_out"]


def roll_out(
    env: gymnasium.Env[Any, Any],
    policy: Policy | EpisodicPolicy,
    length: int,
    seed: int,
    number: int,
    *,
    options: dict[str, Any] | None = None,
) -> dict[str, np.ndarray]:
    """Episode `number` of a collection: at most `length` steps, fewer if the environment ends it.

    Randomness follows from (seed, number). The environment is reset with a 32-bit seed, which old generators accept
    too, and the policy has its own generator.
    """
    act = policy.begin(env.action_space) if isinstance(policy, EpisodicPolicy) else policy
    generator = numpy_generator(seed, "policy", number)
    observation, info = env.reset(seed=derive(seed, "episode", number) >> 31, options=options)
    rows = [_row(env, observation, info, np.nan, terminated=False, truncated=False)]
    actions = []
    while len(actions) < length and not (rows[-1]["terminated"] or rows[-1]["truncated"]):
        action = act(observation, info, generator)
        observation, reward, terminated, truncated, info = env.step(action)
        actions.append(_action_vector(env.action_space, action, len(actions)))
        cut = bool(truncated) or (len(actions) == length and not terminated)
        rows.append(_row(env, observation, info, float(reward), terminated=bool(terminated), truncated=cut))
    actions.append(np.full_like(actions[0], np.nan))  # the last row has no action
    return _columns(env, rows) | {"action": np.stack(actions)}


def check_actions(env: gymnasium.Env[Any, Any]) -> None:
    """Raise InputError unless actions are discrete or a bounded box of floats."""
    from gymnasium.spaces import Box, Discrete  # noqa: PLC0415

    space = env.action_space
    if isinstance(space, Discrete):
        return
    if not isinstance(space, Box) or space.dtype is None or space.dtype.kind != "f":
        raise InputError(
            f"{env} has the action space {space}, but actions must be a Box of floats or Discrete. Wrap it in "
            "gymnasium.wrappers.TransformAction."
        )
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        raise InputError(
            f"The actions of {env} are unbounded: {space}. Restrict them with finite low and high: "
            "gymnasium.wrappers.TransformAction(env, lambda action: action, gymnasium.spaces.Box(low, high))."
        )


def _columns(env: gymnasium.Env[Any, Any], rows: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    shapes = [{name: value.shape for name, value in row.items()} for row in rows]
    for step, found in enumerate(shapes):
        if found != shapes[0]:
            raise InputError(
                f"{env} gives {found} after step {step}, but {shapes[0]} after reset. All rows need the same columns "
                "and shapes. Check that info has a 'state' after reset and after each step."
            )
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def _action_vector(space: Any, action: Any, step: int) -> np.ndarray:
    if not space.contains(action):
        raise InputError(f"The policy gave {action!r} in step {step}, which is not an action of {space}.")
    if hasattr(space, "n"):
        return np.eye(int(space.n), dtype=np.float32)[int(action) - int(space.start)]
    return np.asarray(action, np.float32).ravel()


def _row(
    env: gymnasium.Env[Any, Any],
    observation: Any,
    info: Mapping[str, Any],
    reward: float,
    *,
    terminated: bool,
    truncated: bool,
) -> dict[str, Any]:
    """All columns of one row except the action; the reward and the flags belong to the step that led here."""
    row: dict[str, Any] = {
        "reward": np.float32(reward),
        "terminated": np.bool_(terminated),
        "truncated": np.bool_(truncated),
    }
    return row | observed_columns(env, observation, info)


def observed_columns(env: gymnasium.Env[Any, Any], observation: Any, info: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The columns of one row that an environment shows: pixels, state and observation."""
    row: dict[str, np.ndarray] = {}
    if _is_image(observation):
        row["pixels"] = np.array(observation)  # a copy: some environments reuse the array
    elif env.render_mode == "rgb_array":
        row["pixels"] = _render(env)
    if "state" in info:
        row["state"] = np.array(info["state"]).ravel()
    if not _is_image(observation):
        from gymnasium.spaces import flatten  # noqa: PLC0415

        name = "observation" if "state" in info else "state"
        row[name] = np.array(flatten(env.observation_space, observation)).ravel()
    return row


def _is_image(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == 3 and value.shape[-1] == 3


def _render(env: gymnasium.Env[Any, Any]) -> np.ndarray:
    frame = env.render()
    if not _is_image(frame):
        raise InputError(f"{env} renders {type(frame).__name__}, but a uint8 image (height, width, 3) is required.")
    return np.array(frame)
