"""What one trial of `directed-effort` does: a world at each of its strengths, and how much the way back differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from jepatlas.core.records import Estimate
from jepatlas.energy.audit import asymmetry_index
from jepatlas.experiments.energy import exact_worlds, solved_worlds
from jepatlas.experiments.energy.exact_worlds import ExactWorld, Size
from jepatlas.experiments.engine.experiment import as_verdicts

__all__ = ["FAMILIES", "Family", "run"]

ROUNDING = 1e-6  # solvers stop at changes of that size


@dataclass(frozen=True)
class Family:
    """One world at several strengths, the first of them that of its reversible twin."""

    source: Literal["admissibility", "effort", "both"]
    what: str  # the strength is of
    strengths: tuple[float, ...]
    make: Callable[[Size, int, float], ExactWorld]


DIRECTED, SPEED, RATIO = "share directed", "speed of the current", "ratio of prices"
FAMILIES: dict[str, Family] = {
    "doors": Family("admissibility", DIRECTED, (0.0, 0.25, 0.5, 0.75, 1.0), exact_worlds.one_way_grid),
    "rules": Family("admissibility", DIRECTED, (0.0, 0.25, 0.5, 0.75, 1.0), exact_worlds.rules),
    "torrent": Family("both", SPEED, (0.0, 1.0, 1.5, 2.0), exact_worlds.constant_current),
    "constant-current": Family("effort", SPEED, (0.0, 0.25, 0.5, 0.75, 0.95), exact_worlds.constant_current),
    "shear-current": Family("effort", SPEED, (0.0, 0.3, 0.6, 0.9), solved_worlds.shear),
    "vortex-current": Family("effort", SPEED, (0.0, 0.4, 0.8), solved_worlds.vortex),
    "costly-cells": Family("effort", RATIO, (1.0, 2.0, 4.0, 8.0), exact_worlds.costly_grid),
    "sizes": Family("effort", RATIO, (1.0, 2.0, 4.0, 8.0), exact_worlds.sizes),
    "edit-distance": Family("effort", RATIO, (1.0, 2.0, 4.0, 8.0), exact_worlds.edits),
    "strained-maps": Family("effort", RATIO, (1.0, 2.0, 4.0, 8.0), exact_worlds.strained_maps),
    "landmarks": Family("effort", RATIO, (1.0, 4.0, 16.0), solved_worlds.landmarks),
}


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    del folder
    family, size, found = FAMILIES[settings["family"]], Size(**settings["size"]), dict[str, Estimate]()
    for strength in family.strengths:
        world = family.make(size, settings["seed"], strength)
        found |= {f"{name}_{strength:g}": estimate for name, estimate in directedness(world).items()}
    return {"status": "finished", "verdicts": as_verdicts(found, "over all pairs of states")}


def directedness(world: ExactWorld) -> dict[str, Estimate]:
    """The index, the shares of pairs that differ at all and that are one-way, and what the index owes to a solver.

    That is how far the index of each pair is from that of the coarser solution, on average. Energies from and to a
    place are two solutions, none of which is the mirror image of the other.
    """
    matrix = world.matrix
    pairs = np.triu_indices(len(matrix), 1)
    index = asymmetry_index(matrix)[pairs]
    error = 0.0 if world.coarse is None else np.abs(index - asymmetry_index(world.coarse)[pairs]).mean()
    one_way = (np.isinf(matrix) != np.isinf(matrix.T))[pairs]
    values = {
        "asymmetry": index.mean(),
        "differing": (index > max(ROUNDING, error)).mean(),
        "one_way": one_way.mean(),
        "error": error,
    }
    return {name: Estimate(float(value), float(value), float(value), len(index)) for name, value in values.items()}
