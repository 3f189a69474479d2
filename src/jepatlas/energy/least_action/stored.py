"""The parts of a least-action energy as tensors, and back. Everything that is read is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from jepatlas.energy.least_action.cell_graph import CellGraph
from jepatlas.energy.least_action.least_action import LeastAction

__all__ = ["LeastActionSpec", "from_tensors", "to_tensors"]

TENSORS = [part.name for part in fields(CellGraph) if part.name not in ("effort", "exact")]
INTEGERS = ("visited", "typical", "source", "target")


@dataclass(frozen=True)
class LeastActionSpec:
    """The scalars of a least-action energy. Its arrays are tensors of the same file."""

    kind: ClassVar[str] = "least-action"
    discount: ClassVar[float | None] = None

    dim: int
    """Width of the latents it takes."""
    level: float = 0.0
    effort: float = 1.0
    exact: bool = False

    @classmethod
    def of(cls, energy: LeastAction) -> LeastActionSpec:
        return cls(energy.width, energy.level, energy.graph.effort, energy.graph.exact)


def to_tensors(energy: LeastAction) -> dict[str, Tensor]:
    tensors = {name: torch.from_numpy(np.ascontiguousarray(getattr(energy.graph, name))) for name in TENSORS}
    return tensors | {"near": energy.near, "near_cost": energy.near_cost}


def from_tensors(spec: LeastActionSpec, tensors: Mapping[str, Tensor]) -> LeastAction:
    """Raises KeyError or ValueError if the tensors are not those of such an energy."""
    arrays = {name: tensors[name].numpy() for name in (*TENSORS, "near", "near_cost")}
    if unknown := sorted(tensors.keys() - arrays.keys()):
        raise ValueError(f"it holds the unknown tensor {unknown[0]}.")
    cells = len(arrays["centres"])
    nodes = cells + len(arrays["visits"])
    edges = len(arrays["steps"])
    near = arrays["near"].shape[1:]
    shapes = {
        "centres": (cells, spec.dim),
        "visits": (nodes - cells, spec.dim),
        "visited": (nodes - cells,),
        "divided": (cells,),
        "typical": (cells,),
        "states": (nodes,),
        "near": (cells, *near),
        "near_cost": (cells, *near),
    } | dict.fromkeys(("source", "target", "steps", "paid", "length"), (edges,))
    for name, shape in shapes.items():
        if arrays[name].shape != shape or not cells:
            raise ValueError(f"{name} has the shape {arrays[name].shape} instead of {shape}.")
    for name, limit in (("visited", cells), ("typical", nodes), ("source", nodes), ("target", nodes), ("near", cells)):
        array = arrays[name]
        if array.dtype != np.int64 or (array.size and not 0 <= array.min() <= array.max() < limit):
            raise ValueError(f"{name} must hold numbers below {limit}.")
    for name in ("centres", "visits", "states", "steps", "paid", "length"):
        if not np.isfinite(arrays[name]).all() or (name not in ("centres", "visits") and (arrays[name] < 0).any()):
            raise ValueError(f"{name} must be finite, and not negative.")
    if np.isnan(arrays["near_cost"]).any() or (arrays["near_cost"] < 0).any():
        raise ValueError("near_cost must not be negative.")
    graph = CellGraph(**{name: arrays[name] for name in TENSORS}, effort=spec.effort, exact=spec.exact)
    return LeastAction(graph, spec.level, (arrays["near"], arrays["near_cost"]))
