"""What is asked further where a certificate finds latents short of directions, or warped."""

from __future__ import annotations

import numpy as np

from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.dimension.minimal import minimal_recovery
from jepatlas.identifiability.dimension.rank import principal_axes, varying_coordinates
from jepatlas.identifiability.truth.halves import Halves
from jepatlas.identifiability.truth.recovery import recovery
from jepatlas.identifiability.warps.sides import fit_sides
from jepatlas.identifiability.warps.warp_recovery import warp_recovery

__all__ = ["unwarped_verdicts", "varying_verdicts"]


def varying_verdicts(halves: Halves, h_next: np.ndarray, seed: int, replicates: int) -> list[Verdict]:
    """Where some directions do not vary: have coordinates faded or only been combined, and is the state in the rest?"""
    axes, width = principal_axes(halves.h, h_next), halves.h.shape[1]
    if not 0 < len(axes.values) < width:
        return []
    scores = minimal_recovery(
        halves.h,
        axes.whitener,
        halves.z,
        halves.split,
        numpy_generator(seed, "varying"),
        groups=halves.groups,
        replicates=replicates,
    )
    good = "R² of the state from the latent directions that vary, by least squares."
    return [
        varying_coordinates(axes, len(h_next)),
        Verdict.judge("r2_varying", scores["r2_minimal"], direction="higher", good=good),
    ]


def unwarped_verdicts(halves: Halves, white: LinearMap, seed: int, replicates: int) -> list[Verdict]:
    """After one warp, shared by all coordinates, is undone: how much of the state there is, and what still leans."""
    h, z, split, groups = halves.h, halves.z, halves.split, halves.groups
    fits = fit_sides(h[split.fit], z[split.fit], white)
    found = warp_recovery(
        h, z, split, numpy_generator(seed, "unwarped"), fits=fits, groups=groups, replicates=replicates
    )
    left = recovery(
        *fits.straightened(h, z), split, numpy_generator(seed, "straightened"), groups=groups, replicates=replicates
    )
    said = {
        "r2_unwarped": f"R² of the state with one warp, shared by all coordinates of the {fits.better}, undone: the "
        "better of the two forms.",
        "r2_unwarped_states": "R² of the state from whitened latents with one warp of the states' coordinates undone, "
        "h = Qw(z) (fit_warp).",
        "r2_unwarped_latents": "R² of the state with one warp of the latents' own coordinates undone, h = w(Qz) "
        "(fit_latent_warp).",
    }
    return [
        *(Verdict.judge(name, found[name], direction="higher", good=good) for name, good in said.items()),
        Verdict.judge(
            "stretch_unwarped",
            left["stretch"],
            direction="lower",
            good="How much more than others the linear map that is left then stretches some directions.",
        ),
    ]
