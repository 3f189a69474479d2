"""What a certificate says where latents and states differ in number (m ≠ n), from what it has at hand already.

m > n    state_directions, minimal_r2_lost    what is a function of the rest, and whether the rest is the state
m < n    captured, superposition              which part of the state is held, and whether more is squeezed in
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.records import Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.dimension.captured import captured_of
from jepatlas.identifiability.dimension.captured_verdicts import captured_verdicts
from jepatlas.identifiability.dimension.own_ladder import OwnLadder, some_pairs
from jepatlas.identifiability.dimension.redundancy import redundancy
from jepatlas.identifiability.dimension.redundancy_verdicts import minimal_r2_lost, state_directions, undecided
from jepatlas.identifiability.spectral.solver import SpectrumSettings
from jepatlas.identifiability.truth.explained import Explained
from jepatlas.identifiability.truth.halves import Halves

__all__ = ["narrow_verdicts", "wide_verdicts"]


def narrow_verdicts(explained: Explained, seed: int, replicates: int) -> list[Verdict]:
    """m < n."""
    rng = numpy_generator(seed, "dimension/captured")
    held = captured_of(explained.halves, explained.decoded, rng, replicates)
    return captured_verdicts(held, explained.halves.h.shape[1])


def wide_verdicts(halves: Halves, h_next: np.ndarray, own: OwnLadder, seed: int, replicates: int) -> list[Verdict]:
    """m > n, from the ladder of the latents; on no more pairs than that was read from."""
    if own.found is None:
        return [undecided("state_directions", len(h_next), own.sentence)]
    kept = some_pairs(len(h_next), seed)
    groups = None if halves.groups is None else halves.groups[kept]
    settings = SpectrumSettings(replicates=replicates)
    found = redundancy(
        halves.h[kept], h_next[kept], groups=groups, ladder=own.found.ladder, settings=settings, seed=seed
    )
    return [state_directions(found, len(kept)), minimal_r2_lost(halves, found, seed, replicates)]
