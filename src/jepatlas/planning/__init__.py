"""Planners over any dynamics and any cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.planning.action_box import ActionBox
    from jepatlas.planning.candidates import unreachable
    from jepatlas.planning.cem import CEMConfig, ICEMConfig
    from jepatlas.planning.costs import LatentCost, LatentCostConfig, Quadratic, QuadraticCost, compiled, rollout_costs
    from jepatlas.planning.gradient import GradientConfig
    from jepatlas.planning.lqr import LQRConfig, finite_regulator, infinite_regulator
    from jepatlas.planning.mppi import MPPIConfig
    from jepatlas.planning.planners import PlannerConfig
    from jepatlas.planning.receding import ClosedLoop, receding_horizon
    from jepatlas.planning.shooting import ShootingConfig
    from jepatlas.planning.stable_worldmodel import CostModel, EnergyObjective, as_cost_model, as_objective
    from jepatlas.planning.straight_line import (
        Library,
        LibraryLine,
        StraightLineConfig,
        detour,
        nearest_rows,
        waypoints,
    )
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "ActionBox",
    "CEMConfig",
    "ClosedLoop",
    "CostModel",
    "EnergyObjective",
    "GradientConfig",
    "ICEMConfig",
    "LQRConfig",
    "LatentCost",
    "LatentCostConfig",
    "Library",
    "LibraryLine",
    "MPPIConfig",
    "PlannerConfig",
    "Quadratic",
    "QuadraticCost",
    "ShootingConfig",
    "StraightLineConfig",
    "as_cost_model",
    "as_objective",
    "compiled",
    "detour",
    "finite_regulator",
    "infinite_regulator",
    "nearest_rows",
    "receding_horizon",
    "rollout_costs",
    "unreachable",
    "waypoints",
]
