"""Figures of energies, the goal that they show, and the way that an energy leads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workflows.energy.tiny import GRID, TRUTH

from jepatlas.core.graphs import Graph
from jepatlas.energy import graph_energies
from jepatlas.energy.audit import audit
from jepatlas.workflows.energy.figures import audit_figures, choose_goal, grid_of, landscape
from jepatlas.workflows.energy.ways import greedy_way


def test_a_goal_is_where_there_and_back_differ_most():
    energies = np.array([[0.0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 5], [1, 1, 2, 0]])
    assert choose_goal(energies) in (2, 3)
    assert choose_goal(np.array([[0.0, 1, np.inf], [1, 0, 1], [1, 1, 0]])) in (0, 2)
    assert choose_goal(np.ones((3, 3))) == 0 and choose_goal(np.full((2, 2), np.inf)) == 0


def test_a_grid_has_its_states_in_place_and_nothing_elsewhere():
    positions = np.array([[0.0, 0], [0, 2], [1, 1]])
    expected = np.array([[5, np.nan, 7], [np.nan, 9, np.nan]])
    np.testing.assert_array_equal(grid_of(positions, np.array([5.0, 7, 9])), expected)
    np.testing.assert_array_equal(grid_of(GRID.positions, np.arange(16.0)), np.arange(16.0).reshape(4, 4))


def test_a_landscape_names_arrays_goal_and_ways():
    figure = landscape("T", [("there", "a"), ("back", "b")], {"x": [0, 1]}, (3, 1), {"b": [("w", "b_way")]})
    assert [panel["values"] for panel in figure["panels"]] == ["a", "b"]
    assert figure["panels"][0]["paths"] == [] and figure["panels"][1]["paths"] == [{"name": "w", "points": "b_way"}]
    assert figure["panels"][1]["marks"] == [{"name": "goal", "at": [3, 1]}] and figure["panels"][0]["x"] == [0, 1]


def test_figures_of_an_audit_hold_its_numbers():
    found = audit(2 * TRUTH, truth=TRUTH)
    gaps, roc, curve = audit_figures(found, "mine")
    assert sum(gaps["series"][0]["y"]) == 2 * 16 * 15 and gaps["series"][0]["y"][0] == 240  # all pairs, without a gap
    steps = [np.array(audit_figures(audit(TRUTH**2))[0]["series"][0][axis]).reshape(-1, 2) for axis in "xy"]
    assert (steps[1][:, 0] == steps[1][:, 1]).all() and (steps[0][1:, 0] == steps[0][:-1, 1]).all()  # side by side
    assert steps[0][0, 0] == 0 and steps[0][-1, 1] == 1 and steps[1][:, 0].sum() == 240 and np.ptp(steps[1]) > 0
    assert [series["name"] for series in roc["series"]] == ["mine, all pairs", "mine, one-way pairs", "chance"]
    line = curve["series"][0]
    np.testing.assert_allclose(line["y"], 2 * np.array(line["x"]))
    assert len(audit_figures(audit(TRUTH))) == 1
    long = np.random.default_rng(0).uniform(1, 2, (60, 60))
    truth = np.where(np.triu(np.ones((60, 60))) > 0, 1.0, np.inf)
    np.fill_diagonal(truth, 0)
    _, roc, _ = audit_figures(audit(long, truth=truth))
    first = roc["series"][0]
    assert len(first["x"]) == 200 and (first["x"][0], first["x"][-1], first["y"][-1]) == (0, 1, 1)


def way_cost(graph: Graph, way: np.ndarray) -> float:
    steps = {(s, t): c for s, t, c in zip(graph.source, graph.target, graph.cost, strict=True)}
    return sum(steps[int(a), int(b)] for a, b in itertools.pairwise(way))


@given(st.integers(0, 2**31))
@settings(max_examples=25, deadline=None)
def test_under_exact_energies_the_way_is_a_cheapest_one(seed: int):
    rng = np.random.default_rng(seed)
    pairs = np.array([(i, j) for i in range(7) for j in range(7) if i != j])
    chosen = pairs[rng.permutation(len(pairs))[:14]]
    graph = Graph(7, chosen[:, 0], chosen[:, 1], rng.uniform(0.1, 3, 14))
    truth = graph_energies(graph)
    for start, goal in pairs[np.isfinite(truth[tuple(pairs.T)])]:
        way = greedy_way(graph, truth[:, goal], int(start), int(goal))
        assert (way[0], way[-1]) == (start, goal)
        assert way_cost(graph, way) == pytest.approx(truth[start, goal])


def test_a_wrong_energy_leads_in_circles_or_nowhere_and_that_ends():
    graph = Graph(3, np.array([0, 1, 1]), np.array([1, 0, 2]), np.ones(3))
    assert greedy_way(graph, np.array([0.0, 5, 5]), 0, 2).tolist() == [0, 1]  # it would turn back
    assert greedy_way(graph, np.zeros(3), 2, 0).tolist() == [2]  # nothing leaves it
    assert greedy_way(graph, np.zeros(3), 1, 1).tolist() == [1]
