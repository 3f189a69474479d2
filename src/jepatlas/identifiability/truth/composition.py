"""What latents are made of: shares of variance that are a linear map of the state, a warp, a shear, a bend, and noise.

    linear | warp | shear | bend | noise        gains in held-out R² from one family of `regressions.py` to the next

Several frames are looked at, because a curve along the axes of one is none along another's: latents as functions of the
state, h = Q w(z); the state as a function of latents, for h = w(Qz); and, where neither explains what is not linear, of
latents turned to independent axes (`unmixing.py`), for h = Q₂ w(Q₁z). The frame whose axes explain clearly more is the
one to read; where a part of the state is missing, only the first can be.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from jepatlas.core.records import Verdict
from jepatlas.identifiability.truth.explained import Explained
from jepatlas.identifiability.truth.regressions import FAMILIES

__all__ = ["composition", "frame"]

CLEARLY = 0.05
MOST = 0.5
"""Share of what is not linear that curves along axes nobody gave must explain, to be read at all."""

MEANING = {
    "linear": "a linear map of the {x}",
    "warp": "curved along the axes of the {x}: each coordinate by a rising curve of its own",
    "shear": "one coordinate of the {x} bent into the direction of others",
    "bend": "a nonlinear mixture of coordinates of the {x}, neither a warp nor a shear",
    "noise": "no function of the {x} that was tried",
}


def composition(
    explained: Explained, rng: np.random.Generator, *, complete: bool, replicates: int = 500
) -> list[Verdict]:
    """Verdicts `share_linear` … `share_noise`, which inform and sum to 1; `complete` says that all of z is in h."""
    halves = explained.halves
    score = halves.split.score
    x, y, found = frame(explained, complete)
    left = np.stack([np.square(y[score] - found[family][score]).sum(1) for family in FAMILIES], axis=1)
    around = np.square(y[score] - y[score].mean(0)).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        total = float(weights @ around)
        reached = [0.0, *(1 - weights @ left / total if total > 0 else np.full(len(FAMILIES), np.nan))]
        reached = [*np.maximum.accumulate(reached), 1.0]  # a richer family is never worse, but for its noise
        return {share: float(after - before) for share, (before, after) in zip(MEANING, pairwise(reached), strict=True)}

    whole = "latents'" if x == "state" else "state's"
    return [
        Verdict.judge(
            f"share_{share}",
            estimate,
            direction="higher" if share == "linear" else "lower",
            good=f"Share of the {whole} variance that is {MEANING[share].format(x=x)}.",
        )
        for share, estimate in halves.estimates(statistic, rng, replicates).items()
    ]


def frame(explained: Explained, complete: bool) -> tuple[str, np.ndarray, dict[str, np.ndarray]]:
    """What the function is of, what it is to give, and what it gives by each family."""
    h, z = explained.halves.h, explained.halves.z
    best, highest = ("state", h, explained.encoded), explained.gain(h, explained.encoded)
    for x, found, least in (("latents", explained.decoded, 0.0), ("latents, turned", explained.unmixed, MOST)):
        if complete and found is not None and (gain := explained.gain(z, found)) > max(highest + CLEARLY, least):
            best, highest = (x, z, found), gain
    return best
