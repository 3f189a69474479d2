"""Least action: efforts L(x, v), given or learned, and the paths that minimise their integral."""

from jepatlas.energy.action.effort import Anisotropic, Conformal, Current, Effort, Euclidean, Pullback, Scale
from jepatlas.energy.action.effort_check import effort_verdicts
from jepatlas.energy.action.effort_graphs import EffortGraph, effort_graph, search_path
from jepatlas.energy.action.learned_effort import FittedEffort, LearnedEffort, learn_effort
from jepatlas.energy.action.paths import Path, minimal_paths

__all__ = [
    "Anisotropic",
    "Conformal",
    "Current",
    "Effort",
    "EffortGraph",
    "Euclidean",
    "FittedEffort",
    "LearnedEffort",
    "Path",
    "Pullback",
    "Scale",
    "effort_graph",
    "effort_verdicts",
    "learn_effort",
    "minimal_paths",
    "search_path",
]
