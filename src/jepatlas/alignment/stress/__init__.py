"""What an alignment withstands: mismatched pairs, few pairs, shifts of the distribution, models of different width.

Every point fits maps on some rows and scores them on others whose pairs are right, over seeds, beside shuffled pairs.
"""

from jepatlas.alignment.stress.capacity import capacity, capacity_between
from jepatlas.alignment.stress.curve import StressCurve, StressPoint
from jepatlas.alignment.stress.pairs import pair_budget, pair_noise
from jepatlas.alignment.stress.runs import Protocol
from jepatlas.alignment.stress.scores import MEASURES, Score
from jepatlas.alignment.stress.shift import UNSHIFTED, distribution_shift, domain_shift

__all__ = [
    "MEASURES",
    "UNSHIFTED",
    "Protocol",
    "Score",
    "StressCurve",
    "StressPoint",
    "capacity",
    "capacity_between",
    "distribution_shift",
    "domain_shift",
    "pair_budget",
    "pair_noise",
]
