"""Dimension mismatch: have the latents more dimensions than the state (m > n), or fewer (m < n)? As verdicts.

From pairs (h, h') alone, m > n is seen: what repeats, and what is a function of the rest (`redundancy.py`). m < n is
not: whatever h has lost leaves no trace in it. It is seen where observations x are given, whose own spectrum has more
directions, or the truth z (`captured.py`).
"""

from __future__ import annotations

import numpy as np

from jepatlas.base.errors import InputError
from jepatlas.base.linear import hold_out
from jepatlas.base.records import Estimate, Verdict
from jepatlas.base.seeding import numpy_generator
from jepatlas.identify.captured import captured
from jepatlas.identify.captured_verdicts import captured_verdicts
from jepatlas.identify.checks import check_matrices, check_same_shape
from jepatlas.identify.ladder import Ladder
from jepatlas.identify.minimal import minimal_recovery
from jepatlas.identify.redundancy import FLOOR, Redundancy, redundancy
from jepatlas.identify.solver import SpectrumSettings
from jepatlas.identify.spectrum import spectrum

__all__ = ["dimension_verdicts"]


def dimension_verdicts(
    h: np.ndarray,
    h_next: np.ndarray,
    z: np.ndarray | None = None,
    x: np.ndarray | None = None,
    x_next: np.ndarray | None = None,
    *,
    dim: int | None = None,
    groups: np.ndarray | None = None,
    floor: float = FLOOR,
    settings: SpectrumSettings | None = None,
    seed: int = 0,
    replicates: int = 500,
) -> list[Verdict]:
    """Verdicts on latents h and those of the paired views (b, m), with true states z or observations x where known.

    linear_rank          latents that are linearly independent, of m
    state_directions     directions that generate them, of those
    missing_directions   directions of the world that the latents have not, as far as z, or else x, tells
    captured             share of the state's least held direction; names what is lost      (z)
    superposition        state directions that h holds beyond its own number                (z)
    minimal_r2_lost      what the minimal subspace lacks of the state against all of h      (z)

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 3000, 3))
    >>> z_next = 0.9 * z + np.sqrt(1 - 0.9**2) * noise
    >>> quick = SpectrumSettings(features=64, replicates=50)
    >>> verdicts = dimension_verdicts(z[:, :2], z_next[:, :2], z, settings=quick, replicates=50)
    >>> next(verdict.advice for verdict in verdicts if verdict.passed is False)
    'The latents hold 2 of the 3 directions of the state, in whatever form. Lost, or held in part: z3.'
    """
    given = {"h": h, "h_next": h_next, "z": z, "x": x, "x_next": x_next}
    check_matrices(groups, **{name: array for name, array in given.items() if array is not None})
    check_same_shape(h=h, h_next=h_next)
    if (x is None) != (x_next is None):
        raise InputError("'x' and 'x_next' go together: give the observations of both views, or of neither.")
    found = redundancy(h, h_next, dim=dim, groups=groups, floor=floor, settings=settings, seed=seed)
    verdicts = [_linear_rank(found, h.shape[1]), _state_directions(found, len(h))]
    if z is not None:
        split = hold_out(len(h), numpy_generator(seed, "dimension/split"), groups=groups)
        options = {"groups": groups, "replicates": replicates}
        held = captured(h, z, split, numpy_generator(seed, "dimension/captured"), **options)
        minimal = minimal_recovery(h, found.minimal, z, split, numpy_generator(seed, "dimension/minimal"), **options)
        return verdicts + captured_verdicts(held, minimal, h.shape[1])
    if x is not None and x_next is not None:
        world = spectrum(x, x_next, groups=groups, settings=settings, seed=seed).ladder
        return [*verdicts, _missing(world, found, len(x))]
    return [*verdicts, _unseen(len(h))]


def _linear_rank(found: Redundancy, m: int) -> Verdict:
    rank = found.rank
    return Verdict.judge(
        "linear_rank", rank, direction="higher", threshold=m,
        good=f"All {m} latents are linearly independent.",
        bad=f"Only {rank.value:.0f} of {m} latents are linearly independent: the others repeat them or do not vary.",
    )  # fmt: skip


def _state_directions(found: Redundancy, rows: int) -> Verdict:
    rank, n = int(found.rank.value), found.dim
    if n is None:
        return _unknown("state_directions", rows, f"It is not decided how many there are. {found.ladder.advice}")
    rates = ", ".join(f"{rate.value:.3f}" for rate in found.rates)
    if n > rank:
        advice = f"{n} directions are folded into {rank} latents: a linear map finds no more than {rank} of them."
        return Verdict.judge(
            "state_directions", _count(n, rows), direction="lower", threshold=rank, good="", bad=advice
        )
    return Verdict.judge(
        "state_directions", _count(n, rows), direction="higher", threshold=rank,
        good=f"{n} directions generate the latents, with correlations {rates}: none is a function of the others.",
        bad=f"{rank - n} of {rank} independent latents are functions of the other directions: {n} generate them all, "
            f"with correlations {rates} (none below {found.ladder.reach:.2f} was looked for). The minimal subspace has "
            f"these alone; or train with {n} latents.",
    )  # fmt: skip


def _missing(world: Ladder, found: Redundancy, rows: int) -> Verdict:
    """The ladder of the observations against what the latents have."""
    held = int(found.rank.value) if found.dim is None else found.dim
    if world.dim is None:
        advice = f"It is not decided how many directions the observations have. {world.advice}"
        return _unknown("missing_directions", rows, advice)
    count = max(world.dim - held, 0)
    seen = f"The observations show {world.dim} directions with ρ above {world.reach:.2f}, and the latents hold {held}"
    return Verdict.judge(
        "missing_directions", _count(count, rows), direction="lower", threshold=0.0, good=f"{seen}.",
        bad=f"{seen}: {count} are missing. Train with more latents; which ones, only true states z can tell.",
    )  # fmt: skip


def _unseen(rows: int) -> Verdict:
    return _unknown(
        "missing_directions", rows,
        "Whether the world has more dimensions than these latents hold cannot be seen in the latents: what was lost "
        "leaves no trace. Give the observations x and x_next, or the true states z.",
    )  # fmt: skip


def _unknown(name: str, rows: int, advice: str) -> Verdict:
    return Verdict.judge(name, _count(np.nan, rows), direction="lower", good=advice)


def _count(value: float, rows: int) -> Estimate:
    """A count that was decided as a whole has no interval of its own."""
    return Estimate(float(value), float(value), float(value), rows)
