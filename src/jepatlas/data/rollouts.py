"""One episode of a gymnasium environment, as the columns that `data/episodes.py` describes.

`pixels` are the observation where it is an image (height, width, 3) of uint8, else what the environment renders, where
it was made with render_mode="rgb_array". `state` is `info["state"]`, else the observation as a flat vector, where it is
no image. Actions of a box are written as they are, flat; one of n choices is a one among n numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import derive, numpy_generator
from jepatlas.data.policies import Policy, RemembersAnEpisode, begin

__all__ = ["check_actions", "roll_out"]


def roll_out(
    env: Any,
    policy: Policy | RemembersAnEpisode,
    length: int,
    seed: int,
    number: int,
    *,
    options: dict[str, Any] | None = None,
) -> dict[str, np.ndarray]:
    """Episode `number` of a collection: at most `length` steps, fewer where the environment ends it.

    All that is random follows from (seed, number): the environment is reset with a seed of 32 bits, which even old
    generators take, and the policy has a generator of its own.
    """
    act, generator = begin(policy, env.action_space), numpy_generator(seed, "policy", number)
    observation, info = env.reset(seed=derive(seed, "episode", number) >> 31, options=options)
    moments, actions = [_moment(env, observation, info, (np.nan, False, False))], []
    while len(actions) < length and not (moments[-1]["terminated"] or moments[-1]["truncated"]):
        action = act(observation, info, generator)
        observation, reward, terminated, truncated, info = env.step(action)
        actions.append(_vector(env.action_space, action, len(actions)))
        cut = bool(truncated) or (len(actions) == length and not terminated)
        moments.append(_moment(env, observation, info, (float(reward), bool(terminated), cut)))
    actions.append(np.full_like(actions[0], np.nan))  # nothing is done at the last moment
    return _columns(env, moments) | {"action": np.stack(actions)}


def check_actions(env: Any) -> None:
    """Refuse an environment whose actions cannot be drawn from, or planned with: no bounds, or no vector at all."""
    from gymnasium.spaces import Box, Discrete  # noqa: PLC0415  (most of the package does without)

    space = env.action_space
    if isinstance(space, Discrete):
        return
    if not isinstance(space, Box) or space.dtype is None or space.dtype.kind != "f":
        raise InputError(
            f"{env} has the action space {space}, but actions must be a Box of real numbers or Discrete. Wrap it in "
            "gymnasium.wrappers.TransformAction, with a function from such actions to its own."
        )
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        raise InputError(
            f"The actions of {env} have no bounds: {space}. Say which of them are of use: "
            "gymnasium.wrappers.TransformAction(env, lambda action: action, gymnasium.spaces.Box(low, high)) with "
            "finite low and high."
        )


def _columns(env: Any, moments: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    shapes = [{name: value.shape for name, value in moment.items()} for moment in moments]
    if other := next((step for step, found in enumerate(shapes) if found != shapes[0]), None):
        raise InputError(
            f"{env} shows {shapes[other]} after step {other}, but {shapes[0]} after reset. Every moment must be of the "
            "same kind; does info have a 'state' after reset and after each step?"
        )
    return {name: np.stack([moment[name] for moment in moments]) for name in moments[0]}


def _vector(space: Any, action: Any, step: int) -> np.ndarray:
    if not space.contains(action):
        raise InputError(f"The policy gave {action!r} in step {step}, which is no action of {space}.")
    if hasattr(space, "n"):
        return np.eye(int(space.n), dtype=np.float32)[int(action) - int(space.start)]
    return np.asarray(action, np.float32).ravel()


def _moment(env: Any, observation: Any, info: Mapping[str, Any], outcome: tuple[float, bool, bool]) -> dict[str, Any]:
    """One row of every column but the action; `outcome` is what the step that led here brought."""
    reward, terminated, truncated = outcome
    seen = {"reward": np.float32(reward), "terminated": np.bool_(terminated), "truncated": np.bool_(truncated)}
    if _is_image(observation):
        seen["pixels"] = np.array(observation)  # some environments draw into the same array again
    elif env.render_mode == "rgb_array":
        seen["pixels"] = _rendered(env)
    if "state" in info:
        seen["state"] = np.array(info["state"]).ravel()
    if not _is_image(observation):
        from gymnasium.spaces import flatten  # noqa: PLC0415

        # Where the world tells its true state, what is observed is something else.
        name = "observation" if "state" in info else "state"
        seen[name] = np.array(flatten(env.observation_space, observation)).ravel()
    return seen


def _is_image(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == 3 and value.shape[-1] == 3


def _rendered(env: Any) -> np.ndarray:
    frame = env.render()
    if not _is_image(frame):
        raise InputError(f"{env} renders {type(frame).__name__}, but an image (height, width, 3) of uint8 is needed.")
    return np.array(frame)
