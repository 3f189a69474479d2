"""Energies from worlds, files and runs to records: fitted, judged, audited, carried to other models."""

from jepatlas.energies.audited import audit_file
from jepatlas.energies.energy_file import EnergySpec, SavedEnergy, energy_from_bytes, load_energy_file, save_energy
from jepatlas.energies.exact import exact_record
from jepatlas.energies.fitted import FittedEnergy, load_fitted
from jepatlas.energies.ground import Ground, ground_of, world_ground
from jepatlas.energies.judged import JudgedEnergy, judge_fitted, judge_run

__all__ = [
    "EnergySpec",
    "FittedEnergy",
    "Ground",
    "JudgedEnergy",
    "SavedEnergy",
    "audit_file",
    "energy_from_bytes",
    "exact_record",
    "ground_of",
    "judge_fitted",
    "judge_run",
    "load_energy_file",
    "load_fitted",
    "save_energy",
    "world_ground",
]
