"""Pairs of agents: their latents of the same states, controls, and one result for each pair.

agents       h¹(s) → h²(s)                   the claim
untrained    the same networks before their first step
pca, pca_16  principal components of small images, as wide as the latents, and 16 of them
pixels       principal components of the first view → h²: how well the first view predicts the second agent
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jepatlas.alignment import Latents, PairedLatents
from jepatlas.alignment.controls import pca_control
from jepatlas.core.arrays import read_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, subsample
from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import Result, Trial
from jepatlas.experiments.engine.rules import as_verdicts, point_estimates
from jepatlas.experiments.engine.seed_tables import grouped, select
from jepatlas.experiments.social.trained_agents import LATENTS

__all__ = [
    "COMPARED",
    "CONTROLS",
    "NAMES",
    "groups_of_pair",
    "held_out_layers",
    "measure_key",
    "pair_latents",
    "pair_result",
    "pair_results",
    "pairs_of_views",
    "scored_rows",
    "sides_of",
    "split_of",
]

NAMES = {
    "agents": "trained agents",
    "untrained": "untrained agents",
    "pca": "PCA of pixels, same width",
    "pca_16": "PCA of pixels, width 16",
    "pixels": "PCA of the first view → second agent",
}
CONTROLS = ("untrained", "pca", "pca_16")
"""Controls without training, which are translated as the agents are."""
COMPARED = ("agents", *CONTROLS)
FEW_COMPONENTS = 16
PAIR_KEYS = ("scene", "objective", "shuffle", "width", "seed")
"""Coordinates that both agents of a pair share."""

Sides = dict[str, tuple[np.ndarray, np.ndarray]]
Measure = Callable[[PairedLatents], dict[str, Estimate]]


def measure_key(measure: str, name: str) -> str:
    """The name of a measure of the agents or of a control.

    >>> measure_key("r2", "agents"), measure_key("r2", "pca")
    ('r2', 'r2_pca')
    """
    return measure if name == "agents" else f"{measure}_{name}"


def pair_latents(first: Result, second: Result) -> PairedLatents:
    """The stored latents of two agents, for the states that both have."""
    a, b = (read_arrays(result.folder / LATENTS) for result in (first, second))
    common, rows_a, rows_b = np.intersect1d(a["ids"], b["ids"], return_indices=True)
    names = first.folder.name, second.folder.name
    if not len(common):
        raise InputError(f"The agents of {names[0]} and {names[1]} have no state in common.")
    if (a["held"][rows_a] != b["held"][rows_b]).any():
        raise InputError(f"The agents of {names[0]} and {names[1]} do not hold out the same states.")
    return PairedLatents(_latents(names[0], a, rows_a), _latents(names[1], b, rows_b))


def _latents(name: str, arrays: Mapping[str, np.ndarray], rows: np.ndarray) -> Latents:
    per_row = ("ids", "groups", "labels", "raw", "held", "untrained")
    checkpoints = {key: array[rows] for key, array in arrays.items() if key.startswith("h_at_")}
    optional = {key: arrays[key][rows] for key in per_row if key in arrays}
    return Latents(name, arrays["h"][rows], layers=checkpoints, **optional)


def held_out_layers(result: Result, ids: np.ndarray) -> list[np.ndarray]:
    """Latents of all layers of an agent, which are stored for held-out states, for the states with the given ids."""
    arrays = read_arrays(result.folder / LATENTS)
    place = {state: row for row, state in enumerate(arrays["ids"][arrays["held"]])}
    rows = np.array([place[state] for state in ids])
    return [arrays[name][rows] for name in sorted(arrays) if name.startswith("layer")]


def split_of(pair: PairedLatents) -> Split:
    """Fit on the states that both agents were trained on, score on those held out."""
    assert pair.marked_split is not None, "stored latents mark held-out states"
    return pair.marked_split


def groups_of_pair(pair: PairedLatents) -> np.ndarray:
    """Units that are kept whole: objects, time blocks, or single states."""
    groups = pair.groups if pair.groups is not None else pair.ids
    assert groups is not None, "stored latents have ids"
    return groups


def scored_rows(pair: PairedLatents, most: int) -> np.ndarray:
    """At most `most` held-out rows, evenly spaced."""
    return subsample(split_of(pair).score, most)


def pair_results(results: Sequence[Result], measure: Measure) -> list[Result]:
    """The measures of both agents of each kind and seed, as results of their own."""
    found = []
    for runs in grouped(results, *PAIR_KEYS).values():
        agents = select(runs, view=0) + select(runs, view=1)
        if len(agents) == 2:
            found.append(pair_result(agents[0], agents[1], measure))
    return found


def pairs_of_views(results: Sequence[Result]) -> list[tuple[Result, Result]]:
    """All pairs of an agent of the first view with one of the second, for each seed."""
    pairs = []
    for first in select(results, view=0):
        for second in select(results, view=1, seed=first.at["seed"]):
            pairs.append((first, second))
    return pairs


def pair_result(first: Result, second: Result, measure: Measure) -> Result:
    """The measures of one pair, as the result of a trial. A pair with an unfinished agent is kept, without numbers."""
    place = {name: value for name, value in first.at.items() if name != "view"} | {"to": second.at["width"]}
    trial = Trial(place, first.trial.run, {})
    for agent in (first, second):
        if agent.status != "finished":
            return Result(trial, first.folder, agent.status, {"verdicts": []})
    joint = {
        "directions": min(first.value("directions"), second.value("directions")),
        "flops": first.value("flops") + second.value("flops"),
        "loss": float(np.mean([first.value("loss"), second.value("loss")])),
    }
    found = measure(pair_latents(first, second)) | point_estimates(joint, 2)
    return Result(trial, first.folder, "finished", {"verdicts": as_verdicts(found, "of a pair of agents")}, first.made)


def sides_of(pair: PairedLatents) -> Sides:
    """Both sides of the agents' translation and of every control."""
    a, b = pair.a, pair.b
    assert a.untrained is not None and b.untrained is not None, "stored latents have those of untrained networks"
    fit = split_of(pair).fit
    wide = tuple(_components(side, side.h.shape[1], fit) for side in (a, b))
    few = tuple(_components(side, min(FEW_COMPONENTS, side.h.shape[1]), fit) for side in (a, b))
    return {
        "agents": (a.h, b.h),
        "untrained": (a.untrained, b.untrained),
        "pca": (wide[0], wide[1]),
        "pca_16": (few[0], few[1]),
        "pixels": (wide[0], b.h),
    }


def _components(side: Latents, width: int, fit: np.ndarray) -> np.ndarray:
    assert side.raw is not None, "stored latents have small images"
    return pca_control(side.raw, width, fit)
