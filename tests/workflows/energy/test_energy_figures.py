"""Figures of energies, the goal they show, and greedy paths."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workflows.energy.tiny import GRID, TRUTH

from jepatlas.core.figures import Curve, Curves, LandscapeMark, LandscapePath
from jepatlas.core.graphs import Graph
from jepatlas.energy import graph_energies
from jepatlas.energy.audit import audit
from jepatlas.workflows.energy.energy_evaluation import greedy_path
from jepatlas.workflows.energy.energy_figures import audit_figures, choose_goal, grid_of, landscape


def test_the_goal_is_the_most_asymmetric_state():
    energies = np.array([[0.0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 5], [1, 1, 2, 0]])
    assert choose_goal(energies) in (2, 3)
    assert choose_goal(np.array([[0.0, 1, np.inf], [1, 0, 1], [1, 1, 0]])) in (0, 2)
    assert choose_goal(np.ones((3, 3))) == 0 and choose_goal(np.full((2, 2), np.inf)) == 0


def test_grid_of_places_states_and_leaves_the_rest_nan():
    positions = np.array([[0.0, 0], [0, 2], [1, 1]])
    expected = np.array([[5, np.nan, 7], [np.nan, 9, np.nan]])
    np.testing.assert_array_equal(grid_of(positions, np.array([5.0, 7, 9])), expected)
    np.testing.assert_array_equal(grid_of(GRID.positions, np.arange(16.0)), np.arange(16.0).reshape(4, 4))


def test_a_landscape_names_arrays_goal_and_paths():
    figure = landscape("T", [("there", "a"), ("back", "b")], {"x": [0, 1]}, (3, 1), {"b": [("w", "b_way")]})
    first, second = figure.panels
    assert [first.values, second.values] == ["a", "b"] and first.x == [0, 1]
    assert first.paths == [] and second.paths == [LandscapePath("w", "b_way")]
    assert second.marks == [LandscapeMark("goal", [3, 1])]


def curves_of(figure: Curves) -> list[Curve]:
    assert figure.series is not None
    return list(figure.series)


def test_figures_of_an_audit_hold_its_numbers():
    found = audit(2 * TRUTH, truth=TRUTH)
    gaps, roc, curve = audit_figures(found, "mine")
    (outline,) = curves_of(gaps)
    assert np.sum(np.array(outline.y)) == 2 * 16 * 15 and outline.y[0] == 240  # all pairs have gap 0
    (outline,) = curves_of(audit_figures(audit(TRUTH**2))[0])
    steps = [np.array(values).reshape(-1, 2) for values in (outline.x, outline.y)]
    assert (steps[1][:, 0] == steps[1][:, 1]).all() and (steps[0][1:, 0] == steps[0][:-1, 1]).all()  # adjacent bars
    assert steps[0][0, 0] == 0 and steps[0][-1, 1] == 1 and steps[1][:, 0].sum() == 240 and np.ptp(steps[1]) > 0
    assert [series.name for series in curves_of(roc)] == ["mine, all pairs", "mine, one-way pairs", "chance"]
    line = curves_of(curve)[0]
    np.testing.assert_allclose(np.array(line.y), 2 * np.array(line.x))
    assert len(audit_figures(audit(TRUTH))) == 1
    long = np.random.default_rng(0).uniform(1, 2, (60, 60))
    truth = np.where(np.triu(np.ones((60, 60))) > 0, 1.0, np.inf)
    np.fill_diagonal(truth, 0)
    _, roc, _ = audit_figures(audit(long, truth=truth))
    first = curves_of(roc)[0]
    assert len(first.x) == 200 and (first.x[0], first.x[-1], first.y[-1]) == (0, 1, 1)


def path_cost(graph: Graph, path: np.ndarray) -> float:
    steps = {(s, t): c for s, t, c in zip(graph.source, graph.target, graph.cost, strict=True)}
    return sum(steps[int(a), int(b)] for a, b in itertools.pairwise(path))


@given(st.integers(0, 2**31))
@settings(max_examples=25, deadline=None)
def test_greedy_paths_of_exact_energies_are_cheapest(seed: int):
    rng = np.random.default_rng(seed)
    pairs = np.array([(i, j) for i in range(7) for j in range(7) if i != j])
    chosen = pairs[rng.permutation(len(pairs))[:14]]
    graph = Graph(7, chosen[:, 0], chosen[:, 1], rng.uniform(0.1, 3, 14))
    truth = graph_energies(graph)
    for start, goal in pairs[np.isfinite(truth[tuple(pairs.T)])]:
        path = greedy_path(graph, truth[:, goal], int(start), int(goal))
        assert (path[0], path[-1]) == (start, goal)
        assert path_cost(graph, path) == pytest.approx(truth[start, goal])


def test_greedy_paths_end_before_a_cycle_or_at_a_dead_end():
    graph = Graph(3, np.array([0, 1, 1]), np.array([1, 0, 2]), np.ones(3))
    assert greedy_path(graph, np.array([0.0, 5, 5]), 0, 2).tolist() == [0, 1]  # the next state would repeat
    assert greedy_path(graph, np.zeros(3), 2, 0).tolist() == [2]  # a dead end
    assert greedy_path(graph, np.zeros(3), 1, 1).tolist() == [1]
