"""Least action: efforts L(x, v), given or learned, and the paths that take the least of them."""

from jepatlas.energy.action.anisotropic import Anisotropic
from jepatlas.energy.action.conformal import Conformal, Euclidean
from jepatlas.energy.action.current import Current
from jepatlas.energy.action.descent import minimal_paths
from jepatlas.energy.action.effort import Effort
from jepatlas.energy.action.effort_check import effort_verdicts, require_effort
from jepatlas.energy.action.effort_graph import Admissible, EffortGraph, effort_graph
from jepatlas.energy.action.euler_lagrange import euler_lagrange, path_residual
from jepatlas.energy.action.graph_search import search_path
from jepatlas.energy.action.learn_effort import FittedEffort, learn_effort
from jepatlas.energy.action.learned import LearnedEffort
from jepatlas.energy.action.path import Path, equal_steps, path_action
from jepatlas.energy.action.pullback import Pullback
from jepatlas.energy.action.scale import Scale

__all__ = [
    "Admissible",
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
    "equal_steps",
    "euler_lagrange",
    "learn_effort",
    "minimal_paths",
    "path_action",
    "path_residual",
    "require_effort",
    "search_path",
]
