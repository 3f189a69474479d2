"""Contract of worlds with actions."""

from __future__ import annotations

import warnings

import numpy as np
from gymnasium.utils.env_checker import check_env

from jepatlas.testing.contract import check_rules, expect, round_trips
from jepatlas.worlds import ActionEnv
from jepatlas.worlds.action_world import ActionWorld, draw_starts

__all__ = ["WORLD_RULES", "check_world"]

ROWS = 20


def check_world(world: ActionWorld) -> None:
    """Check a world with actions, which follows the protocol `jepatlas.worlds.ActionWorld`."""
    check_rules(world, WORLD_RULES)


def _drawn(world: ActionWorld) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return world.states(ROWS, rng), rng.uniform(-1, 1, (ROWS, world.action_dim))


def has_a_hash(world: ActionWorld) -> None:
    """A world is a frozen dataclass that can be a key: equal worlds have equal hashes."""
    hash(world)


def states_follow_from_the_generator(world: ActionWorld) -> None:
    """`states(count, rng)` gives (count, state_dim) finite, admissible float64 rows, the same for the same seed."""
    states, again = (world.states(ROWS, np.random.default_rng(0)) for _ in range(2))
    expect(states.shape == (ROWS, world.state_dim), f"the shape is {states.shape}, not ({ROWS}, {world.state_dim}).")
    expect(states.dtype == np.float64 and np.isfinite(states).all(), "states are not finite float64 numbers.")
    expect(np.array_equal(states, again), "the same seed gives other states.")
    expect(np.asarray(world.admits(states)).shape == (ROWS,), "`admits` does not give one answer per row.")
    expect(world.admits(states).all(), "some states are not admitted.")


def rows_are_independent(world: ActionWorld) -> None:
    """`step` and `observe` of many rows give what they give row by row, and steps end in admissible states."""
    states, actions = _drawn(world)
    before = states.copy()
    after = world.step(states, actions)
    expect(np.array_equal(states, before), "`step` changes the states it is given.")
    expect(world.admits(after).all(), "a step ends in a state that is not admitted.")
    one_by_one = [world.step(state[None], action[None])[0] for state, action in zip(states, actions, strict=True)]
    np.testing.assert_allclose(after, one_by_one, rtol=1e-12)
    seen = [world.observe(state[None])[0] for state in states]
    np.testing.assert_allclose(world.observe(states), seen, rtol=1e-12)


def observations_are_pixels_or_numbers(world: ActionWorld) -> None:
    """Observations are images (b, height, width, channels) in uint8, or finite numbers in float64."""
    seen = world.observe(_drawn(world)[0])
    expect(seen.dtype in (np.uint8, np.float64), f"observations are {seen.dtype}.")
    expect(seen.dtype != np.uint8 or seen.ndim == 4, f"images have the shape {seen.shape}.")
    expect(np.isfinite(seen).all(), "observations are not finite.")


def goals_are_ahead(world: ActionWorld) -> None:
    """`goals` gives admissible states that are not reached yet, and every goal is reached at itself."""
    rng = np.random.default_rng(0)
    starts = draw_starts(world, ROWS, rng)
    goals = world.goals(starts, rng)
    expect(goals.shape == starts.shape and world.admits(goals).all(), "some goals are not admitted.")
    expect(not world.reached(starts, goals).any(), "some goals are reached from the start.")
    expect(world.reached(goals, goals).all(), "some goals are not reached at themselves.")


def passes_check_env(world: ActionWorld) -> None:
    """As a gymnasium environment it passes gymnasium's check_env without warnings."""
    env = ActionEnv(world, "rgb_array" if hasattr(world, "render") else None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*infinity.*")  # of unbounded observations
        check_env(env, skip_render_check=not hasattr(world, "render"))


WORLD_RULES = (
    round_trips,
    has_a_hash,
    states_follow_from_the_generator,
    rows_are_independent,
    observations_are_pixels_or_numbers,
    goals_are_ahead,
    passes_check_env,
)
