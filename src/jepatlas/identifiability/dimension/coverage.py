"""Coverage: how many directions of the state are in the latents at all, in whatever form."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jepatlas.core.records import Verdict
from jepatlas.identifiability.dimension.state_directions import StateDirections
from jepatlas.identifiability.truth.halves import Halves

__all__ = ["coverage"]

FOUND = 0.2
"""Share of a direction's variance that must be recovered for it to count as found."""


def coverage(
    halves: Halves, decoded: Mapping[str, np.ndarray], rng: np.random.Generator, replicates: int = 500
) -> Verdict:
    """The number of directions of the state that some function of the latents finds, against all that vary.

    `decoded` is z from h by each family of maps, as `decode` gives it.
    """
    directions, count = StateDirections(halves, decoded["any"]), "coverage"
    dim = len(directions.rows)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {count: float((directions.shares(weights) >= FOUND).sum())}

    found = halves.estimates(statistic, rng, replicates)[count]
    lost = directions.shares() < FOUND
    return Verdict.judge(
        count,
        found,
        direction="higher",
        threshold=dim,
        good="Every direction of the state can be found in the latents.",
        bad=f"Of {dim} directions of the state only {found.value:.0f} can be found in the latents, by any function "
        f"that was tried{_named(directions, lost)}.",
    )


def _named(directions: StateDirections, lost: np.ndarray) -> str:
    if lost.all() or not lost.any():
        return ""
    names = directions.coordinates(lost)
    return f"; {', '.join(names)} cannot" if len(names) == lost.sum() else "; the rest is mixed of several coordinates"
