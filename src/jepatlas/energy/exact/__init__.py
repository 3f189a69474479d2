"""Exact energies, where truth can be computed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jepatlas.energy.exact.edit_distance import EditCosts, edit_energies, edit_energy
from jepatlas.energy.exact.graphs import energy_to_set, graph_energies, shortest_path
from jepatlas.energy.exact.implication import Derivation, Rules
from jepatlas.energy.exact.landmarks import LandmarkEffort, Matching, landmark_energies, match_landmarks
from jepatlas.energy.exact.medium import Medium
from jepatlas.energy.exact.registration import interval_energies, interval_path, strain_energies
from jepatlas.energy.exact.scale import scale_energy
from jepatlas.energy.exact.shooting import Arrivals, Shear, shoot
from jepatlas.energy.exact.zermelo import zermelo, zermelo_heading

if TYPE_CHECKING:
    from jepatlas.energy.exact.eikonal import EnergyMap, energies_from, energies_to

__all__ = [
    "Arrivals",
    "Derivation",
    "EditCosts",
    "EnergyMap",
    "LandmarkEffort",
    "Matching",
    "Medium",
    "Rules",
    "Shear",
    "edit_energies",
    "edit_energy",
    "energies_from",
    "energies_to",
    "energy_to_set",
    "graph_energies",
    "interval_energies",
    "interval_path",
    "landmark_energies",
    "match_landmarks",
    "scale_energy",
    "shoot",
    "shortest_path",
    "strain_energies",
    "zermelo",
    "zermelo_heading",
]

_COMPILED = ("EnergyMap", "energies_from", "energies_to")


def __getattr__(name: str) -> Any:
    """The eikonal solver comes when it is asked for: numba takes a second to import, and most runs do without."""
    if name in _COMPILED:
        return getattr(import_module("jepatlas.energy.exact.eikonal"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
