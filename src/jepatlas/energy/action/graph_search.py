"""Minimal paths by graph search, then by descent: the graph knows the world, the descent removes its corners."""

from __future__ import annotations

import numpy as np

from jepatlas.energy.action.descent import minimal_paths
from jepatlas.energy.action.effort import Effort
from jepatlas.energy.action.effort_graph import Admissible, effort_graph
from jepatlas.energy.action.path import Path, equal_steps

__all__ = ["search_path"]


def search_path(
    start: np.ndarray,
    goal: np.ndarray,
    points: np.ndarray,
    effort: Effort,
    *,
    neighbours: int = 12,
    admissible: Admissible | None = None,
    steps: int = 32,
) -> Path:
    """From start to goal, (d,) each, over sampled points: the graph's path, then descent from it.

    The descent knows nothing of what is admissible: what it finds is taken where every step of it is.
    """
    nodes = np.concatenate(
        [np.asarray(start, dtype=np.float64)[None], np.asarray(goal, dtype=np.float64)[None], points]
    )
    if (nodes[0] == nodes[1]).all():
        return Path(nodes[:1], 0.0, 0.0)
    rough = effort_graph(nodes, effort, neighbours=neighbours, admissible=admissible).path(0, 1)
    if not rough.reached:
        return rough
    initial = equal_steps(rough.points, steps)[None]
    fine = minimal_paths(nodes[:1], nodes[1:2], effort, steps=steps, initial=initial)[0]
    return fine if fine.action <= rough.action and _all_allowed(fine.points, admissible) else rough


def _all_allowed(points: np.ndarray, admissible: Admissible | None) -> bool:
    return admissible is None or bool(np.all(admissible(points[:-1], points[1:])))
