"""What a learner is given: pairs of views, and the stream of batches made of them."""

from jepatlas.views.pairs import AnyPairLaw, PairStream, Siblings, Transitions

__all__ = ["AnyPairLaw", "PairStream", "Siblings", "Transitions"]
