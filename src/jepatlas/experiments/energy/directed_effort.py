"""Proposition 1: asymmetry is generic, from directed admissibility (i) or from anisotropic effort (ii).

    index = mean over pairs of |E(x, y) − E(y, x)| / (E(x, y) + E(y, x)),   1 for pairs reachable in one direction only

Each world is built at several strengths, beginning with its reversible twin: doors that open both ways, no current,
equal prices. Worlds have one source of asymmetry only, except for the torrent: a current at least as fast as the
vehicle directs admissibility and effort.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jepatlas.core.figures import CurvePanel, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.energy.audit import asymmetry_index
from jepatlas.experiments.energy import exact_worlds, solved_worlds
from jepatlas.experiments.energy.exact_worlds import ExactWorld, Size
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import (
    Criterion,
    as_verdicts,
    count_met,
    outcome_of_criteria,
    point_estimates,
    share_verdict,
)
from jepatlas.experiments.engine.seed_tables import curve, mean_and_range, mean_cells, select, span

__all__ = ["EXPERIMENT", "FAMILIES", "directedness", "run"]

ROUNDING = 1e-6  # solvers stop at changes of that size
CLEAR = 0.05
"""The index that the largest strength must reach at every seed; smaller ones must only exceed the index's error."""

CLAIM = Claim(
    statement="If admissibility is directed, or local effort depends on the direction, in general E(x, y) ≠ E(y, x).",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, Proposition 1",
    assumed="nothing further; the paper gives no proof and no measure of the size",
)

SCALES = {
    "tiny": (Size(states=12, side=6, places=4, resolution=11, sets=3), 1),
    "small": (Size(states=150, side=12, places=8, resolution=31, sets=5), 3),
    "paper": (Size(states=256, side=16, places=24, resolution=81, sets=12), 10),
}


@dataclass(frozen=True)
class Family:
    """A world at several strengths; the first one is that of its reversible twin."""

    source: Literal["admissibility", "effort", "both"]
    quantity: str
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


def trials(scale: Scale, seed: int) -> list[Trial]:
    size, seeds = SCALES[scale]
    return [Trial(at, run, at | {"size": vars(size)}) for at in grid(family=FAMILIES, seed=range(seed, seed + seeds))]


def run(settings: Plain, folder: str) -> Plain:
    """Build a world at each of its strengths and measure the asymmetry of its energy."""
    del folder
    family = FAMILIES[settings["family"]]
    size = Size(**settings["size"])
    found: dict[str, Estimate] = {}
    for strength in family.strengths:
        world = family.make(size, settings["seed"], strength)
        found |= {f"{name}_{strength:g}": estimate for name, estimate in directedness(world).items()}
    return {"status": "finished", "verdicts": as_verdicts(found, "over all pairs of states")}


def directedness(world: ExactWorld) -> dict[str, Estimate]:
    """The index, the shares of pairs that differ and that are one-way, and the error of the index.

    The error is the mean distance of each pair's index from that of the coarser solution. Energies from and to a place
    are two solutions, and neither is the mirror image of the other.
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
    return point_estimates(values, len(index))


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    found = {name: select(results, family=name) for name in FAMILIES}
    criteria = []
    twin_index = {}
    top_index = {}
    for name, group in found.items():
        index = _index(name, group)
        twin_index[name] = index[0].value
        top_index[name] = index[-1].value
    agrees = {name: _twin_is_symmetric(name, group) and _is_directed(name, group) for name, group in found.items()}
    for name in found:
        first, *_, last = FAMILIES[name].strengths
        shown = f"{twin_index[name]:.2g} at {first:g}, {top_index[name]:.2f} at {last:g}"
        criteria.append(Criterion(f"index in {name}", shown, "0 in the twin only", agrees[name]))
    return Finding(
        outcome_of_criteria(criteria),
        f"Only the directed energy is asymmetric in {count_met(list(agrees.values()))} worlds, with an index of "
        f"{span(top_index.values(), '.2f')} at the largest strength.",
        criteria=tuple(criteria),
        verdicts=(_verdict(agrees),),
        figures=(_figure(found),),
        tables=(_table(found), _rise_table(found)),
    )


def _allowed(result: Result, strength: float) -> float:
    return max(ROUNDING, result.value(f"error_{strength:g}"))


def _twin_is_symmetric(name: str, group: Sequence[Result]) -> bool:
    """False for NaN, the value of a failed trial."""
    first = FAMILIES[name].strengths[0]
    return all(result.value(f"asymmetry_{first:g}") <= _allowed(result, first) for result in group)


def _is_directed(name: str, group: Sequence[Result]) -> bool:
    """False for NaN, the value of a failed trial."""
    strengths = FAMILIES[name].strengths
    above = [result.value(f"asymmetry_{s:g}") > _allowed(result, s) for result in group for s in strengths[1:]]
    clear = [result.value(f"asymmetry_{strengths[-1]:g}") >= CLEAR for result in group]
    return all(above) and all(clear)


def _verdict(agrees: dict[str, bool]) -> Verdict:
    return share_verdict(
        "directed",
        list(agrees.values()),
        good="Every directed world has an asymmetric energy, and every reversible twin a symmetric one.",
        bad=f"Worlds where this is not so: {', '.join(name for name, agreed in agrees.items() if not agreed)}.",
    )


def _index(name: str, group: Sequence[Result]) -> list[Estimate]:
    return [mean_and_range(group, f"asymmetry_{strength:g}") for strength in FAMILIES[name].strengths]


def _figure(found: dict[str, list[Result]]) -> Curves:
    panels = []
    for quantity in dict.fromkeys(family.quantity for family in FAMILIES.values()):
        series = []
        for name, group in found.items():
            if FAMILIES[name].quantity == quantity:
                series.append(curve(name, FAMILIES[name].strengths, _index(name, group)))
        panels.append(CurvePanel(series, f"by {quantity}"))
    return Curves(title="Asymmetry against its cause", x_label="strength", y_label="index", panels=panels)


def _rise_table(found: dict[str, list[Result]]) -> Table:
    rows = []
    for name, group in found.items():
        rises = (np.diff([mean.value for mean in _index(name, group)]) >= -ROUNDING).all()
        rows.append([name, FAMILIES[name].source, "yes" if rises else "no"])
    return Table("Does the index never fall with the strength?", ["world", "source", "never falls"], rows)


def _table(found: dict[str, list[Result]]) -> Table:
    rows = []
    for name, group in found.items():
        family = FAMILIES[name]
        for strength in family.strengths:
            keys = ("asymmetry", "differing", "one_way", "error")
            cells = mean_cells(group, [f"{key}_{strength:g}" for key in keys])
            rows.append([name, family.source, f"{family.quantity} {strength:g}", *cells])
    columns = ["world", "source", "strength", "index", "share of pairs that differ", "share one-way"]
    return Table("Asymmetry, means over seeds [range]", [*columns, "error of the index"], rows)


EXPERIMENT = Experiment("directed-effort", "Asymmetry of directed energies", CLAIM, trials, conclude)
