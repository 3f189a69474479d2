"""On which side a shared warp is: along the states' axes, h ≈ Q w(z), or along the latents' own, h ≈ w(Qz).

Both forms are fitted, and the one that leaves less of z on these rows is taken; other rows may then score it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from jepatlas.core.linear_map import LinearMap
from jepatlas.identifiability.warps.warp import LatentWarpFit, WarpFit, fit_latent_warp, fit_warp

__all__ = ["Side", "WarpSides", "fit_sides"]

Side = Literal["states", "latents"]


@dataclass(frozen=True)
class WarpSides:
    """Both fits, and which is the better. Latents are whitened for that of the states, where `white` is given."""

    states: WarpFit
    latents: LatentWarpFit | None  # None where the latents do not vary, or it is not asked for
    white: LinearMap | None
    better: Side

    @property
    def sides(self) -> tuple[Side, ...]:
        return ("states",) if self.latents is None else ("states", "latents")

    def whitened(self, h: np.ndarray) -> np.ndarray:
        return h if self.white is None else self.white.apply(h)

    def decode(self, h: np.ndarray, side: Side) -> np.ndarray:
        if side == "latents" and self.latents is not None:
            return self.latents.decode(h)
        return self.states.decode(self.whitened(h))

    def straightened(self, h: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Latents and states with the warp undone on the side where it is: what is left between them is linear."""
        if self.better == "latents" and self.latents is not None:
            return self.latents.unwarp(h), z
        return h, self.states.warp(z)


def fit_sides(h: np.ndarray, z: np.ndarray, white: LinearMap | None = None) -> WarpSides:
    """The warp on either side, fitted on all rows of latents h (b, d) and states z (b, n)."""
    states = fit_warp(h if white is None else white.apply(h), z)
    if (h == h.flat[0]).all():
        return WarpSides(states, None, white, "states")
    both = WarpSides(states, fit_latent_warp(h, z), white, "latents")
    left = {side: float(np.square(z - both.decode(h, side)).sum()) for side in both.sides}
    return both if left["latents"] < left["states"] else WarpSides(states, both.latents, white, "states")
