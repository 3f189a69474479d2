"""Exact energies, for worlds in which they can be computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.energy.exact.edit_distance import EditCosts, edit_energies, edit_energy
    from jepatlas.energy.exact.eikonal import EnergyMap, energies_from, energies_to
    from jepatlas.energy.exact.implication import Derivation, Rules
    from jepatlas.energy.exact.landmarks import LandmarkEffort, Matching, landmark_energies, match_landmarks
    from jepatlas.energy.exact.medium import Medium
    from jepatlas.energy.exact.navigation import zermelo
    from jepatlas.energy.exact.registration import interval_energies, scale_energy, strain_energies
    from jepatlas.energy.exact.shortest_paths import energy_to_set, graph_energies, shortest_path
    from jepatlas.energy.exact.zermelo_shooting import Arrivals, Shear, shoot
else:
    __getattr__ = lazy_exports(__name__, __file__)  # numba takes a second to import, and most callers do not need it

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
    "landmark_energies",
    "match_landmarks",
    "scale_energy",
    "shoot",
    "shortest_path",
    "strain_energies",
    "zermelo",
]
