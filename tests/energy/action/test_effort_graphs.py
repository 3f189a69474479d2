"""Effort graphs: edge costs, one-way edges, unreachable pairs, and descent from the path found."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.energy.action import Current, EffortGraph, Euclidean, effort_graph, search_path
from jepatlas.energy.action.paths import path_action

SIDE = 9
GRID = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij"), -1).reshape(-1, 2) / (SIDE - 1)
CLOUD = np.random.default_rng(0).uniform(0, 1, (300, 2))


def rightwards_only(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The line x = 0.5 may be crossed from left to right only."""
    return ~((x[:, 0] > 0.5) & (y[:, 0] <= 0.5))


def around_the_wall(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A wall at x = 0.5 up to y = 0.8, in both directions."""
    crosses = (x[:, 0] - 0.5) * (y[:, 0] - 0.5) <= 0
    share = (0.5 - x[:, 0]) / np.where(x[:, 0] == y[:, 0], 1, y[:, 0] - x[:, 0])
    return ~(crosses & (x[:, 1] + share * (y[:, 1] - x[:, 1]) < 0.8))


def bellman_ford(found: EffortGraph) -> np.ndarray:
    """Bellman-Ford, one edge at a time."""
    graph = found.graph
    assert graph is not None
    ways = np.where(np.eye(graph.size, dtype=bool), 0, np.inf)
    for _ in range(graph.size):
        for a, b, cost in zip(graph.source, graph.target, graph.cost, strict=True):
            ways[:, b] = np.minimum(ways[:, b], ways[:, a] + cost)
    return ways


def test_energies_match_bellman_ford() -> None:
    found = effort_graph(CLOUD[:30], Current.constant(np.array([0.5, 0.2])), neighbours=4)
    assert found.energies() == pytest.approx(bellman_ford(found))
    assert found.energies(np.array([3, 7])) == pytest.approx(found.energies()[[3, 7]])


def test_edges_exist_in_both_directions_at_their_own_effort() -> None:
    effort = Current.constant(np.array([0.5, 0.0]))
    graph = effort_graph(GRID, effort, neighbours=4).graph
    assert graph is not None
    cost = {(a, b): c for a, b, c in zip(graph.source, graph.target, graph.cost, strict=True)}
    for (a, b), there in itertools.islice(cost.items(), 60):
        assert there == pytest.approx(path_action(GRID[[a, b]], effort))
        assert (b, a) in cost


def test_pairs_across_a_one_way_line_are_unreachable() -> None:
    energies = effort_graph(CLOUD, Euclidean(), admissible=rightwards_only).energies()
    right = CLOUD[:, 0] > 0.5
    assert np.isinf(energies[np.ix_(right, ~right)]).all() and np.isfinite(energies[np.ix_(~right, right)]).all()
    some = energies[:40, :40]
    assert (some <= (some[:, :, None] + some[None]).min(1) + 1e-9).all()


def test_a_mask_and_its_predicate_agree() -> None:
    row, column = (part.ravel() for part in np.indices((len(CLOUD), len(CLOUD))))
    mask = rightwards_only(CLOUD[row], CLOUD[column]).reshape(len(CLOUD), -1)
    one, other = (effort_graph(CLOUD, Euclidean(), admissible=way).energies() for way in (mask, rightwards_only))
    assert (one == other).all()


def test_the_action_of_a_path_is_the_energy_of_its_ends() -> None:
    found = effort_graph(CLOUD, Current.constant(np.array([0.3, 0.3])))
    path = found.path(4, 250)
    assert path.action == pytest.approx(found.energies(np.array([4]))[0, 250])
    assert (path.points[0] == CLOUD[4]).all() and (path.points[-1] == CLOUD[250]).all()
    assert found.path(4, 4).action == 0 and len(found.path(4, 4).points) == 1


def test_equal_points_are_joined_at_cost_zero() -> None:
    twice = np.concatenate([GRID, GRID])
    energies = effort_graph(twice, Euclidean(), neighbours=5).energies()
    assert (energies[np.arange(SIDE**2), np.arange(SIDE**2) + SIDE**2] == 0).all()


def test_descent_straightens_the_path_of_the_graph() -> None:
    start, goal = np.array([0.1, 0.15]), np.array([0.9, 0.7])
    rough = effort_graph(np.concatenate([[start, goal], GRID]), Euclidean(), neighbours=8).path(0, 1)
    fine = search_path(start, goal, GRID, Euclidean(), neighbours=8)
    exact = np.linalg.norm(goal - start)
    assert fine.action == pytest.approx(exact, rel=1e-6) and rough.action > 1.02 * exact
    assert fine.residual < 0.01 < rough.residual


def test_descent_does_not_cross_a_wall() -> None:
    start, goal = np.array([0.2, 0.2]), np.array([0.8, 0.2])
    path = search_path(start, goal, CLOUD, Euclidean(), admissible=around_the_wall)
    shortest = 2 * np.hypot(0.3, 0.6)
    assert shortest <= path.action < 1.15 * shortest
    assert around_the_wall(path.points[:-1], path.points[1:]).all()


def test_unreachable_goals_have_infinite_action() -> None:
    right, left = np.array([0.9, 0.5]), np.array([0.1, 0.5])
    path = search_path(right, left, CLOUD, Euclidean(), admissible=rightwards_only)
    assert path.action == np.inf and len(path.points) == 0 and not path.reached
    assert search_path(left, right, CLOUD, Euclidean(), admissible=rightwards_only).reached
    nowhere = effort_graph(CLOUD[:5], Euclidean(), admissible=np.zeros((5, 5), dtype=bool))
    assert (np.isinf(nowhere.energies()) == ~np.eye(5, dtype=bool)).all()
    assert nowhere.path(0, 1).action == np.inf and search_path(left, left, CLOUD, Euclidean()).action == 0


def test_search_in_a_fast_current_stays_in_the_reachable_cone() -> None:
    effort, start = Current.constant(np.array([1.5, 0.0])), np.array([0.05, 0.5])
    down = search_path(start, np.array([0.95, 0.55]), CLOUD, effort)
    d, slack = np.array([0.9, 0.05]), 1.5**2 - 1
    exact = (d[0] * 1.5 - np.sqrt((d[0] * 1.5) ** 2 - slack * (d @ d))) / slack
    assert down.action == pytest.approx(exact, rel=1e-3)
    assert search_path(np.array([0.95, 0.55]), start, CLOUD, effort).action == np.inf


@pytest.mark.parametrize(
    ("points", "options"),
    [
        (CLOUD[:1], {}),
        (CLOUD[:, 0], {}),
        (CLOUD, {"neighbours": 0}),
        (CLOUD, {"admissible": np.ones((2, 2), dtype=bool)}),
        (np.where(np.arange(600).reshape(300, 2) == 7, np.nan, CLOUD), {}),
    ],
)
def test_invalid_graphs_are_rejected(points: np.ndarray, options: dict) -> None:
    with pytest.raises(InputError):
        effort_graph(points, Euclidean(), **options)
