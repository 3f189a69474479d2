"""Straight lines in latent space: waypoints, followed through dynamics or looked up in a library of observed steps.

    w_s = h + (s / t)(g − h)        u_s = argmin_u ‖h(u_1 … u_{s−1}, u) − w_s‖

The straight line is the shortest path where latents are the world's coordinates up to a rotation and there are no
obstacles. `StraightLine` finds each action by a random search that narrows around the best action so far; the cost
itself is only evaluated for the final plan. `LibraryLine` needs no dynamics: it takes the action of the observed step
nearest to each step of the line. Nearest-neighbour distances fall with the size of the library, so report results
together with that size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from jepatlas.core.contracts import Cost, Dynamics
from jepatlas.core.errors import InputError, check_argument, check_count
from jepatlas.core.lazy import lazy_import
from jepatlas.core.records import Plan
from jepatlas.planning.action_box import ActionBox
from jepatlas.planning.candidates import Best, evaluate, evaluated_plan, initial_actions, start_and_goal

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:
    torch = lazy_import("torch")

__all__ = ["Library", "LibraryLine", "StraightLine", "StraightLineConfig", "detour", "nearest_rows", "waypoints"]

TILE_NUMBERS = 2**22  # entries of one tile of the distance matrix


def waypoints(start: Tensor, goal: Tensor, steps: int) -> Tensor:
    """Equally spaced points from start to goal, both included: (b, d), (b, d) → (b, steps + 1, d)."""
    share = torch.linspace(0, 1, steps + 1, dtype=start.dtype, device=start.device)[:, None]
    return start[:, None] + share * (goal - start)[:, None]


def detour(points: Tensor) -> Tensor:
    """Length of a path relative to the distance between its ends, (b, t, d) → (b,).

    >>> detour(torch.tensor([[[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]]]))
    tensor([1.4000])
    """
    return points.diff(dim=1).norm(dim=-1).sum(1) / (points[:, -1] - points[:, 0]).norm(dim=-1)


@dataclass(frozen=True)
class StraightLineConfig:
    kind: ClassVar[str] = "straight-line"

    horizon: int = 16
    """Number of actions in a plan, and of segments of the line."""
    samples: int = 64
    """Number of candidate actions per search round."""
    rounds: int = 4
    """Number of search rounds for each action; the first one covers the whole box."""
    narrowing: float = 0.25
    """Factor by which the search range shrinks in each round, in (0, 1)."""

    def __post_init__(self) -> None:
        for name in ("horizon", "samples", "rounds"):
            check_count(name, getattr(self, name))
        check_argument("narrowing", self.narrowing, 0 < self.narrowing < 1, "between 0 and 1, exclusive")

    def build(self, box: ActionBox) -> StraightLine:
        return StraightLine(self, box)


@dataclass(frozen=True)
class StraightLine:
    """Needs a cost with an attribute `dynamics`; the warm start supplies one more candidate for each action."""

    config: StraightLineConfig
    box: ActionBox

    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        dynamics: Dynamics | None = getattr(cost, "dynamics", None)
        if dynamics is None:
            raise InputError(
                f"The straight-line planner needs a cost with dynamics, but {type(cost).__name__} has none. "
                "Use a LatentCost or a QuadraticCost, or another planner."
            )
        start, goal = start_and_goal(info)
        horizon = self.config.horizon
        with torch.no_grad():
            actions = initial_actions(info, self.box, horizon, warm)
            line = waypoints(start, goal, horizon)
            for s in range(horizon):
                distance = _WaypointDistance(dynamics, actions[:, :s], line[:, s + 1])
                actions[:, s] = self._search(distance, start, actions[:, s], generator)
            return evaluated_plan(cost, info, actions)

    def _search(self, distance: _WaypointDistance, start: Tensor, initial: Tensor, generator: Generator) -> Tensor:
        """The action whose next latent is nearest to the waypoint, (b, a)."""
        config = self.config
        best = Best(initial[:, None])
        for i in range(config.rounds):
            drawn = self.box.uniform((config.samples,), generator, initial)
            if i == 0:
                around = drawn.expand(len(initial), -1, -1)
            else:
                around = best.actions + config.narrowing**i * (drawn - self.box.centre(initial))
            candidates = torch.cat([best.actions, self.box.clamp(around)], dim=1)[:, :, None]
            best.update(candidates, evaluate(distance, {"start": start}, candidates))
        return best.actions[:, 0]


@dataclass(frozen=True, eq=False)
class _WaypointDistance:
    """The cost of one more action: the distance of the latent it leads to from the waypoint.

    Rolled out from the start each time, because dynamics may carry hidden state that the latent does not show.
    """

    dynamics: Dynamics
    previous: Tensor  # (b, s, a): actions already chosen
    waypoint: Tensor  # (b, d)

    def __call__(self, info: Mapping[str, Tensor], actions: Tensor) -> Tensor:
        b, k = actions.shape[:2]
        previous = self.previous[:, None].expand(b, k, -1, -1)
        sequences = torch.cat([previous, actions], dim=2).flatten(0, 1)
        start = info["start"][:, None].expand(b, k, -1).flatten(0, 1)
        last = self.dynamics.rollout(start, sequences)[:, -1].view(b, k, -1)
        return (last - self.waypoint[:, None]).norm(dim=-1)


def nearest_rows(points: Tensor, library: Tensor) -> Tensor:
    """Index of the library row nearest to each point, (..., d), (m, d) → (...), computed in tiles."""
    if library.ndim != 2 or not len(library) or library.shape[1] != points.shape[-1]:
        raise InputError(
            f"library must have shape (rows, {points.shape[-1]}) with at least one row, "
            f"but it has {tuple(library.shape)}."
        )
    flat = points.reshape(-1, points.shape[-1])
    tiles = flat.split(max(1, TILE_NUMBERS // len(library)))
    return torch.cat([torch.cdist(tile, library).argmin(1) for tile in tiles]).view(points.shape[:-1])


@dataclass(frozen=True, eq=False)
class Library:
    """Observed steps: latents, actions and next latents, row by row."""

    h: Tensor  # (m, d)
    u: Tensor  # (m, a)
    h_next: Tensor  # (m, d)

    def __post_init__(self) -> None:
        if self.h.shape != self.h_next.shape or self.h.ndim != 2 or self.u.ndim != 2 or len(self.u) != len(self.h):
            shapes = ", ".join(str(tuple(part.shape)) for part in (self.h, self.u, self.h_next))
            raise InputError(f"A library needs h (m, d), u (m, a) and h_next (m, d), but the shapes are {shapes}.")

    def actions(self, path: Tensor) -> Tensor:
        """The action of the observed step nearest to each step of the path, (b, t + 1, d) → (b, t, a)."""
        steps = torch.cat([path[:, :-1], path[:, 1:]], dim=-1)
        return self.u[nearest_rows(steps, torch.cat([self.h, self.h_next], dim=-1))]


@dataclass(frozen=True, eq=False)
class LibraryLine:
    """A planner without dynamics: the straight line, decoded by nearest neighbours in a library."""

    library: Library
    box: ActionBox
    horizon: int = 16

    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        start, goal = start_and_goal(info)
        initial_actions(info, self.box, self.horizon, warm)  # checks the shape of the warm start
        with torch.no_grad():
            actions = self.library.actions(waypoints(start, goal, self.horizon))
            return evaluated_plan(cost, info, self.box.clamp(actions.to(start)))
