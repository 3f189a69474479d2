"""Dimension mismatch: have the latents more dimensions than the state (m > n), or fewer (m < n)? As verdicts.

From pairs (h, h') alone, m > n is seen: what repeats, and what is a function of the rest (`redundancy.py`). m < n is
not: whatever h has lost leaves no trace in it. It is seen where observations x are given, whose own spectrum has more
directions, or the truth z (`captured.py`).
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import hold_out
from jepatlas.core.records import Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.checks import check_matrices, check_same_shape
from jepatlas.identifiability.dimension.captured import ROWS, captured_of
from jepatlas.identifiability.dimension.captured_verdicts import captured_verdicts
from jepatlas.identifiability.dimension.coverage import coverage
from jepatlas.identifiability.dimension.rank import FLOOR, effective_rank
from jepatlas.identifiability.dimension.redundancy import redundancy
from jepatlas.identifiability.dimension.redundancy_verdicts import (
    minimal_r2_lost,
    missing_directions,
    state_directions,
    undecided,
)
from jepatlas.identifiability.spectral.solver import SpectrumSettings
from jepatlas.identifiability.spectral.spectrum import spectrum
from jepatlas.identifiability.truth.explained import decode
from jepatlas.identifiability.truth.halves import Halves

__all__ = ["dimension_verdicts"]

UNSEEN = (
    "Whether the world has more dimensions than these latents hold cannot be seen in the latents: what was lost "
    "leaves no trace. Give the observations x and x_next, or the true states z."
)


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

    effective_rank       latents that are linearly independent, of m
    state_directions     directions that generate them, of those
    coverage             directions of the state that some function of the latents finds    (z)
    captured             share of the state's least held direction; names what is lost      (z)
    superposition        state directions that h holds beyond its own number                (z)
    minimal_r2_lost      what the minimal subspace lacks of the state against all of h      (z)
    missing_directions   directions of the world that the latents have not, as far as x tells

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 3000, 3))
    >>> z_next = 0.9 * z + np.sqrt(1 - 0.9**2) * noise
    >>> quick = SpectrumSettings(features=64, replicates=50)
    >>> verdicts = dimension_verdicts(z[:, :2], z_next[:, :2], z, settings=quick, replicates=50)
    >>> [verdict.name for verdict in verdicts if verdict.passed is False]
    ['coverage', 'captured']
    """
    given = {"h": h, "h_next": h_next, "z": z, "x": x, "x_next": x_next}
    check_matrices(groups, **{name: array for name, array in given.items() if array is not None})
    check_same_shape(h=h, h_next=h_next)
    if (x is None) != (x_next is None):
        raise InputError("'x' and 'x_next' go together: give the observations of both views, or of neither.")
    found = redundancy(h, h_next, dim=dim, groups=groups, floor=floor, settings=settings, seed=seed)
    verdicts = [effective_rank(h, h_next, found.rank), state_directions(found, len(h))]
    if z is not None:
        split = hold_out(len(h), numpy_generator(seed, "dimension/split"), groups=groups)
        halves = Halves(h.astype(np.float64), z.astype(np.float64), split, groups)
        return [*verdicts, *_held(halves, seed, replicates), minimal_r2_lost(halves, found, seed, replicates)]
    if x is None or x_next is None:
        return [*verdicts, undecided("missing_directions", len(h), UNSEEN)]
    world = spectrum(x, x_next, groups=groups, settings=settings, seed=seed).ladder
    return [*verdicts, missing_directions(world, found, len(x))]


def _held(halves: Halves, seed: int, replicates: int) -> list[Verdict]:
    """What the latents hold of the state, at all and linearly."""
    rng = numpy_generator(seed, "dimension/captured")
    some = halves.some(ROWS, rng)
    decoded = decode(some, rng)
    held = captured_of(some, decoded, rng, replicates)
    return [coverage(some, decoded, rng, replicates), *captured_verdicts(held, some.h.shape[1])]
