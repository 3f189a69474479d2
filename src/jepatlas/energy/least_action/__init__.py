"""Least action computed from observed steps: cells, a graph with evidence, and shortest paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.energy.least_action.cell_graph import CellGraph
    from jepatlas.energy.least_action.fitting import fit_least_action
    from jepatlas.energy.least_action.least_action import LeastAction
    from jepatlas.energy.least_action.way_support import no_way_confidence, weakest_evidence
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = ["CellGraph", "LeastAction", "fit_least_action", "no_way_confidence", "weakest_evidence"]
