"""Claims on planning in a latent, by predicted distance or by a learned energy."""

from jepatlas.experiments.planning import (
    least_action_planning,
    one_way_doors,
    optimal_planning,
    planning_cost,
    ported_planner,
    straight_plans,
    value_guided,
)

__all__ = ["CLAIMS"]

CLAIMS = (
    optimal_planning,
    planning_cost,
    straight_plans,
    value_guided,
    one_way_doors,
    least_action_planning,
    ported_planner,
)
"""Modules with an experiment, in the order of the claims page."""
