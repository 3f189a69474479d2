"""The claims of "Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models", one file each, and
what they share: scenes, agents, what is measured of two of them, and races of ways to train."""

from jepatlas.experiments.social import (
    migration,
    mutual,
    pairs,
    paradigms,
    predictions,
    shift,
    structure,
    viewpoints,
    views,
)

__all__ = ["CLAIMS"]

CLAIMS = (views, paradigms, structure, pairs, shift, predictions, migration, mutual, viewpoints)
"""Those that hold an experiment, in the order of the page of claims."""
