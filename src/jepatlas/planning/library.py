"""A path decoded by nearest neighbours: each of its points is replaced by the latent in a library that is nearest.

A library is what was observed: latents, and where steps are known what was done and what came of it. The fewer it has
the further its nearest row is, so whatever is read off a decoded path must be read beside the library's size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from jepatlas.core.contracts import Cost
from jepatlas.core.errors import InputError
from jepatlas.core.records import Plan
from jepatlas.planning.bounds import ActionBox
from jepatlas.planning.checks import latents
from jepatlas.planning.scoring import first_guess, plan_of
from jepatlas.planning.straight_line import waypoints

__all__ = ["Library", "LibraryLine", "nearest_rows"]

TILE_NUMBERS = 2**22  # points · rows of a tile of distances


def nearest_rows(points: Tensor, library: Tensor) -> Tensor:
    """The nearest row of the library for each point, (..., d), (m, d) → (...), a tile of points at a time."""
    if library.ndim != 2 or not len(library) or library.shape[1] != points.shape[-1]:
        raise InputError(
            f"A library for points of width {points.shape[-1]} has the shape (rows, {points.shape[-1]}) "
            f"and at least one row, but {tuple(library.shape)} was given."
        )
    flat = points.reshape(-1, points.shape[-1])
    tiles = flat.split(max(1, TILE_NUMBERS // len(library)))
    return torch.cat([torch.cdist(tile, library).argmin(1) for tile in tiles]).view(points.shape[:-1])


@dataclass(frozen=True, eq=False)
class Library:
    """Observed steps: latents, actions, and the latents they led to, row by row."""

    h: Tensor  # (m, d)
    u: Tensor  # (m, a)
    h_next: Tensor  # (m, d)

    def __post_init__(self) -> None:
        if self.h.shape != self.h_next.shape or self.h.ndim != 2 or self.u.ndim != 2 or len(self.u) != len(self.h):
            shapes = ", ".join(str(tuple(part.shape)) for part in (self.h, self.u, self.h_next))
            raise InputError(f"A library has h (m, d), u (m, a) and h_next (m, d), but shapes {shapes} were given.")

    def actions(self, path: Tensor) -> Tensor:
        """What was done where a step was most like each step of the path, (b, t + 1, d) → (b, t, a)."""
        steps = torch.cat([path[:, :-1], path[:, 1:]], dim=-1)
        return self.u[nearest_rows(steps, torch.cat([self.h, self.h_next], dim=-1))]


@dataclass(frozen=True, eq=False)
class LibraryLine:
    """A planner: the straight line in latent, by the actions of the nearest observed steps; no dynamics are asked."""

    library: Library
    box: ActionBox
    horizon: int = 16

    @torch.no_grad()
    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        start, goal = latents(info)
        first_guess(info, self.box, self.horizon, warm)  # refuses a warm start of another shape, as its siblings do
        actions = self.library.actions(waypoints(start, goal, self.horizon))
        return plan_of(cost, info, self.box.clamp(actions.to(start)))
