"""What a learner is given: pairs of views, steps with their costs, the streams of batches of both, tables of images."""

from jepatlas.views.experience import check_experience, experience_from_arrays
from jepatlas.views.multiview import MultiViewTable
from jepatlas.views.pairs import AnyPairLaw, PairStream, Siblings, Transitions
from jepatlas.views.steps import StepStream

__all__ = [
    "AnyPairLaw",
    "MultiViewTable",
    "PairStream",
    "Siblings",
    "StepStream",
    "Transitions",
    "check_experience",
    "experience_from_arrays",
]
