"""Claims on linear identifiability: "When Does LeJEPA Learn a World Model?"."""

from jepatlas.experiments.identifiability import (
    anisotropic,
    bound_check,
    dimension_mismatch,
    generalised_normal,
    greedy_sfa,
    hermite_degrees,
    identify_2d,
    isotropisation,
    lambda_rho,
    sample_complexity,
    scaling,
    spectral_solver,
)

__all__ = ["CLAIMS"]

CLAIMS = (
    identify_2d,
    scaling,
    generalised_normal,
    lambda_rho,
    bound_check,
    hermite_degrees,
    anisotropic,
    greedy_sfa,
    dimension_mismatch,
    isotropisation,
    sample_complexity,
    spectral_solver,
)
"""Modules with an experiment, in the order of the claims page."""
