"""Experience: what a file or a world must give to be learned from, and how plain arrays become it.

steps:     x, x_next, cost[, episode]     one row for each step
episodes:  x, episode, cost[, step]       one row for each state; rows that follow each other are a step
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jepatlas.core.arrays import check_finite, check_rows
from jepatlas.core.errors import InputError
from jepatlas.core.records import Experience

__all__ = ["check_experience", "episode_ends", "experience_from_arrays"]

Arrays = Mapping[str, np.ndarray]

STATES = ("x", "x_next", "z", "z_next")
KNOWN = (*STATES, "cost", "episode", "step")


def experience_from_arrays(arrays: Arrays) -> Experience:
    """Experience from named arrays in either form, checked; z (and z_next, for steps) is taken along where it is there.

    Steps without episodes are taken for unconnected ones. In the form of episodes a row's cost is that of the step to
    the row after it, so the last of each episode is not read.
    """
    if not {"x", "cost"} <= set(arrays) or not {"x_next", "episode"} & set(arrays):
        raise InputError(
            "Experience is x, x_next and cost with one row for each step, or x, episode and cost with one row for each "
            f"state, but the arrays are {', '.join(sorted(arrays)) or 'none'}."
        )
    known = {name: np.asarray(arrays[name]) for name in KNOWN if name in arrays}
    check_rows(known)
    known |= {name: known[name][:, None] for name in STATES if name in known and known[name].ndim == 1}
    experience = _from_steps(known) if "x_next" in known else _from_episodes(known)
    check_experience(experience)
    return experience


def _from_steps(arrays: Arrays) -> Experience:
    cost = arrays["cost"]
    episode = _numbers(arrays["episode"]) if "episode" in arrays else np.arange(len(cost))
    return Experience(arrays["x"], arrays["x_next"], cost, episode, arrays.get("z"), arrays.get("z_next"))


def _from_episodes(arrays: Arrays) -> Experience:
    episode, x, z = _numbers(arrays["episode"]), arrays["x"], arrays.get("z")
    goes_on = np.flatnonzero(episode[1:] == episode[:-1])
    if "step" in arrays:
        _refuse_gaps(arrays["episode"], arrays["step"], goes_on)
    after = goes_on + 1
    truth = (None, None) if z is None else (z[goes_on], z[after])
    return Experience(x[goes_on], x[after], arrays["cost"][goes_on], episode[goes_on], *truth)


def _numbers(labels: np.ndarray) -> np.ndarray:
    """Episodes by number, in order; labels may be anything, but the rows of one must lie together."""
    begins = np.flatnonzero(np.append(True, labels[1:] != labels[:-1]))[: len(labels)]
    names, first = np.unique(labels[begins], return_index=True)
    if len(names) < len(begins):
        again = begins[np.setdiff1d(np.arange(len(begins)), first)[0]]
        raise InputError(
            f"Episode {labels[again]} goes on in row {again}, after another one. Sort the rows by episode and step."
        )
    return np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(labels))))


def _refuse_gaps(labels: np.ndarray, step: np.ndarray, goes_on: np.ndarray) -> None:
    check_finite("step", step)
    gaps = goes_on[step[goes_on + 1] != step[goes_on] + 1]
    if len(gaps):
        row = gaps[0]
        raise InputError(
            f"Episode {labels[row]} has a gap: step {step[row]} is followed by step {step[row + 1]}. Fill in what is "
            "missing, or let another episode begin there."
        )


def check_experience(experience: Experience) -> None:
    """Refuse what is no experience: no steps, rows that do not fit, NaN, bad costs, gaps within an episode."""
    parts = {name: getattr(experience, name) for name in (*STATES, "cost", "episode")}
    parts = {name: array for name, array in parts.items() if array is not None}
    check_rows(parts)
    if not len(experience.cost):
        raise InputError("The experience has no steps: at least one episode needs two states.")
    for name, array in parts.items():
        if array.ndim != (2 if name in STATES else 1):
            raise InputError(f"'{name}' has the shape {array.shape}. States are (t, p), costs and episodes (t,).")
        check_finite(name, array)
    if experience.x.shape != experience.x_next.shape:
        raise InputError(f"x and x_next need one shape, but have {experience.x.shape} and {experience.x_next.shape}.")
    _check_costs(experience.cost)
    _check_connected(experience)


def _check_costs(cost: np.ndarray) -> None:
    if (cost < 0).any():
        row = int(np.flatnonzero(cost < 0)[0])
        raise InputError(
            f"Costs must not be negative, but {int((cost < 0).sum())} are, the first {cost[row]:g} in row {row}. With "
            "a negative cost no shortest way need exist; for rewards, give what a step costs instead."
        )
    if not cost.any():
        raise InputError("Every step costs 0, so that no two states are apart. Give 1 where nothing else is known.")


def _check_connected(experience: Experience) -> None:
    """A step of an episode begins where the one before it ended, up to what a text file rounds off."""
    number = _numbers(experience.episode)
    goes_on = np.flatnonzero(number[1:] == number[:-1])
    before, after = experience.x_next[goes_on], experience.x[goes_on + 1]
    apart = ~np.isclose(before, after, rtol=1e-5, atol=1e-5 * float(np.abs(after).max(initial=0))).all(1)
    if apart.any():
        row = int(goes_on[apart][0])
        label = experience.episode[row]
        step = row - int(np.flatnonzero(experience.episode == label)[0])
        raise InputError(
            f"Episode {label} has a gap after its step {step} (row {row}): the next one begins elsewhere than it "
            "ended. Fill in what is missing, or let another episode begin there."
        )


def episode_ends(episode: np.ndarray) -> np.ndarray:
    """The last row of each row's episode.

    >>> episode_ends(np.array([0, 0, 0, 1, 1]))
    array([2, 2, 2, 4, 4])
    """
    last = np.append(np.flatnonzero(episode[1:] != episode[:-1]), len(episode) - 1)
    return np.repeat(last, np.diff(np.append(-1, last)))
