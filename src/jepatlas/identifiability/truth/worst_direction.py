"""The direction that suffers most: its own share of variance that is not linear, and its own that is noise.

    max_v E(v·e)² / Var(v·y)        e: what a part of `composition.py` adds to y, in the frame that is read there

Shares of the whole variance are diluted by the coordinates that are sound: one cube among 24 is 1.7% of all, but 40% of
its own direction. v is found on the rows of the fit and its share taken on others, so that many directions and few rows
do not make one look worse than it is.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.linear import whitener
from jepatlas.core.records import Verdict
from jepatlas.identifiability.truth.composition import frame
from jepatlas.identifiability.truth.explained import Explained

__all__ = ["worst_direction"]

MEANING = {"nonlinear": "not linear, but some function that was tried", "noise": "no function that was tried"}


def worst_direction(
    explained: Explained, rng: np.random.Generator, *, complete: bool, replicates: int = 500
) -> list[Verdict]:
    """Verdicts `worst_nonlinear` and `worst_noise`, which inform; `complete` says that all of z is in h."""
    halves = explained.halves
    fit, score = halves.split
    _, y, found = frame(explained, complete)
    white, parts = whitener(y[fit]), {"nonlinear": found["any"] - found["linear"], "noise": y - found["any"]}
    along, whole = {}, {}
    for name, part in parts.items():
        direction = white.weight @ _principal(part[fit] @ white.weight.T)
        along[name], whole[name] = part[score] @ direction, (y[score] - white.x_mean) @ direction

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {f"worst_{name}": _share(along[name], whole[name], weights) for name in parts}

    estimates = halves.estimates(statistic, rng, replicates)
    return [
        Verdict.judge(
            f"worst_{name}",
            estimates[f"worst_{name}"],
            direction="lower",
            good=f"Share of its own variance that is {what}, of the direction where it is largest.",
        )
        for name, what in MEANING.items()
    ]


def _principal(rows: np.ndarray) -> np.ndarray:
    return np.linalg.eigh(rows.T @ rows)[1][:, -1]


def _share(part: np.ndarray, whole: np.ndarray, weights: np.ndarray) -> float:
    """0 where the direction does not vary: nothing is known of it."""
    mean = weights @ whole / weights.sum()
    total = float(weights @ np.square(whole - mean))
    return float(weights @ np.square(part)) / total if total > 0 else 0.0
