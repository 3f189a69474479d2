"""Maps between the latents of two models: how they are fitted, and what a fitted one can and cannot say."""

from jepatlas.alignment.maps.conditioning import Conditioning
from jepatlas.alignment.maps.estimators import LeastSquaresMap, ProcrustesMap, RidgeMap, RobustMap
from jepatlas.alignment.maps.fitted import FittedMap, StreamedMap

__all__ = [
    "Conditioning",
    "FittedMap",
    "LeastSquaresMap",
    "ProcrustesMap",
    "RidgeMap",
    "RobustMap",
    "StreamedMap",
]
