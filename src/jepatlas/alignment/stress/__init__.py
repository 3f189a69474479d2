"""Stress curves: how an alignment degrades under mismatched pairs, few pairs, shifts and different widths.

At every point, maps are fitted on some rows and scored on others whose pairs are correct, over several seeds, and
compared with shuffled pairs.
"""

from jepatlas.alignment.stress.pair_stress import pair_budget, pair_noise
from jepatlas.alignment.stress.shift_stress import UNSHIFTED, distribution_shift
from jepatlas.alignment.stress.stress_curve import MEASURES, Score, StressCurve, StressPoint
from jepatlas.alignment.stress.stress_trial import Protocol
from jepatlas.alignment.stress.width_stress import capacity

__all__ = [
    "MEASURES",
    "UNSHIFTED",
    "Protocol",
    "Score",
    "StressCurve",
    "StressPoint",
    "capacity",
    "distribution_shift",
    "pair_budget",
    "pair_noise",
]
