"""Claims on LeJEPA trained on images of the Reacher arm."""

from jepatlas.experiments.reacher import reacher_collapse, reacher_exploration, reacher_isotropisation, reacher_rates

__all__ = ["CLAIMS"]

CLAIMS = (
    reacher_exploration,
    reacher_rates,
    reacher_collapse,
    reacher_isotropisation,
)
"""Modules with an experiment, in the order of the claims page."""
