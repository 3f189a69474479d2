"""Energies learned from observed steps: quasimetric learning, expectile values, their calibration and reachability."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.energy.energy_configs import ExpectileConfig, IEJEPAConfig, QRLConfig
    from jepatlas.energy.learn.calibration import calibrate, step_scale
    from jepatlas.energy.learn.embedded import EmbeddedEnergy
    from jepatlas.energy.learn.expectile import Expectile, discounted, expectile_loss, undiscount
    from jepatlas.energy.learn.ie_jepa import IEJEPA
    from jepatlas.energy.learn.multiplier import Multiplier
    from jepatlas.energy.learn.prediction_error import PredictionError
    from jepatlas.energy.learn.qrl import QRL, excess, shortfall
    from jepatlas.energy.learn.reachability import (
        ReachabilityErrors,
        later_pairs,
        reachability_errors,
        reachable_closure,
        unreachable_share,
        unreachable_threshold,
        with_unreachable,
    )
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "IEJEPA",
    "QRL",
    "EmbeddedEnergy",
    "Expectile",
    "ExpectileConfig",
    "IEJEPAConfig",
    "Multiplier",
    "PredictionError",
    "QRLConfig",
    "ReachabilityErrors",
    "calibrate",
    "discounted",
    "excess",
    "expectile_loss",
    "later_pairs",
    "reachability_errors",
    "reachable_closure",
    "shortfall",
    "step_scale",
    "undiscount",
    "unreachable_share",
    "unreachable_threshold",
    "with_unreachable",
]
