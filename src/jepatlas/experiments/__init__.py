"""One experiment per claim of the papers: the claim, the trials that test it, and the rule that concludes.

A new experiment is a file with an `Experiment` in it, and a line in the list of its area.
"""

from jepatlas.experiments import alignment, energy, identifiability, planning, reacher, social
from jepatlas.experiments.engine.experiment import SCALES, Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.publishing import (
    check_publishable,
    claims_page,
    last_record,
    publish,
    read_results,
    shipped_results,
)
from jepatlas.experiments.engine.running import reproduce

__all__ = [
    "EXPERIMENTS",
    "SCALES",
    "Claim",
    "Experiment",
    "Finding",
    "Result",
    "Scale",
    "Trial",
    "check_publishable",
    "claims_page",
    "last_record",
    "publish",
    "read_results",
    "reproduce",
    "shipped_results",
]

_MODULES = (
    *identifiability.CLAIMS,
    *alignment.CLAIMS,
    *energy.CLAIMS,
    *reacher.CLAIMS,
    *planning.CLAIMS,
    *social.CLAIMS,
)
EXPERIMENTS: dict[str, Experiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in _MODULES}
"""All experiments by name, in the order of the claims page."""
