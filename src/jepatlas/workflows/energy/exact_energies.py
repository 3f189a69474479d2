"""Exact energies of a world as a record: landscapes to and from a goal, optimal paths, and a check of the solver.

Energies of grids and tables come from Dijkstra's algorithm. Travel times in currents come from the eikonal solver,
which is compared with an independent method: the closed form for constant currents, shooting for shear currents slower
than the vehicle.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.figures import Figure, Landscape
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate, Record, Verdict
from jepatlas.energy.audit import audit
from jepatlas.energy.exact import (
    Arrivals,
    EnergyMap,
    Shear,
    energies_from,
    energies_to,
    graph_energies,
    shoot,
    shortest_path,
)
from jepatlas.recipes import EnergyWorld
from jepatlas.workflows.energy.energy_figures import audit_figures, choose_goal, grid_of, landscape
from jepatlas.workflows.energy.ground_truth import closed_form_energies, current_energies, medium_of
from jepatlas.worlds import CurrentWorld, GymTable, OneWayGrid, ShearCurrent

__all__ = ["exact_record"]

MOST_STATES = 4096  # of a table for which all pairs are computed
AXIOMS = ("nonnegativity", "identity", "triangle")
MEAN_ERROR = 0.003
LARGEST_ERROR = 0.01
DISAGREEMENT = 0.02
COMPARED = 400  # places at which the solver is compared with another method
AUDITED = 24  # places between which the axioms are checked, each by its own solution
FOREVER = 1e6  # crossing times of the box; longer times are finite by rounding only


def exact_record(
    world: EnergyWorld, *, goal: Sequence[float] | None = None, resolution: int = 201, seed: int = 0
) -> Record:
    """The exact energies of a world; `goal` is a cell (row, column), the number of a state, or a point of the plane."""
    if isinstance(world, CurrentWorld):
        return _current_record(world, goal, resolution, seed)
    return _table_record(world, goal, seed)


def _table_record(world: OneWayGrid | GymTable, goal: Sequence[float] | None, seed: int) -> Record:
    if len(world.positions) > MOST_STATES:
        raise InputError(
            f"The world has {len(world.positions)} states, but all pairs are computed for at most {MOST_STATES}."
        )
    truth, positions = graph_energies(world.graph), world.positions
    end = choose_goal(truth) if goal is None else _state_at(world, goal)
    found = audit(truth, truth=truth, seed=seed)
    arrays: dict[str, np.ndarray] = {"energies": truth.astype(np.float32), "positions": positions}
    figures: list[Figure] = []
    if positions.shape[1] == 2:
        figures.append(_table_landscape(world, truth, end, arrays))
    reachable = np.isfinite(truth)
    pairs = len(truth) * (len(truth) - 1)
    unreachable, one_way = int((~reachable).sum()), int((reachable & ~reachable.T).sum())
    return Record(
        f"Exact energies of {world.kind}",
        f"{len(truth)} states and {len(world.graph.source)} steps. {unreachable / pairs:.1%} of ordered pairs are "
        f"unreachable; {one_way / pairs:.1%} are reachable in one direction only. The longest path costs "
        f"{truth[reachable].max():g}. The state {_format(positions[end])} is reachable from "
        f"{reachable[:, end].sum() - 1} states, and {reachable[end].sum() - 1} states are reachable from it.",
        provenance(seed) | {"states": len(truth)},
        tuple(found[name] for name in (*AXIOMS, "asymmetry")),
        (*figures, *audit_figures(found)[:1]),
        arrays=arrays,
    )


def _state_at(world: OneWayGrid | GymTable, goal: Sequence[float]) -> int:
    """The index of the state at a position or, in gymnasium, of that number."""
    names = [world.positions]
    if isinstance(world, GymTable):
        names.append(world.numbers[:, None])
    for known in names:
        if len(goal) == known.shape[1]:
            matches = np.flatnonzero((known == np.asarray(goal, float)).all(1))
            if len(matches):
                return int(matches[0])
    ranges = " or ".join(dict.fromkeys(f"{_format(known.min(0))} to {_format(known.max(0))}" for known in names))
    raise InputError(
        f"goal {_format(np.asarray(goal))} is not a state of this world. States are {ranges}, except blocked ones."
    )


def _table_landscape(
    world: OneWayGrid | GymTable, truth: np.ndarray, goal: int, arrays: dict[str, np.ndarray]
) -> Landscape:
    """Energies to and from the goal, with a cheapest path from and to the farthest state. Fills `arrays`."""
    paths = {}
    for key, energies in (("to_goal", truth[:, goal]), ("from_goal", truth[goal])):
        arrays[key] = grid_of(world.positions, energies)
        farthest = int(np.where(np.isfinite(energies), energies, -1).argmax())
        ends = (farthest, goal) if key == "to_goal" else (goal, farthest)
        arrays[f"{key}_path"] = world.positions[shortest_path(world.graph, *ends)][:, ::-1]
        paths[key] = [("cheapest path", f"{key}_path")]
    panels = [("to the goal", "to_goal"), ("from the goal", "from_goal")]
    row, column = world.positions[goal]
    return landscape("Energies to and from a goal", panels, {}, (column, row), paths)


def _current_record(world: CurrentWorld, goal: Sequence[float] | None, resolution: int, seed: int) -> Record:
    if resolution < 11:
        raise InputError(f"resolution must be at least 11, but {resolution} was given.")
    point = np.asarray([0.5 * world.half, 0.0] if goal is None else goal, float)
    if point.shape != (2,) or not (np.abs(point) <= world.half).all():
        raise InputError(
            f"goal {_format(point)} is outside the world, whose coordinates range from {-world.half:g} to "
            f"{world.half:g}."
        )
    medium = medium_of(world, resolution)
    to_goal, from_goal = energies_to(medium, point), energies_from(medium, point)
    z = world.states(AUDITED, seed)
    places = current_energies(world, z)
    found = audit(places, z, truth=places, tolerance=LARGEST_ERROR, seed=seed)
    errors, error_sentence = _compare_with_reference(world, from_goal, point, seed)
    arrays = {
        name: _without_rounding(world, field.values).astype(np.float32)
        for name, field in (("to_goal", to_goal), ("from_goal", from_goal))
    }
    to_share, from_share = (np.isfinite(times).mean() for times in arrays.values())
    figure = _current_landscape(world, to_goal, from_goal, arrays)
    return Record(
        f"Exact energies of a {world.current.kind} current",
        f"Travel times on {resolution} × {resolution} nodes. The goal {_format(point)} is reachable from "
        f"{to_share:.0%} of the box, and {from_share:.0%} of the box is reachable from it. {error_sentence}",
        provenance(seed) | {"nodes": resolution**2},
        (*errors, *(found[name] for name in (*AXIOMS, "asymmetry"))),
        (figure, *audit_figures(found)[:1]),
        arrays=arrays,
    )


def _current_landscape(
    world: CurrentWorld, to_goal: EnergyMap, from_goal: EnergyMap, arrays: dict[str, np.ndarray]
) -> Landscape:
    """Travel times to and from the goal, with paths between it and three other points. Adds the paths to `arrays`."""
    paths: dict[str, list[tuple[str, str]]] = {}
    points = 0.8 * world.half * np.array([[-1.0, 1.0], [-1.0, -1.0], [-0.2, 1.0]])
    for key, field in (("to_goal", to_goal), ("from_goal", from_goal)):
        paths[key] = []
        for number, point in enumerate(points):
            path = _path(field, point)
            if len(path):
                arrays[f"{key}_path_{number}"] = path
                paths[key].append((f"path {number + 1}", f"{key}_path_{number}"))
    extent = {"x": [-world.half, world.half], "y": [-world.half, world.half]}
    panels = [("time to the goal", "to_goal"), ("time from the goal", "from_goal")]
    goal = [float(coordinate) for coordinate in to_goal.ends[0]]
    return landscape("Travel times to and from a goal", panels, extent, goal, paths)


def _path(field: EnergyMap, point: np.ndarray) -> np.ndarray:
    """A least-time path (k, 2); empty if the point is unreachable, or if the path is lost in a fast current."""
    try:
        return field.path(point)
    except InputError:
        return np.empty((0, 2))


def _without_rounding(world: CurrentWorld, times: np.ndarray) -> np.ndarray:
    """+∞ for times that are finite by rounding only: across a current exactly as fast as the vehicle."""
    return np.where(times > FOREVER * 2 * world.half / world.speed, np.inf, times)


def _compare_with_reference(
    world: CurrentWorld, from_goal: EnergyMap, source: np.ndarray, seed: int
) -> tuple[tuple[Verdict, ...], str]:
    """Relative errors at random places against an independent method, and a sentence about them."""
    targets = world.states(COMPARED, seed)
    reference, method = _reference_times(world, source, targets)
    if reference is None:
        return (), "There is no independent method for this current; the solver is tested on others."
    solved = _without_rounding(world, from_goal(targets))
    known = ~np.isnan(reference)
    share = float((np.isfinite(solved) != np.isfinite(reference))[known].mean()) if known.any() else 0.0
    disagreement = Verdict.judge(
        "reach_disagreement",
        Estimate.exact(share, int(known.sum())),
        direction="lower",
        threshold=DISAGREEMENT,
        good=f"The solver and {method} agree on the reachable set.",
        bad=f"The solver and {method} disagree on the reachable set. Increase --resolution.",
    )
    compared = np.isfinite(solved) & np.isfinite(reference) & (reference > 0)
    if not compared.any():
        return (disagreement,), "None of the sampled places is reachable, so no times are compared."
    errors = np.abs(solved[compared] / reference[compared] - 1)
    count, mean, largest = len(errors), float(errors.mean()), float(errors.max())
    verdicts = []
    for name, value, threshold in (("mean_error", mean, MEAN_ERROR), ("largest_error", largest, LARGEST_ERROR)):
        verdicts.append(
            Verdict.judge(
                name,
                Estimate.exact(value, count),
                direction="lower",
                threshold=threshold,
                good=f"Compared with {method} at {count} places.",
                bad=f"Compared with {method} at {count} places. Increase --resolution.",
            )
        )
    sentence = f"Compared with {method} at {count} places, the mean error is {mean:.3%}, the largest {largest:.3%}."
    return (*verdicts, disagreement), sentence


def _reference_times(world: CurrentWorld, source: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray | None, str]:
    """Times from a source by the closed form or by shooting; None if neither applies."""
    exact = closed_form_energies(world, source, targets)
    if exact is not None:
        return exact, "the closed form"
    current = world.current
    if not isinstance(current, ShearCurrent) or abs(current.rate) * world.half >= world.speed:
        return None, ""
    shear = Shear(lambda y: current.rate * y, lambda y: np.full_like(y, current.rate), world.speed)
    return _times_inside(world, shoot(shear, source, targets)), "shooting"


def _times_inside(world: CurrentWorld, arrivals: Arrivals) -> np.ndarray:
    """Times of the paths that stay in the box, as the solver requires; NaN for the others."""
    inside = (np.abs(arrivals.paths()) <= world.half * (1 + 1e-9)).all((1, 2))
    return np.where(inside, arrivals.time, np.nan)


def _format(position: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:g}" for value in position) + ")"
