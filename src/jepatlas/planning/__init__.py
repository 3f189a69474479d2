"""What do I do now? Planners over any dynamics and any cost, in whatever coordinates they are given."""

from jepatlas.planning.bounds import ActionBox
from jepatlas.planning.cem import CEM, CEMConfig
from jepatlas.planning.compiled import CompiledDynamics, compiled
from jepatlas.planning.gradient import Gradient, GradientConfig
from jepatlas.planning.icem import ICEM, ICEMConfig
from jepatlas.planning.library import Library, LibraryLine, nearest_rows
from jepatlas.planning.lqr import LQR, LQRConfig
from jepatlas.planning.mppi import MPPI, MPPIConfig, path_weights
from jepatlas.planning.noise import coloured_noise
from jepatlas.planning.quadratic import Quadratic, QuadraticCost
from jepatlas.planning.receding import ClosedLoop, receding_horizon, shifted
from jepatlas.planning.riccati import Regulator, finite_regulator, infinite_regulator
from jepatlas.planning.rollout_costs import LatentCost, LatentCostConfig, rolled_costs
from jepatlas.planning.scoring import out_of_reach
from jepatlas.planning.shooting import Shooting, ShootingConfig
from jepatlas.planning.stable_worldmodel import CostModel, as_cost_model
from jepatlas.planning.straight_line import StraightLine, StraightLineConfig, detour, waypoints

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
