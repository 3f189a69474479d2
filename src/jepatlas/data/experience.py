"""Experience from plain arrays: validated transitions with costs and episode numbers.

Two forms are accepted:

    transitions:  x, x_next, cost[, episode]   one row per step
    states:       x, episode, cost[, step]     one row per state; consecutive rows of an episode form a step
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jepatlas.core.arrays import check_finite, check_rows
from jepatlas.core.errors import InputError
from jepatlas.core.records import Experience
from jepatlas.data.episode_arrays import Episodes

__all__ = ["check_experience", "episode_ends", "experience_from_arrays", "states_of_episodes"]

STATES = ("x", "x_next", "z", "z_next")
COLUMNS = ("state", "observation")
KNOWN = (*STATES, "cost", "episode", "step")


def experience_from_arrays(arrays: Mapping[str, np.ndarray]) -> Experience:
    """Validated experience from named arrays in either form; z (and z_next for transitions) is kept if present.

    Transitions without episodes are treated as unconnected. In the form of states, the cost of a row is that of the
    step to the next row, so the cost of the last row of an episode is ignored.
    """
    if not {"x", "cost"} <= set(arrays) or not {"x_next", "episode"} & set(arrays):
        raise InputError(
            "Experience needs the arrays x, x_next and cost (one row per step) or x, episode and cost (one row per "
            f"state), but found: {', '.join(sorted(arrays)) or 'none'}."
        )
    known = {name: np.asarray(arrays[name]) for name in KNOWN if name in arrays}
    check_rows(known)
    for name in STATES:
        if name in known and known[name].ndim == 1:
            known[name] = known[name][:, None]
    experience = _from_transitions(known) if "x_next" in known else _from_states(known)
    check_experience(experience)
    return experience


def states_of_episodes(episodes: Episodes, column: str | None = None) -> dict[str, np.ndarray]:
    """The arrays x, episode and cost of a column of vectors: by default the first of `state` and `observation`.

    A step costs 1, or what the column `cost` says.
    """
    vectors = [name for name, one in episodes.columns.items() if len(one.shape) == 1]
    chosen = column or next((name for name in COLUMNS if name in vectors), None)
    if chosen not in vectors:
        wanted = f"column '{column}'" if column else f"columns {' and '.join(COLUMNS)}"
        raise InputError(
            f"An energy needs a vector for each state, but of the episodes' {wanted} none is one. Vectors are "
            f"{', '.join(vectors) or 'none'}: choose one with --source.column. Encode images first."
        )
    rows = np.arange(int(np.sum(episodes.lengths)))
    cost = episodes.rows("cost", rows) if "cost" in episodes.columns else np.ones(len(rows))
    episode = np.repeat(np.arange(len(episodes)), episodes.lengths)
    return {"x": np.asarray(episodes.rows(chosen, rows), np.float64), "episode": episode, "cost": cost}


def _from_transitions(arrays: Mapping[str, np.ndarray]) -> Experience:
    cost = arrays["cost"]
    episode = _episode_numbers(arrays["episode"]) if "episode" in arrays else np.arange(len(cost))
    return Experience(arrays["x"], arrays["x_next"], cost, episode, arrays.get("z"), arrays.get("z_next"))


def _from_states(arrays: Mapping[str, np.ndarray]) -> Experience:
    episode, x, z = _episode_numbers(arrays["episode"]), arrays["x"], arrays.get("z")
    before = np.flatnonzero(episode[1:] == episode[:-1])
    after = before + 1
    if "step" in arrays:
        _check_step_numbers(arrays["episode"], arrays["step"], before)
    if z is None:
        return Experience(x[before], x[after], arrays["cost"][before], episode[before], None, None)
    return Experience(x[before], x[after], arrays["cost"][before], episode[before], z[before], z[after])


def _episode_numbers(labels: np.ndarray) -> np.ndarray:
    """Consecutive numbers for arbitrary episode labels; the rows of an episode must be contiguous."""
    begins = np.flatnonzero(np.append(True, labels[1:] != labels[:-1]))[: len(labels)]
    names, first = np.unique(labels[begins], return_index=True)
    if len(names) < len(begins):
        repeated = begins[np.setdiff1d(np.arange(len(begins)), first)[0]]
        raise InputError(
            f"Episode {labels[repeated]} continues in row {repeated} after another episode. Sort the rows by episode "
            "and step."
        )
    return np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(labels))))


def _check_step_numbers(labels: np.ndarray, step: np.ndarray, before: np.ndarray) -> None:
    check_finite("step", step)
    gaps = before[step[before + 1] != step[before] + 1]
    if len(gaps):
        row = gaps[0]
        raise InputError(
            f"Episode {labels[row]} has a gap: step {step[row]} is followed by step {step[row + 1]}. Add the missing "
            "steps, or start a new episode there."
        )


def check_experience(experience: Experience) -> None:
    """Raise InputError for empty experience, mismatched shapes, non-finite values, invalid costs or broken episodes."""
    parts = {name: getattr(experience, name) for name in (*STATES, "cost", "episode")}
    parts = {name: array for name, array in parts.items() if array is not None}
    check_rows(parts)
    if not len(experience.cost):
        raise InputError("The experience has no steps. At least one episode needs two states.")
    for name, array in parts.items():
        if array.ndim != (2 if name in STATES else 1):
            raise InputError(
                f"'{name}' has the shape {array.shape}. States are (steps, dimensions), costs and episodes (steps,)."
            )
        check_finite(name, array)
    if experience.x.shape != experience.x_next.shape:
        raise InputError(
            f"x and x_next must have equal shapes, but have {experience.x.shape} and {experience.x_next.shape}."
        )
    _check_costs(experience.cost)
    _check_continuity(experience)


def _check_costs(cost: np.ndarray) -> None:
    negative = np.flatnonzero(cost < 0)
    if len(negative):
        row = int(negative[0])
        raise InputError(
            f"cost must not be negative, but {len(negative)} values are; the first is {cost[row]:g} in row {row}. With "
            "negative costs no shortest path need exist. Convert rewards to costs."
        )
    if not cost.any():
        raise InputError("All costs are 0, so no two states have a distance. Use cost 1 if nothing else is known.")


def _check_continuity(experience: Experience) -> None:
    """Each step of an episode must start where the previous one ended, up to the rounding of text files."""
    number = _episode_numbers(experience.episode)
    before = np.flatnonzero(number[1:] == number[:-1])
    end, start = experience.x_next[before], experience.x[before + 1]
    gaps = ~np.isclose(end, start, rtol=1e-5, atol=1e-5 * float(np.abs(start).max(initial=0))).all(1)
    if gaps.any():
        row = int(before[gaps][0])
        label = experience.episode[row]
        step = row - int(np.flatnonzero(experience.episode == label)[0])
        raise InputError(
            f"Episode {label} has a gap after step {step} (row {row}): the next step starts in another state. Add the "
            "missing steps, or start a new episode there."
        )


def episode_ends(episode: np.ndarray) -> np.ndarray:
    """The last row of the episode of each row.

    >>> episode_ends(np.array([0, 0, 0, 1, 1]))
    array([2, 2, 2, 4, 4])
    """
    last = np.append(np.flatnonzero(episode[1:] != episode[:-1]), len(episode) - 1)
    return np.repeat(last, np.diff(np.append(-1, last)))
