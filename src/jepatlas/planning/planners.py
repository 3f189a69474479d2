"""The planners that recipes and the command line offer. Register a new planner here."""

from __future__ import annotations

from jepatlas.planning.cem import CEMConfig, ICEMConfig
from jepatlas.planning.gradient import GradientConfig
from jepatlas.planning.lqr import LQRConfig
from jepatlas.planning.mppi import MPPIConfig
from jepatlas.planning.shooting import ShootingConfig
from jepatlas.planning.straight_line import StraightLineConfig

__all__ = ["PlannerConfig"]

PlannerConfig = CEMConfig | ICEMConfig | MPPIConfig | GradientConfig | ShootingConfig | LQRConfig | StraightLineConfig
"""The config of any planner; `config.build(box)` returns the planner."""
