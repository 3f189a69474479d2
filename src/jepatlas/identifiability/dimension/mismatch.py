"""Dimension mismatch: more latents than state dimensions (m > n), or fewer (m < n), as verdicts.

From pairs (h, h') alone, m > n can be detected: repeated latents, and functions of the others (`redundancy.py`). m < n
cannot, because what h has lost leaves no trace in it. It is detected with observations x, whose spectrum has more
directions, or with the true state z (`captured.py`).
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import hold_out
from jepatlas.core.records import Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.composition import Explained
from jepatlas.identifiability.dimension.captured import MAX_ROWS, captured_from, captured_verdicts, coverage
from jepatlas.identifiability.dimension.rank import FLOOR, effective_rank
from jepatlas.identifiability.dimension.redundancy import (
    minimal_r2_lost,
    missing_directions,
    redundancy,
    state_directions,
    undecided,
)
from jepatlas.identifiability.regressions import decode
from jepatlas.identifiability.resampling import Halves
from jepatlas.identifiability.spectral.pair_ladder import PairLadder, ladder_rows
from jepatlas.identifiability.spectral.solver import SpectrumSettings
from jepatlas.identifiability.spectral.spectrum import spectrum
from jepatlas.identifiability.validation import check_matrices, check_same_shape

__all__ = ["dimension_verdicts", "narrow_verdicts", "wide_verdicts"]

NO_OBSERVATIONS = (
    "Undecided: whether the world has more dimensions than the latents cannot be seen in the latents alone. Give the "
    "observations x and x_next, or the true states z."
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
    """Verdicts on the latents h and h_next of paired views (b, m), with true states z or observations x if available.

    effective_rank       linearly independent latents, of m
    state_directions     directions that generate them, of those
    coverage             state directions that some function of the latents recovers            (z)
    captured             linear share of the least captured state direction; names the missing  (z)
    superposition        state directions in h beyond its own number                            (z)
    minimal_r2_lost      R² that the minimal subspace loses relative to all of h                (z)
    missing_directions   directions of the observations that the latents lack                   (x)

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
        raise InputError("'x' and 'x_next' must be given together, or neither.")
    found = redundancy(h, h_next, dim=dim, groups=groups, floor=floor, settings=settings, seed=seed)
    verdicts = [effective_rank(h, h_next, found.rank), state_directions(found, len(h))]
    if z is not None:
        split = hold_out(len(h), numpy_generator(seed, "dimension/split"), groups=groups)
        halves = Halves(h.astype(np.float64), z.astype(np.float64), split, groups)
        rng = numpy_generator(seed, "dimension/captured")
        some = halves.subsampled(MAX_ROWS, rng)
        decoded = decode(some, rng)
        held = captured_from(some, decoded, rng, replicates)
        verdicts.append(coverage(some, decoded, rng, replicates))
        verdicts += captured_verdicts(held, some.h.shape[1])
        verdicts.append(minimal_r2_lost(halves, found, seed, replicates))
    elif x is not None and x_next is not None:
        world = spectrum(x, x_next, groups=groups, settings=settings, seed=seed).ladder
        verdicts.append(missing_directions(world, found, len(x)))
    else:
        verdicts.append(undecided("missing_directions", len(h), NO_OBSERVATIONS))
    return verdicts


def narrow_verdicts(explained: Explained, seed: int, replicates: int) -> list[Verdict]:
    """`captured` and `superposition` of a certificate with fewer latents than states."""
    rng = numpy_generator(seed, "dimension/captured")
    held = captured_from(explained.halves, explained.decoded, rng, replicates)
    return captured_verdicts(held, explained.halves.h.shape[1])


def wide_verdicts(halves: Halves, h_next: np.ndarray, pairs: PairLadder, seed: int, replicates: int) -> list[Verdict]:
    """`state_directions` and `minimal_r2_lost` of a certificate with more latents than states."""
    if pairs.spectrum is None:
        return [undecided("state_directions", len(h_next), pairs.sentence)]
    kept = ladder_rows(len(h_next), seed)
    groups = None if halves.groups is None else halves.groups[kept]
    settings = SpectrumSettings(replicates=replicates)
    ladder = pairs.spectrum.ladder
    found = redundancy(halves.h[kept], h_next[kept], groups=groups, ladder=ladder, settings=settings, seed=seed)
    return [state_directions(found, len(kept)), minimal_r2_lost(halves, found, seed, replicates)]
