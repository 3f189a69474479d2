"""Maps between the latents of two models: how they are fitted, and what a fitted one can and cannot say."""

from jepatlas.align.maps.conditioning import Conditioning
from jepatlas.align.maps.estimators import LeastSquaresMap, ProcrustesMap, RidgeMap, RobustMap
from jepatlas.align.maps.fitted import FittedMap, StreamedMap

__all__ = [
    "Conditioning",
    "FittedMap",
    "LeastSquaresMap",
    "ProcrustesMap",
    "RidgeMap",
    "RobustMap",
    "StreamedMap",
]
