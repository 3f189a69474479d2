"""Claims of "Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models"."""

from jepatlas.experiments.social import (
    migration,
    mismatched_pairs,
    mutual_teaching,
    paradigms,
    predictions,
    shift,
    structure,
    viewpoints,
    views,
)

__all__ = ["CLAIMS"]

CLAIMS = (views, paradigms, structure, mismatched_pairs, shift, predictions, migration, mutual_teaching, viewpoints)
"""Modules with an `EXPERIMENT`, in the order of the claims page."""
