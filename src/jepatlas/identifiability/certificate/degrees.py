"""Hermite degrees of latents, for a certificate: which share of their variance is of degree 1, 2, 3, … in the state.

A rotation has all of it at degree 1. By Mehler's formula degree d keeps ρ^d of its correlation, so these shares are
what the alignment loss sees of a map. They mean something for Gaussian states only, and need a basis that the rows can
support: where either fails, the verdict is undefined and says why.
"""

from __future__ import annotations

import math

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import whitener
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.preconditions.gaussianity import distance_from_gaussian
from jepatlas.identifiability.theory.hermite import degree_variances, largest_degree
from jepatlas.identifiability.truth.halves import Halves

__all__ = ["degree_verdicts"]

HIGHEST, TERMS, ROWS = 5, 200, 4000
NOT_GAUSSIAN = 0.05
"""Sliced distance from N(0, I) from which states do not count as Gaussian."""


def degree_verdicts(halves: Halves, seed: int, replicates: int = 500) -> list[Verdict]:
    """`degree_1` … and `degree_beyond`: shares of the latents' variance; or `degree_1` alone, undefined."""
    some = halves.some(ROWS, numpy_generator(seed, "degrees/rows"))
    z, spread = whitener(some.z).apply(some.z), float(np.trace(np.atleast_2d(np.cov(some.h, rowvar=False))))
    labels = np.arange(len(z)) if some.groups is None else np.unique(some.groups, return_inverse=True)[1]
    degree = _degree(z.shape[1], len(z), int(labels.max()) + 1)
    if reason := _obstacle(z, labels, degree, spread, seed):
        return [_undefined(f"{reason}.", len(z))]
    h, rng = some.h / math.sqrt(spread), numpy_generator(seed, "degrees")
    try:
        found = degree_variances(h, z, degree, rng, groups=some.groups, replicates=replicates)
    except InputError as refusal:  # groups too uneven, or too few distinct states
        return [_undefined(str(refusal), len(z))]
    names = {f"degree_{d}": f"of degree {d} in the state" for d in range(1, degree + 1)}
    names |= {"beyond": f"of degrees above {degree}, or no function of the state"}
    return [
        Verdict.judge(
            name if name != "beyond" else "degree_beyond",
            found[name],
            direction="higher" if name == "degree_1" else "lower",
            good=f"Share of the latents' variance that is {what}.",
        )
        for name, what in names.items()
    ]


def _undefined(reason: str, rows: int) -> Verdict:
    estimate = Estimate(math.nan, math.nan, math.nan, rows)
    return Verdict.judge("degree_1", estimate, direction="higher", good=f"Not computed: {reason}")


def _degree(n: int, rows: int, groups: int) -> int:
    """As high as rows and patience allow; thirds of whole groups may be uneven."""
    supported = largest_degree(n, rows if groups == rows else rows // 2)
    affordable = max(d for d in range(1, HIGHEST + 1) if d == 1 or math.comb(n + d, d) <= TERMS)
    return min(supported, affordable) if groups >= 3 else 0


def _obstacle(z: np.ndarray, labels: np.ndarray, degree: int, spread: float, seed: int) -> str:
    """Why there are no degrees to speak of; empty where there are."""
    if degree < 2:
        return f"{len(z)} rows in {z.shape[1]} dimensions do not support polynomials of degree 2"
    if not spread > 0:
        return "the latents do not vary"
    if not z.std(0).all():
        return "the states do not vary in every direction"
    distance = distance_from_gaussian(z, labels, seed)(np.ones(len(z)))
    limit = max(NOT_GAUSSIAN, 1 / math.sqrt(labels.max() + 1))  # twice the null's 99% quantile, or more
    return f"the states are not Gaussian (distance {distance:.2f})" if distance > limit else ""
