"""What is asked further where a certificate finds latents short of directions, or warped."""

from __future__ import annotations

import numpy as np

from jepatlas.base.records import Verdict
from jepatlas.base.seeding import numpy_generator
from jepatlas.identify.dimension.minimal import minimal_recovery
from jepatlas.identify.dimension.rank import principal_axes, varying_coordinates
from jepatlas.identify.truth.halves import Halves
from jepatlas.identify.warps.warp_recovery import warp_recovery

__all__ = ["unwarped", "varying_verdicts"]


def varying_verdicts(halves: Halves, h_next: np.ndarray, seed: int, replicates: int) -> list[Verdict]:
    """Where some directions do not vary: have coordinates faded or only been combined, and is the state in the rest?"""
    axes, width = principal_axes(halves.h, h_next), halves.h.shape[1]
    if not 0 < len(axes.values) < width:
        return []
    scores = minimal_recovery(halves.h, axes.whitener, halves.z, halves.split, numpy_generator(seed, "varying"),
                              groups=halves.groups, replicates=replicates)  # fmt: skip
    good = "R² of the state from the latent directions that vary, by least squares."
    return [
        varying_coordinates(axes, len(h_next)),
        Verdict.judge("r2_varying", scores["r2_minimal"], direction="higher", good=good),
    ]


def unwarped(halves: Halves, seed: int, replicates: int) -> Verdict:
    """`r2_unwarped`: of whitened latents, after a rotation and one warp shared by all coordinates are undone."""
    found = warp_recovery(halves.h, halves.z, halves.split, numpy_generator(seed, "unwarped"), groups=halves.groups,
                          replicates=replicates)  # fmt: skip
    return Verdict.judge(
        "r2_unwarped", found["r2_unwarped"], direction="higher",
        good="R² of the state from the whitened latents, with one warp, shared by all coordinates, undone (fit_warp).",
    )  # fmt: skip
