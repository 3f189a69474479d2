"""Claims on linear maps between encoders: "Social-JEPA", on simulated latents and without training on images."""

from jepatlas.experiments.alignment import (
    alignment_nulls,
    gl_symmetry,
    image_controls,
    linear_state_model,
    orthogonal_maps,
    pair_budget,
    pair_noise,
    real_encoders,
)

__all__ = ["CLAIMS"]

CLAIMS = (
    orthogonal_maps,
    linear_state_model,
    gl_symmetry,
    pair_budget,
    pair_noise,
    alignment_nulls,
    image_controls,
    real_encoders,
)
"""Modules with an experiment, in the order of the claims page."""
