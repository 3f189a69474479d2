"""Energy workflows: fit and evaluate, audit files, exact energies of worlds, and porting to other models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.workflows.energy.audit_files import audit_file, audit_record, audit_saved, audit_summary, matrix_name
    from jepatlas.workflows.energy.energy_evaluation import EnergyEvaluation, evaluate_fitted, evaluate_run
    from jepatlas.workflows.energy.energy_files import (
        EnergySpec,
        SavedEnergy,
        attach_energy,
        energy_for,
        energy_from_bytes,
        energy_of,
        is_energy_file,
        load_energy_file,
        save_energy,
    )
    from jepatlas.workflows.energy.energy_porting import MigratedEnergy, Ported, migrate_energy, port_energy
    from jepatlas.workflows.energy.exact_energies import exact_record
    from jepatlas.workflows.energy.fitted_energy import FittedEnergy, load_fitted
    from jepatlas.workflows.energy.ground_truth import GroundTruth, ground_truth_of, world_ground_truth
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "EnergyEvaluation",
    "EnergySpec",
    "FittedEnergy",
    "GroundTruth",
    "MigratedEnergy",
    "Ported",
    "SavedEnergy",
    "attach_energy",
    "audit_file",
    "audit_record",
    "audit_saved",
    "audit_summary",
    "energy_for",
    "energy_from_bytes",
    "energy_of",
    "evaluate_fitted",
    "evaluate_run",
    "exact_record",
    "ground_truth_of",
    "is_energy_file",
    "load_energy_file",
    "load_fitted",
    "matrix_name",
    "migrate_energy",
    "port_energy",
    "save_energy",
    "world_ground_truth",
]
