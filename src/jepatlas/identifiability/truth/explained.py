"""Latents and states, each predicted from the other by every family of maps in `regressions.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.records import Verdict
from jepatlas.core.stats import explained_share
from jepatlas.identifiability.truth.halves import Halves
from jepatlas.identifiability.truth.regressions import fit_families
from jepatlas.identifiability.truth.unmixing import unmix

__all__ = ["Explained", "decode", "explain", "nonlinear_r2"]

ROWS, ROWS_PER_DIMENSION = 3000, 20
"""As many rows of each half are enough to tell shares of a hundredth."""
AXES = 0.9
"""Share of what a linear map leaves from which curves along axes explain it, and no other axes are looked for."""


@dataclass(frozen=True)
class Explained:
    """Predictions by each family, fitted on one half: of h from z, of z from h, and of z from h unmixed.

    The last only where neither the axes of the state nor those of the latents explain what is not linear.
    """

    halves: Halves
    encoded: dict[str, np.ndarray]  # (b, d) each
    decoded: dict[str, np.ndarray]  # (b, n) each
    unmixed: dict[str, np.ndarray] | None = None  # (b, n) each

    def gain(self, y: np.ndarray, found: Mapping[str, np.ndarray]) -> float:
        """The share of what a linear map leaves of y that curves along axes explain."""
        score = self.halves.split.score
        left, curved = (np.square(y[score] - found[family][score]).sum() for family in ("linear", "additive"))
        return float(1 - curved / left) if left > 0 else 0.0


def explain(halves: Halves, rng: np.random.Generator) -> Explained:
    """From some of the rows."""
    some = halves.some(max(ROWS, ROWS_PER_DIMENSION * max(halves.h.shape[1], halves.z.shape[1])), rng)
    decoded = decode(some, rng)
    plain = Explained(some, fit_families(some.z / _units(some), some.h, some.split.fit, rng, some.groups), decoded)
    along = max(plain.gain(some.h, plain.encoded), plain.gain(some.z, decoded))
    if along > AXES or _linear(some, decoded) or some.h.shape[1] != some.z.shape[1]:
        return plain
    turned = replace(some, h=unmix(some.h, some.split.fit, rng))
    return replace(plain, unmixed=decode(turned, rng))


def decode(halves: Halves, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """z from h on all rows, by each family."""
    units = _units(halves)
    found = fit_families(halves.h, halves.z / units, halves.split.fit, rng, halves.groups)
    return {family: z * units for family, z in found.items()}


def _linear(halves: Halves, decoded: Mapping[str, np.ndarray]) -> bool:
    """Whether no richer family was tried."""
    fit = halves.split.fit
    return np.array_equal(decoded["linear"][fit], decoded["any"][fit])


def _units(halves: Halves) -> np.ndarray:
    """Standard deviations of the states, so that no coordinate is neglected for its units."""
    spread = halves.z[halves.split.fit].std(0)
    return np.where(spread > 0, spread, 1.0)


def nonlinear_r2(explained: Explained, rng: np.random.Generator, replicates: int = 500) -> Verdict:
    """`r2_nonlinear`, beside r2: what any function of the latents that was tried recovers of the state."""
    halves = explained.halves
    z = halves.z[halves.split.score]
    left = np.square(z - explained.decoded["any"][halves.split.score]).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        around = np.square(z - weights @ z / weights.sum()).sum(1)
        return {"r2_nonlinear": explained_share(weights @ left, weights @ around)}

    return Verdict.judge(
        "r2_nonlinear",
        halves.estimates(statistic, rng, replicates)["r2_nonlinear"],
        direction="higher",
        good="The same by the best nonlinear function of the latents that was tried: what is there, in whatever form.",
    )
