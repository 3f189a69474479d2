"""What do I do now? Planners over any dynamics and any cost, in whatever coordinates they are given."""

from jepatlas.plan.bounds import ActionBox
from jepatlas.plan.cem import CEM, CEMConfig
from jepatlas.plan.compiled import CompiledDynamics, compiled
from jepatlas.plan.gradient import Gradient, GradientConfig
from jepatlas.plan.icem import ICEM, ICEMConfig
from jepatlas.plan.library import Library, LibraryLine, nearest_rows
from jepatlas.plan.lqr import LQR, LQRConfig
from jepatlas.plan.mppi import MPPI, MPPIConfig, path_weights
from jepatlas.plan.noise import coloured_noise
from jepatlas.plan.quadratic import Quadratic, QuadraticCost
from jepatlas.plan.receding import ClosedLoop, receding_horizon, shifted
from jepatlas.plan.riccati import Regulator, finite_regulator, infinite_regulator
from jepatlas.plan.rollout_costs import LatentCost, LatentCostConfig, rolled_costs
from jepatlas.plan.scoring import out_of_reach
from jepatlas.plan.shooting import Shooting, ShootingConfig
from jepatlas.plan.stable_worldmodel import CostModel, as_cost_model
from jepatlas.plan.straight_line import StraightLine, StraightLineConfig, detour, waypoints

__all__ = [
    "CEM",
    "ICEM",
    "LQR",
    "MPPI",
    "PLANNERS",
    "ActionBox",
    "CEMConfig",
    "ClosedLoop",
    "CompiledDynamics",
    "CostModel",
    "Gradient",
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
    "Regulator",
    "Shooting",
    "ShootingConfig",
    "StraightLine",
    "StraightLineConfig",
    "as_cost_model",
    "coloured_noise",
    "compiled",
    "detour",
    "finite_regulator",
    "infinite_regulator",
    "nearest_rows",
    "out_of_reach",
    "path_weights",
    "receding_horizon",
    "rolled_costs",
    "shifted",
    "waypoints",
]

PlannerConfig = CEMConfig | ICEMConfig | MPPIConfig | GradientConfig | ShootingConfig | LQRConfig | StraightLineConfig
"""The choice of a recipe's planner."""

PLANNERS: dict[str, type[PlannerConfig]] = {
    config.kind: config
    for config in (CEMConfig, ICEMConfig, MPPIConfig, GradientConfig, ShootingConfig, LQRConfig, StraightLineConfig)
}
"""Settings by kind; each builds its planner for a box of actions."""
