"""Claims on linear identifiability: "When Does LeJEPA Learn a World Model?"."""

from jepatlas.experiments.identifiability import (
    action_identification,
    anisotropic,
    bound_check,
    certificate_power,
    correlation_ladder,
    dimension_mismatch,
    dirichlet_energy,
    greedy_sfa,
    hermite_degrees,
    identify_2d,
    isotropisation_doses,
    lambda_rho,
    non_gaussian_worlds,
    recovered_dynamics,
    recovered_warps,
    sample_complexity,
    scaling,
    spectral_solver,
)

__all__ = ["CLAIMS"]

CLAIMS = (
    identify_2d,
    recovered_dynamics,
    scaling,
    non_gaussian_worlds,
    recovered_warps,
    lambda_rho,
    bound_check,
    hermite_degrees,
    correlation_ladder,
    dirichlet_energy,
    anisotropic,
    greedy_sfa,
    dimension_mismatch,
    isotropisation_doses,
    sample_complexity,
    spectral_solver,
    certificate_power,
    action_identification,
)
"""Modules with an experiment, in the order of the claims page."""
