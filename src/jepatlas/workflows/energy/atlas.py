"""Energies in an atlas: each travels with the chart whose latents it takes, and serves any other through the frame."""

from __future__ import annotations

from jepatlas.alignment import Atlas, Attachment
from jepatlas.core.errors import InputError
from jepatlas.workflows.energy.energy_file import SavedEnergy, energy_from_bytes

__all__ = ["attach_energy", "energy_for", "energy_of"]

KIND = "energy"


def attach_energy(atlas: Atlas, chart: str, name: str, saved: SavedEnergy) -> Atlas:
    """The atlas with the energy `name` on the chart whose latents it takes."""
    if saved.dim != (width := atlas.chart(chart).width):
        raise InputError(f"The energy '{name}' takes {saved.dim} dimensions, but '{chart}' has {width}.")
    return atlas.attach(chart, Attachment(KIND, name, saved.to_bytes()))


def energy_of(atlas: Atlas, chart: str, name: str) -> SavedEnergy:
    """The energy `name` of a chart."""
    data = atlas.chart(chart).attachment(KIND, name).data
    return energy_from_bytes(data, f"What the chart '{chart}' carries as its energy '{name}'")


def energy_for(atlas: Atlas, chart: str, name: str, source: str) -> SavedEnergy:
    """The energy `name` of the chart `source`, made to take latents of `chart`."""
    return energy_of(atlas, source, name).ported(atlas.map(chart, source))
