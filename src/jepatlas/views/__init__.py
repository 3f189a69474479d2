"""What a learner is given: pairs of views, the stream of batches made of them, and tables of images."""

from jepatlas.views.multiview import MultiViewTable
from jepatlas.views.pairs import AnyPairLaw, PairStream, Siblings, Transitions

__all__ = ["AnyPairLaw", "MultiViewTable", "PairStream", "Siblings", "Transitions"]
