"""What latents are made of: shares of variance that are a linear map of the state, a warp, a shear, a bend, and noise.

    linear | warp | shear | bend | noise        gains in held-out R² from one family of `regressions.py` to the next

Two frames are looked at, because a curve along one's axes is none along the other's: latents as functions of the state,
h = Q w(z), and the state as a function of latents, for h = w(Qz). The frame whose axes explain more is the one to read;
where a part of the state is missing, only the first can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from jepatlas.base.records import Verdict
from jepatlas.identify.halves import Halves
from jepatlas.identify.regressions import FAMILIES, fit_families

__all__ = ["Explained", "composition", "explain", "nonlinear_r2"]

ROWS, ROWS_PER_DIMENSION = 3000, 20
"""As many rows of each half are enough to tell shares of a hundredth."""
CLEARLY = 0.05

MEANING = {
    "linear": "a linear map of the {x}",
    "warp": "curved along the axes of the {x}: each coordinate by a rising curve of its own",
    "shear": "one coordinate of the {x} bent into the direction of others",
    "bend": "a nonlinear mixture of coordinates of the {x}, neither a warp nor a shear",
    "noise": "no function of the {x} that was tried",
}


@dataclass(frozen=True)
class Explained:
    """Held-out predictions by each family: of h from z, and of z from h."""

    halves: Halves
    encoded: dict[str, np.ndarray]  # (b, d) each
    decoded: dict[str, np.ndarray]  # (b, n) each


def explain(halves: Halves, rng: np.random.Generator) -> Explained:
    widest = max(halves.h.shape[1], halves.z.shape[1])
    some = halves.some(max(ROWS, ROWS_PER_DIMENSION * widest), rng)
    h, (fit, _), groups = some.h, some.split, some.groups
    spread = some.z[fit].std(0)
    units = np.where(spread > 0, spread, 1.0)  # so that no coordinate is neglected for its units
    z = some.z / units
    decoded = {family: found * units for family, found in fit_families(h, z, fit, rng, groups).items()}
    return Explained(some, fit_families(z, h, fit, rng, groups), decoded)


def composition(
    explained: Explained, rng: np.random.Generator, *, complete: bool, replicates: int = 500
) -> list[Verdict]:
    """Verdicts `share_linear` … `share_noise`, which inform and sum to 1; `complete` says that all of z is in h."""
    halves = explained.halves
    score = halves.split.score
    frames = {"state": (halves.h, explained.encoded), "latents": (halves.z, explained.decoded)}
    gains = {x: _gain(y[score], found["linear"][score], found["additive"][score]) for x, (y, found) in frames.items()}
    x: Literal["state", "latents"] = "latents" if complete and gains["latents"] > gains["state"] + CLEARLY else "state"
    y, found = frames[x]
    left = np.stack([np.square(y[score] - found[family][score]).sum(1) for family in FAMILIES], axis=1)
    around = np.square(y[score] - y[score].mean(0)).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        total = float(weights @ around)
        reached = [0.0, *(1 - weights @ left / total if total > 0 else np.full(len(FAMILIES), np.nan))]
        reached = [*np.maximum.accumulate(reached), 1.0]  # a richer family is never worse, but for its noise
        return {share: float(after - before) for share, (before, after) in zip(MEANING, pairwise(reached), strict=True)}

    whole = "latents'" if x == "state" else "state's"
    return [
        Verdict.judge(f"share_{share}", estimate, direction="higher" if share == "linear" else "lower",
                      good=f"Share of the {whole} variance that is {MEANING[share].format(x=x)}.")
        for share, estimate in halves.estimates(statistic, rng, replicates).items()
    ]  # fmt: skip


def _gain(y: np.ndarray, linear: np.ndarray, additive: np.ndarray) -> float:
    """The share of what a linear map leaves that curves along axes explain."""
    left = np.square(y - linear).sum()
    return float(1 - np.square(y - additive).sum() / left) if left > 0 else 0.0


def nonlinear_r2(explained: Explained, rng: np.random.Generator, replicates: int = 500) -> Verdict:
    """`r2_nonlinear`, beside r2: what any function of the latents that was tried recovers of the state."""
    halves = explained.halves
    z = halves.z[halves.split.score]
    left = np.square(z - explained.decoded["any"][halves.split.score]).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        around = np.square(z - weights @ z / weights.sum()).sum(1)
        total = float(weights @ around)
        return {"r2_nonlinear": 1 - float(weights @ left) / total if total > 0 else float("nan")}

    return Verdict.judge(
        "r2_nonlinear", halves.estimates(statistic, rng, replicates)["r2_nonlinear"], direction="higher",
        good="The same by the best nonlinear function of the latents that was tried: what is there, in whatever form.",
    )  # fmt: skip
