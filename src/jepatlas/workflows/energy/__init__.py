"""Energies from worlds, files and runs to records: fitted, judged, audited, carried to other models."""

from jepatlas.workflows.energy.atlas import attach_energy, energy_for, energy_of
from jepatlas.workflows.energy.audited import audit_file, audit_saved
from jepatlas.workflows.energy.energy_file import (
    EnergySpec,
    SavedEnergy,
    energy_from_bytes,
    is_energy_file,
    load_energy_file,
    save_energy,
)
from jepatlas.workflows.energy.exact import exact_record
from jepatlas.workflows.energy.fitted import FittedEnergy, load_fitted
from jepatlas.workflows.energy.ground import Ground, ground_of, world_ground
from jepatlas.workflows.energy.judged import JudgedEnergy, judge_fitted, judge_run
from jepatlas.workflows.energy.migrated import MigratedEnergy, migrate_energy
from jepatlas.workflows.energy.porting import Ported, port_energy

__all__ = [
    "EnergySpec",
    "FittedEnergy",
    "Ground",
    "JudgedEnergy",
    "MigratedEnergy",
    "Ported",
    "SavedEnergy",
    "attach_energy",
    "audit_file",
    "audit_saved",
    "energy_for",
    "energy_from_bytes",
    "energy_of",
    "exact_record",
    "ground_of",
    "is_energy_file",
    "judge_fitted",
    "judge_run",
    "load_energy_file",
    "load_fitted",
    "migrate_energy",
    "port_energy",
    "save_energy",
    "world_ground",
]
