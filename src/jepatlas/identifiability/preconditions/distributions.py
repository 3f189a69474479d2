"""Stationarity and Gaussianity: how pairs are distributed, through the features of `sliced.py`."""

from __future__ import annotations

from jepatlas.core.records import Verdict
from jepatlas.identifiability.preconditions.gaussianity import distance_from_gaussian, gaussian_null
from jepatlas.identifiability.preconditions.pairs import WhitePairs, beside, judge, quantiles
from jepatlas.identifiability.preconditions.sliced import GroupDistance, SlicedFeatures

__all__ = ["gaussianity", "stationarity"]

DISTANCE = 0.05  # that matters


def stationarity(pairs: WhitePairs) -> Verdict:
    """Distance between the distributions of h and h'; exchanging the views of a group turns the sign of its gap."""
    features = SlicedFeatures(pairs.h.shape[1], pairs.rng("slices"))
    distance = GroupDistance(features(pairs.h) - features(pairs.h_next), pairs.labels)
    null = quantiles(distance(sign) for sign in pairs.signs("stationarity null"))
    return judge(
        "stationarity",
        pairs.estimate("stationarity", distance),
        null,
        beside(null, DISTANCE),
        (
            "Both views of a pair are distributed alike.",
            "The second view is distributed otherwise than the first: draw pairs from the middle of "
            "longer episodes, or "
            "let the process settle.",
        ),
    )


def gaussianity(pairs: WhitePairs) -> Verdict:
    """Distance of the whitened latents from N(0, I), and of Gaussian samples that were whitened likewise."""
    distance = distance_from_gaussian(pairs.h, pairs.labels, pairs.seed)
    null = gaussian_null(distance.effective_rows, pairs.h.shape[1], pairs.seed)
    return judge(
        "gaussianity",
        pairs.estimate("gaussianity", distance),
        null,
        beside(null, DISTANCE),
        (
            "The latents look Gaussian in every direction tried.",
            "The latents are not Gaussian, and linear identifiability is proven for Gaussian worlds "
            "only: expect recovery "
            "up to a monotone warp at best, or explore more isotropically.",
        ),
    )
