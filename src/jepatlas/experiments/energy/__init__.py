"""Claims on intrinsic energies and quasimetrics."""

from jepatlas.experiments.energy import (
    directed_effort,
    energy_calibration,
    energy_coverage,
    energy_heads,
    intrinsic_energy,
    least_action_tables,
    one_way_reachability,
    order_embedding,
    ported_energy,
    prediction_energy,
    registration_energies,
)

__all__ = ["CLAIMS"]

CLAIMS = (
    intrinsic_energy,
    directed_effort,
    order_embedding,
    registration_energies,
    one_way_reachability,
    energy_calibration,
    energy_coverage,
    energy_heads,
    prediction_energy,
    least_action_tables,
    ported_energy,
)
"""Modules with an experiment, in the order of the claims page."""
