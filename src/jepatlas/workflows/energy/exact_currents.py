"""Travel times in a current as a record: landscapes to and from a goal, ways there and back, and how sure they are.

They are held against what is known independently of the solver: the closed form where the current is the same
everywhere, shooting where it is a shear slower than the vehicle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate, Record, Verdict
from jepatlas.energy.audit import audit
from jepatlas.energy.exact import Arrivals, EnergyMap, Shear, energies_from, energies_to, shoot
from jepatlas.workflows.energy.current_truth import closed_form, current_energies, medium_of
from jepatlas.workflows.energy.exact_tables import cell
from jepatlas.workflows.energy.figures import audit_figures, landscape
from jepatlas.worlds import CurrentWorld, ShearCurrent

__all__ = ["current_record"]

MEAN_ERROR, LARGEST_ERROR = 0.003, 0.01
ASKED = 400  # places at which the solver is held against another method
AUDITED = 24  # places between which the axioms are checked, each of which is a solution of its own
FOREVER = 1e6  # times as long as the vehicle needs for a side of the box: no speed at all, but for rounding


def current_record(world: CurrentWorld, goal: Sequence[float] | None, resolution: int, seed: int) -> Record:
    if resolution < 11:
        raise InputError(f"A current is solved on at least 11 × 11 nodes, but a resolution of {resolution} was given.")
    point = np.asarray([0.5 * world.half, 0.0] if goal is None else goal, float)
    if point.shape != (2,) or not (np.abs(point) <= world.half).all():
        box = f"from {-world.half:g} to {world.half:g}"
        raise InputError(f"The goal {cell(point)} is outside the world, which reaches {box} both ways.")
    medium = medium_of(world, resolution)
    to_goal, from_goal = energies_to(medium, point), energies_from(medium, point)
    z = world.states(AUDITED, seed)
    places = current_energies(world, z)
    found = audit(places, z, truth=places, tolerance=LARGEST_ERROR, seed=seed)
    errors = _errors(world, from_goal, point, seed)
    fields = {"to_goal": to_goal, "from_goal": from_goal}
    arrays = {name: _times(world, field.values).astype(np.float32) for name, field in fields.items()}
    reached = [np.isfinite(times).mean() for times in arrays.values()]
    figure = _current_landscape(world, to_goal, from_goal, arrays)
    return Record(
        f"Exact energies of a {world.current.kind} current",
        f"Travel times on {resolution} × {resolution} nodes. The goal {cell(point)} is reached from {reached[0]:.0%} "
        f"of the box, and {reached[1]:.0%} of it from there. {_said(errors)}",
        provenance(seed) | {"nodes": resolution**2},
        (*errors, *(found[name] for name in ("nonnegativity", "identity", "triangle", "asymmetry"))),
        (figure, *audit_figures(found)[:1]),
        arrays=arrays,
    )


def _current_landscape(
    world: CurrentWorld, to_goal: EnergyMap, from_goal: EnergyMap, arrays: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Ways from and to three corners' halves, so that one sees how the current bends them."""
    paths: dict[str, list[tuple[str, str]]] = {}
    starts = 0.8 * world.half * np.array([[-1.0, 1.0], [-1.0, -1.0], [-0.2, 1.0]])
    for key, field in (("to_goal", to_goal), ("from_goal", from_goal)):
        paths[key] = []
        for number, start in enumerate(starts):
            path = _way(field, start)
            if len(path):
                arrays[f"{key}_path_{number}"] = path
                paths[key].append((f"way {number + 1}", f"{key}_path_{number}"))
    extent = {"x": [-world.half, world.half], "y": [-world.half, world.half]}
    panels = [("time to the goal", "to_goal"), ("time from the goal", "from_goal")]
    return landscape("Travel times to and from a goal", panels, extent, tuple(map(float, to_goal.ends[0])), paths)


def _way(field: EnergyMap, start: np.ndarray) -> np.ndarray:
    """(k, 2); empty where there is none, or where a fast current lets it be lost between the nodes."""
    try:
        return field.path(start)
    except InputError:
        return np.empty((0, 2))


def _times(world: CurrentWorld, times: np.ndarray) -> np.ndarray:
    """+∞ where rounding alone makes a way: straight across a current that is exactly as fast as the vehicle."""
    return np.where(times > FOREVER * 2 * world.half / world.speed, np.inf, times)


def _errors(world: CurrentWorld, from_goal: EnergyMap, source: np.ndarray, seed: int) -> tuple[Verdict, ...]:
    """Relative errors at places drawn at random, by an independent method; none where there is no such method."""
    targets = world.states(ASKED, seed)
    exact = closed_form(world, source, targets)
    how = "the closed form"
    if exact is None:
        current = world.current
        if not isinstance(current, ShearCurrent) or abs(current.rate) * world.half >= world.speed:
            return ()
        shear = Shear(lambda y: current.rate * y, lambda y: np.full_like(y, current.rate), world.speed)
        exact, how = _within(world, shoot(shear, source, targets)), "shooting"
    solved = _times(world, from_goal(targets))
    agree = np.isfinite(solved) & np.isfinite(exact) & (exact > 0)
    known = ~np.isnan(exact)
    split = float((np.isfinite(solved) != np.isfinite(exact))[known].mean()) if known.any() else 0.0
    reach = Verdict.judge(
        "reach_disagreement",
        Estimate(split, split, split, int(known.sum())),
        direction="lower",
        threshold=0.02,
        good=f"The solver and {how} agree on what can be reached.",
        bad=f"The solver and {how} disagree on what can be reached: raise --resolution.",
    )
    return (*_relative(solved[agree], exact[agree], how), reach)


def _relative(solved: np.ndarray, exact: np.ndarray, how: str) -> tuple[Verdict, ...]:
    """The mean and the largest; none where a current that is faster than the vehicle lets it nowhere."""
    if not len(exact):
        return ()
    error, count = np.abs(solved / exact - 1), len(exact)
    mean, largest = float(error.mean()), float(error.max())
    return (
        Verdict.judge(
            "mean_error",
            Estimate(mean, mean, mean, count),
            direction="lower",
            threshold=MEAN_ERROR,
            good=f"Against {how}, at {count} places.",
            bad=f"Against {how}: raise --resolution.",
        ),
        Verdict.judge(
            "largest_error",
            Estimate(largest, largest, largest, count),
            direction="lower",
            threshold=LARGEST_ERROR,
            good=f"Against {how}.",
            bad=f"Against {how}: raise --resolution.",
        ),
    )


def _within(world: CurrentWorld, arrivals: Arrivals) -> np.ndarray:
    """Times of those paths that stay in the box, where the solver must stay; NaN for the others."""
    inside = (np.abs(arrivals.paths()) <= world.half * (1 + 1e-9)).all((1, 2))
    return np.where(inside, arrivals.time, np.nan)


def _said(errors: Sequence[Verdict]) -> str:
    if not errors:
        return "No independent method is at hand for this current; the same solver is held against others elsewhere."
    named = {verdict.name: verdict for verdict in errors}
    if "mean_error" not in named:
        return "Of the places asked for, none can be reached from there, so no times are compared."
    mean, largest = named["mean_error"], named["largest_error"]
    return f"{mean.advice.rstrip('.')} the mean error is {mean.value:.3%}, the largest {largest.value:.3%}."
