"""Audit of energies: quasimetric axioms, detection of unreachable pairs, calibration against the truth, and repair."""

from jepatlas.energy.audit.axioms import asymmetry_index
from jepatlas.energy.audit.energy_audit import AXIOMS, Audit, audit
from jepatlas.energy.audit.reachability_verdicts import symmetric_ceiling
from jepatlas.energy.audit.triangle import Repair, closure, relative_gap, repair

__all__ = [
    "AXIOMS",
    "Audit",
    "Repair",
    "asymmetry_index",
    "audit",
    "closure",
    "relative_gap",
    "repair",
    "symmetric_ceiling",
]
