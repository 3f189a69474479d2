"""Is it a quasimetric, does it know what is out of reach, and is it on the scale of the truth? For anyone's energy."""

from jepatlas.energy.audit.audit import Audit, audit
from jepatlas.energy.audit.calibration import CalibrationCurve
from jepatlas.energy.audit.closure import closure
from jepatlas.energy.audit.reachability import Roc, symmetric_ceiling
from jepatlas.energy.audit.repair import Repair, repair
from jepatlas.energy.audit.triangle import GapHistogram

__all__ = [
    "Audit",
    "CalibrationCurve",
    "GapHistogram",
    "Repair",
    "Roc",
    "audit",
    "closure",
    "repair",
    "symmetric_ceiling",
]
