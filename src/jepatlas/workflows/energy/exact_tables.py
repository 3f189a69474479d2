"""The exact energies of a grid or a table as a record: landscapes to and from a goal, and cheapest ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.energy.audit import audit
from jepatlas.energy.exact.graphs import graph_energies, shortest_path
from jepatlas.workflows.energy.figures import audit_figures, choose_goal, grid_of, landscape
from jepatlas.worlds import GymTable, OneWayGrid

__all__ = ["cell", "table_record"]

MOST = 4096  # states of which all pairs are computed


def table_record(world: OneWayGrid | GymTable, goal: Sequence[float] | None, seed: int) -> Record:
    if len(world.positions) > MOST:
        raise InputError(f"The world has {len(world.positions)} states; all pairs are computed for at most {MOST}.")
    truth, positions = graph_energies(world.graph), world.positions
    end = choose_goal(truth) if goal is None else _state(world, goal)
    found = audit(truth, truth=truth, seed=seed)
    axioms = [verdict for verdict in found.verdicts if verdict.name in ("nonnegativity", "identity", "triangle")]
    arrays: dict[str, np.ndarray] = {"energies": truth.astype(np.float32), "positions": positions}
    figures: list[dict[str, Any]] = []
    if positions.shape[1] == 2:
        figures.append(_table_landscape(world, truth, end, arrays))
    there = np.isfinite(truth)
    others = len(truth) * (len(truth) - 1)
    without, one_way = int((~there).sum()), int((there & ~there.T).sum())
    return Record(
        f"Exact energies of {world.kind}",
        f"{len(truth)} states and {len(world.graph.source)} steps. {without / others:.1%} of ordered pairs have no "
        f"way, {one_way / others:.1%} one and none back. The longest way costs {truth[there].max():g}. To the state "
        f"{cell(positions[end])} there is a way from {there[:, end].sum() - 1} states, from it to "
        f"{there[end].sum() - 1}.",
        provenance(seed) | {"states": len(truth)},
        (*axioms, found["asymmetry"]),
        (*figures, *audit_figures(found)[:1]),
        arrays=arrays,
    )


def _state(world: OneWayGrid | GymTable, goal: Sequence[float]) -> int:
    """The place of the state at a position, or in gymnasium of that number; refused where there is none."""
    names = [world.positions, world.numbers[:, None]] if isinstance(world, GymTable) else [world.positions]
    for known in names:
        if len(goal) == known.shape[1]:
            matches = np.flatnonzero((known == np.asarray(goal, float)).all(1))
            if len(matches):
                return int(matches[0])
    shown = " or ".join(dict.fromkeys(f"{cell(known.min(0))} to {cell(known.max(0))}" for known in names))
    raise InputError(
        f"The goal {cell(np.asarray(goal))} is not a state of this world. States are {shown}, without those that one "
        "cannot be in."
    )


def cell(position: np.ndarray) -> str:
    """A place as one writes it: (3, 0.5)."""
    return "(" + ", ".join(f"{value:g}" for value in position) + ")"


def _table_landscape(
    world: OneWayGrid | GymTable, truth: np.ndarray, goal: int, arrays: dict[str, np.ndarray]
) -> dict[str, Any]:
    """There and back between the goal and the state that is farthest from it, among those with both ways or one."""
    arrays |= {"to_goal": grid_of(world.positions, truth[:, goal]), "from_goal": grid_of(world.positions, truth[goal])}
    paths = {}
    for key, energies in (("to_goal", truth[:, goal]), ("from_goal", truth[goal])):
        far = int(np.where(np.isfinite(energies), energies, -1).argmax())
        ends = (far, goal) if key == "to_goal" else (goal, far)
        arrays[f"{key}_path"] = world.positions[shortest_path(world.graph, *ends)][:, ::-1]
        paths[key] = [("a cheapest way", f"{key}_path")]
    panels = [("to the goal", "to_goal"), ("from the goal", "from_goal")]
    row, column = world.positions[goal]
    return landscape("Energies to and from a goal", panels, {}, (column, row), paths)
