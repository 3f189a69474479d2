"""Linear maps between the latents of two models: estimators, and the conditioning of fitted maps."""

from jepatlas.alignment.maps.conditioning import Conditioning
from jepatlas.alignment.maps.map_estimators import (
    FittedMap,
    LeastSquaresMap,
    ProcrustesMap,
    RidgeMap,
    RobustMap,
    StreamedMap,
)

__all__ = [
    "Conditioning",
    "FittedMap",
    "LeastSquaresMap",
    "ProcrustesMap",
    "RidgeMap",
    "RobustMap",
    "StreamedMap",
]
