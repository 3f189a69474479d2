"""Redundancy, judged: how many directions generate the latents, and whether these few hold all that the latents do."""

from __future__ import annotations

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.dimension.minimal import minimal_recovery
from jepatlas.identifiability.dimension.redundancy import Redundancy
from jepatlas.identifiability.spectral.ladder import Ladder
from jepatlas.identifiability.truth.halves import Halves

__all__ = ["minimal_r2_lost", "missing_directions", "state_directions", "undecided"]

LOST = 0.02
"""R² that the minimal subspace may lose against all latents and still count as all there is."""


def state_directions(found: Redundancy, rows: int) -> Verdict:
    """Directions that generate the latents, against those that are linearly independent."""
    width, rank, n = len(found.minimal.x_mean), int(found.rank.value), found.dim
    if n is None:
        return undecided("state_directions", rows, f"It is not decided how many there are. {found.ladder.advice}")
    if n > rank:
        advice = f"{n} directions are folded into {rank} latents: a linear map finds no more than {rank} of them."
        return Verdict.judge(
            "state_directions", _count(n, rows), direction="lower", threshold=rank, good="", bad=advice
        )
    rates = ", ".join(f"{rate.value:.3f}" for rate in found.rates)
    return Verdict.judge(
        "state_directions",
        _count(n, rows),
        direction="higher",
        threshold=rank,
        good=f"{n} directions generate the latents, with correlations {rates}: none is a function of the others."
        if rank == width
        else f"{n} directions generate all {width} latents, which are linear combinations of them; their correlations: "
        f"{rates}.",
        bad=f"{_others(found, rank - n, rank)} The correlations of these {n}: {rates} (none below "
        f"{found.ladder.reach:.2f} was looked for). The minimal subspace has them alone; or train with {n} "
        "latents.",
    )


def _others(found: Redundancy, count: int, rank: int) -> str:
    """What the latents are that are no directions of their own, as far as the ladder of linear functions tells."""
    kinds = [step.kind for step in found.linear.steps]
    if kinds.count("harmonic") == count:
        return f"{count} of {rank} independent latents are functions of the other directions, which generate them all."
    fast = f"keep less than {found.ladder.reach:.2f} over a pair, as noise and rough functions do"
    if kinds.count("unread") == count:
        return f"{count} of {rank} independent latents {fast}; {rank - count} directions are slower."
    return f"{count} of {rank} independent latents are functions of the other directions, or {fast}."


def minimal_r2_lost(halves: Halves, found: Redundancy, seed: int, replicates: int) -> Verdict:
    """What the minimal subspace lacks of the state."""
    rng = numpy_generator(seed, "dimension/minimal")
    scores = minimal_recovery(
        halves.h, found.minimal, halves.z, halves.split, rng, groups=halves.groups, replicates=replicates
    )
    few, every = scores["r2_minimal"].value, scores["r2"].value
    return Verdict.judge(
        "minimal_r2_lost",
        scores["r2_lost"],
        direction="lower",
        threshold=LOST,
        good=f"The minimal subspace gives the state as well as all latents do: R² {few:.3f} of {every:.3f}.",
        bad=f"All latents together give the state with R² {every:.3f}, the minimal subspace with {few:.3f}: some of it "
        "is held in bent form only, or the ladder was misread.",
    )


def missing_directions(world: Ladder, found: Redundancy, rows: int) -> Verdict:
    """The ladder of the observations against what the latents have."""
    held = int(found.rank.value) if found.dim is None else found.dim
    if world.dim is None:
        advice = f"It is not decided how many directions the observations have. {world.advice}"
        return undecided("missing_directions", rows, advice)
    count = max(world.dim - held, 0)
    seen = f"The observations show {world.dim} directions with ρ above {world.reach:.2f}, and the latents hold {held}"
    return Verdict.judge(
        "missing_directions",
        _count(count, rows),
        direction="lower",
        threshold=0.0,
        good=f"{seen}.",
        bad=f"{seen}: {count} are missing. Train with more latents; which ones, only true states z can tell.",
    )


def undecided(name: str, rows: int, advice: str) -> Verdict:
    return Verdict.judge(name, _count(np.nan, rows), direction="lower", good=advice)


def _count(value: float, rows: int) -> Estimate:
    """A count that was decided as a whole has no interval of its own."""
    return Estimate(float(value), float(value), float(value), rows)
