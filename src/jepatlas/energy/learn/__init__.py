"""Energies learned from observed steps: objectives, calibration and reachability decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.energy.energy_configs import ExpectileConfig, IEJEPAConfig, QRLConfig
    from jepatlas.energy.learn.embedded import EmbeddedEnergy, PortedEnergy
    from jepatlas.energy.learn.expectile import Expectile, discounted, undiscount
    from jepatlas.energy.learn.ie_jepa import IEJEPA, PredictionError
    from jepatlas.energy.learn.qrl import QRL
    from jepatlas.energy.learn.reachability_threshold import (
        later_pairs,
        reachability_errors,
        unreachable_share,
        unreachable_threshold,
        with_unreachable,
    )
    from jepatlas.energy.learn.step_calibration import calibrate, step_scale
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "IEJEPA",
    "QRL",
    "EmbeddedEnergy",
    "Expectile",
    "ExpectileConfig",
    "IEJEPAConfig",
    "PortedEnergy",
    "PredictionError",
    "QRLConfig",
    "calibrate",
    "discounted",
    "later_pairs",
    "reachability_errors",
    "step_scale",
    "undiscount",
    "unreachable_share",
    "unreachable_threshold",
    "with_unreachable",
]
