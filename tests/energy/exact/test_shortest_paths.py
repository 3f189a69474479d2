from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.core.graphs import Graph
from jepatlas.energy.exact.shortest_paths import energy_to_set, graph_energies, shortest_path


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Random graphs with unreachable pairs and many costs of zero."""
    size = draw(st.integers(2, 8))
    nodes = st.integers(0, size - 1)
    costs = st.sampled_from([0.0, 0.0, 0.25, 1.0, 2.5, 7.0])
    edges = draw(st.lists(st.tuples(nodes, nodes, costs), min_size=1, max_size=2 * size))
    source, target, cost = zip(*edges, strict=True)
    return Graph(size, np.array(source), np.array(target), np.array(cost))


def floyd_warshall(graph: Graph) -> np.ndarray:
    energy = np.full((graph.size, graph.size), np.inf)
    for s, t, c in zip(graph.source, graph.target, graph.cost, strict=True):
        energy[s, t] = min(energy[s, t], c)
    np.fill_diagonal(energy, 0.0)
    for via in range(graph.size):
        energy = np.minimum(energy, energy[:, via, None] + energy[None, via])
    return energy


@settings(max_examples=60)
@given(graphs(), st.data())
def test_energies_match_floyd_warshall(graph: Graph, data: st.DataObject) -> None:
    truth = floyd_warshall(graph)
    nodes = st.lists(st.integers(0, graph.size - 1), min_size=1, max_size=graph.size)
    sources, goals = data.draw(nodes), data.draw(nodes)
    np.testing.assert_allclose(graph_energies(graph), truth)
    np.testing.assert_allclose(graph_energies(graph, sources), truth[sources])
    np.testing.assert_allclose(graph_energies(graph, goals=goals), truth[:, goals])
    np.testing.assert_allclose(graph_energies(graph, sources, goals), truth[np.ix_(sources, goals)])
    np.testing.assert_allclose(energy_to_set(graph, goals), truth[:, goals].min(1))


@settings(max_examples=60)
@given(graphs())
def test_energies_are_a_quasimetric(graph: Graph) -> None:
    energy = graph_energies(graph)
    assert (energy >= 0).all()
    assert (np.diag(energy) == 0).all()
    assert (energy[:, None] <= energy[:, :, None] + energy[None] + 1e-12).all()


@settings(max_examples=60)
@given(graphs(), st.data())
def test_the_cost_of_a_shortest_path_is_the_energy(graph: Graph, data: st.DataObject) -> None:
    nodes = st.integers(0, graph.size - 1)
    source, goals = data.draw(nodes), data.draw(st.lists(nodes, min_size=1, max_size=3))
    energy = energy_to_set(graph, goals)[source]
    path = shortest_path(graph, source, goals)
    costs = {(s, t): c for s, t, c in zip(graph.source, graph.target, graph.cost, strict=True)}
    if np.isinf(energy):
        assert len(path) == 0
        return
    assert path[0] == source
    assert path[-1] in goals
    assert sum(costs[step] for step in pairwise(path)) == pytest.approx(energy)


@settings(max_examples=30)
@given(graphs())
def test_reversing_the_graph_transposes_the_energies(graph: Graph) -> None:
    np.testing.assert_allclose(graph_energies(graph.reversed), graph_energies(graph).T)


def test_edges_are_directed() -> None:
    graph = Graph(3, np.array([0, 1]), np.array([1, 2]), np.array([0.0, 4.0]))
    assert graph_energies(graph)[0, 2] == 4
    assert np.isinf(graph_energies(graph)[2, 0])
    assert shortest_path(graph, 0, 2).tolist() == [0, 1, 2]


@pytest.mark.parametrize("nodes", [[3], [-1], [], [0.5]])
def test_invalid_nodes_are_rejected(nodes: list) -> None:
    graph = Graph(3, np.array([0]), np.array([1]), np.array([1.0]))
    for ask in (
        lambda: graph_energies(graph, nodes),
        lambda: graph_energies(graph, goals=nodes),
        lambda: energy_to_set(graph, nodes),
        lambda: shortest_path(graph, 0, nodes),
    ):
        with pytest.raises(InputError, match=r"not a node|node numbers"):
            ask()
