"""Exact energies, where truth can be computed."""

from jepatlas.energy.exact.edit_distance import EditCosts, edit_energies, edit_energy
from jepatlas.energy.exact.eikonal import EnergyMap, energies_from, energies_to
from jepatlas.energy.exact.graphs import energy_to_set, graph_energies, shortest_path
from jepatlas.energy.exact.implication import Derivation, Rules
from jepatlas.energy.exact.landmarks import LandmarkEffort, Matching, landmark_energies, match_landmarks
from jepatlas.energy.exact.medium import Medium
from jepatlas.energy.exact.registration import interval_energies, interval_path, strain_energies
from jepatlas.energy.exact.scale import scale_energy
from jepatlas.energy.exact.shooting import Arrivals, Shear, shoot
from jepatlas.energy.exact.zermelo import zermelo, zermelo_heading

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
