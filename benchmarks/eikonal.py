"""Eikonal solver in a shear current on 201×201 nodes: error relative to shooting, and time, compared with Dijkstra.

The current w(y) = 0.9 sin(πy/2) on [−1, 1]², in units of the vehicle's speed, is zero at the source in the centre, so
that factoring out the source's current does not help. Errors are relative, in per cent, at every tenth node whose
least-time path stays inside. The baseline is Dijkstra's algorithm on the same nodes with 8 neighbours each. The error
must stay below 0.3 % in the mean and 1 % at most.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measurement import Comparison, compare
from jepatlas.core.graphs import Graph
from jepatlas.energy.exact import Medium, Shear, energies_from, graph_energies, shoot, zermelo

__all__ = ["run"]

NODES, TURNS, EVERY = 201, 5, 10
SOURCE = np.zeros(2)
SHEAR = Shear(lambda y: 0.9 * np.sin(np.pi * y / 2), lambda y: 0.45 * np.pi * np.cos(np.pi * y / 2))


def run(nodes: int = NODES, turns: int = TURNS) -> Iterator[Comparison]:
    with threadpool_limits(1):
        axis = np.linspace(-1, 1, nodes)
        points = np.stack(np.meshgrid(axis, axis), axis=-1)
        current = np.stack([SHEAR.current(points[..., 1]), np.zeros((nodes, nodes))], axis=-1)
        medium = Medium(current, origin=(-1.0, -1.0), spacing=(axis[1] - axis[0],) * 2)
        name = f"shear current to 0.9, {nodes}×{nodes}"
        of_graph, of_ours = errors(points, current, medium)
        for measure, of in (("mean", np.mean), ("largest", np.max)):
            pair = [100 * float(of(of_graph))], [100 * float(of(of_ours))]
            yield Comparison.of(f"{name}, {measure} error: 8-neighbour Dijkstra, eikonal", *pair, unit="%")
        yield compare(
            f"{name}, time: 8-neighbour Dijkstra, eikonal",
            lambda: by_graph(points, current),
            lambda: energies_from(medium, SOURCE),
            turns,
        )


def errors(points: np.ndarray, current: np.ndarray, medium: Medium) -> tuple[np.ndarray, np.ndarray]:
    """Relative errors of the graph's energies and of the eikonal solver's."""
    some = np.s_[::EVERY, ::EVERY]
    arrivals = shoot(SHEAR, SOURCE, points[some].reshape(-1, 2))
    fair = (arrivals.time > 0) & (np.abs(arrivals.paths()).max((1, 2)) <= 1 + 1e-6)
    found = by_graph(points, current), energies_from(medium, SOURCE).values
    graph, ours = (np.abs(values[some].ravel()[fair] / arrivals.time[fair] - 1) for values in found)
    return graph, ours


def by_graph(points: np.ndarray, current: np.ndarray) -> np.ndarray:
    """Times from the centre by Dijkstra's algorithm, with 8 neighbours per node."""
    n = len(points)
    number, edges = np.arange(n * n).reshape(n, n), []
    for di, dj in ((0, 1), (1, 0), (1, 1), (1, -1)):
        here = (slice(0, n - di), slice(max(-dj, 0), n - max(dj, 0)))
        there = (slice(di, n), slice(max(dj, 0), n - max(-dj, 0)))
        for a, b in ((here, there), (there, here)):
            cost = zermelo(points[a], points[b], (current[a] + current[b]) / 2)
            edges.append((number[a].ravel(), number[b].ravel(), cost.ravel()))
    graph = Graph(n * n, *map(np.concatenate, zip(*edges, strict=True)))
    return graph_energies(graph, [n * n // 2])[0].reshape(n, n)
