"""The exact energies of a world as a record, whichever world it is."""

from __future__ import annotations

from collections.abc import Sequence

from jepatlas.core.records import Record
from jepatlas.recipes import EnergyWorld
from jepatlas.workflows.energy.exact_currents import current_record
from jepatlas.workflows.energy.exact_tables import table_record
from jepatlas.worlds import CurrentWorld

__all__ = ["exact_record"]


def exact_record(
    world: EnergyWorld, *, goal: Sequence[float] | None = None, resolution: int = 201, seed: int = 0
) -> Record:
    """Energies of a world; `goal` is a cell (row, column), a state's number, or a point of the plane."""
    if isinstance(world, CurrentWorld):
        return current_record(world, goal, resolution, seed)
    return table_record(world, goal, seed)
