import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.core.graphs import Graph

edges = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from([0.0, 0.5, 1.0, 3.0, np.inf])), min_size=1
)


@given(edges)
def test_cheapest_finite_edge_of_every_pair_is_kept(given_edges: list[tuple[int, int, float]]) -> None:
    cheapest: dict[tuple[int, int], float] = {}
    for source, target, cost in given_edges:
        cheapest[source, target] = min(cost, cheapest.get((source, target), np.inf))
    expected = {pair: cost for pair, cost in cheapest.items() if cost < np.inf}
    if not expected:
        with pytest.raises(InputError, match="no edges"):
            Graph(6, *columns(given_edges))
        return
    graph = Graph(6, *columns(given_edges))
    found = {(int(s), int(t)): float(c) for s, t, c in zip(graph.source, graph.target, graph.cost, strict=True)}
    assert found == expected
    assert len(graph.cost) == len(expected)
    assert sorted(found) == list(found)


def columns(given_edges: list[tuple[int, int, float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    source, target, cost = zip(*given_edges, strict=True)
    return np.array(source), np.array(target), np.array(cost)


def test_reversing_twice_gives_the_same_graph() -> None:
    graph = Graph(4, np.array([2, 0, 1]), np.array([0, 3, 2]), np.array([1.0, 0.0, 2.0]))
    turned = graph.reversed
    assert set(zip(turned.source.tolist(), turned.target.tolist(), strict=True)) == {(0, 2), (3, 0), (2, 1)}
    for name in ("source", "target", "cost"):
        np.testing.assert_array_equal(getattr(turned.reversed, name), getattr(graph, name))


@pytest.mark.parametrize(
    ("source", "target", "cost", "message"),
    [
        ([0], [1], [-1.0], "0 → 1 .* -1"),
        ([0, 1], [1, 2], [1.0, np.nan], "1 → 2 .* nan"),
        ([0], [3], [1.0], "target .* 3.* 0 … 2"),
        ([-1], [0], [1.0], "source .* -1"),
        ([0.0], [1], [1.0], "source .*float64"),
        ([0], [1, 2], [1.0, 1.0], "one source, target and cost each"),
        ([], [], [], "no edges"),
    ],
)
def test_invalid_graphs_are_rejected(source: list, target: list, cost: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Graph(3, np.array(source), np.array(target), np.array(cost))
