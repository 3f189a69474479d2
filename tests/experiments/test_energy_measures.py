"""What the trials of the experiments on exact energies measure, against definitions and closed forms."""

import math
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch

from jepatlas.core.graphs import Graph
from jepatlas.energy.action import effort_verdicts
from jepatlas.experiments.energy import exact_worlds
from jepatlas.experiments.energy.directed_effort import directedness
from jepatlas.experiments.energy.exact_worlds import ExactWorld, Size
from jepatlas.experiments.energy.intrinsic_energy import CONTROLS, goal_set
from jepatlas.experiments.energy.intrinsic_energy import run as audited
from jepatlas.experiments.energy.order_embedding import implications, scores
from jepatlas.experiments.energy.order_embedding import run as embedded
from jepatlas.experiments.energy.registration_energies import IntervalEffort

SMALL = Size(states=20, side=6, places=3, resolution=9, sets=3)


def test_a_function_and_its_matrix_are_one_energy():
    world = exact_worlds.constant_current(SMALL, 0, 0.5)
    assert world.points is not None and callable(world.energy)
    found = world.matrix
    for i, j in ((0, 1), (5, 2), (3, 3)):
        assert found[i, j] == world.energy(world.points[[i]], world.points[[j]])[0]


@pytest.mark.parametrize(
    ("make", "twin"),
    [
        (exact_worlds.one_way_grid, 0.0),
        (exact_worlds.rules, 0.0),
        (exact_worlds.constant_current, 0.0),
        (exact_worlds.costly_grid, 1.0),
        (exact_worlds.sizes, 1.0),
        (exact_worlds.edits, 1.0),
        (exact_worlds.strained_maps, 1.0),
    ],
)
def test_the_reversible_twin_is_symmetric_and_the_world_itself_is_not(make, twin: float):
    twin_matrix, matrix = make(SMALL, 3, twin).matrix, make(SMALL, 3).matrix
    np.testing.assert_allclose(twin_matrix, twin_matrix.T, atol=1e-12)
    assert (matrix != matrix.T).any() and matrix.shape == twin_matrix.shape


@pytest.mark.parametrize("ratio", [1.0, 2.0, 8.0])
def test_the_index_of_sizes_is_known(ratio: float):
    """Of two sizes one is the larger: |a − b| / (a + b) for every pair."""
    found = directedness(exact_worlds.sizes(SMALL, 0, ratio))
    assert found["asymmetry"].value == pytest.approx((ratio - 1) / (ratio + 1))
    assert found["differing"].value == (ratio > 1) and found["one_way"].value == 0


def test_the_index_by_hand_with_the_error_of_a_coarser_solution():
    fine = np.array([[0.0, 3.0, np.inf], [1.0, 0.0, 2.0], [5.0, 2.0, 0.0]])
    coarse = np.array([[0.0, 3.0, np.inf], [1.0, 0.0, 2.0], [5.0, 4.0, 0.0]])
    found = {name: estimate.value for name, estimate in directedness(ExactWorld(fine, coarse=coarse)).items()}
    assert found == pytest.approx({"asymmetry": 0.5, "differing": 2 / 3, "one_way": 1 / 3, "error": 1 / 9})


def test_what_a_solver_may_be_off_by():
    """A leg may be short by ε and the whole long by ε; what is small is measured beside a tenth of the median."""
    fine = np.array([[0.0, 10.0], [0.2, 0.0]])
    coarse = fine + np.array([[0.0, 0.2], [0.03, 0.0]])
    assert exact_worlds.solver_slack(coarse, fine) == pytest.approx(2 * max(0.02, 0.03 / 0.51))


def test_energies_to_a_set_are_those_to_its_nearest_member_or_found_out():
    world = exact_worlds.one_way_grid(SMALL, 0)
    assert goal_set(world, 1e-12).value == 0
    assert world.to_goals is not None
    off = ExactWorld(world.energy, world.points, to_goals=world.to_goals * 1.5)
    assert goal_set(off, 1e-12).passed is False


@pytest.mark.parametrize(
    ("name", "broken"),
    [("squared-l2", {"triangle", "midpoints"}), ("free-downhill", {"indiscernibles"}), ("sizes", set())],
)
def test_an_audit_finds_what_is_broken_and_nothing_else(name: str, broken: set[str]):
    found = audited({"world": name, "size": vars(SMALL), "seed": 0}, "")
    failed = {verdict["name"] for verdict in found["verdicts"] if verdict["passed"] is False}
    assert failed - {"goal_set"} == broken


def test_a_quadratic_action_in_fixed_time_is_the_least_over_velocities():
    """∫₀¹ ‖v − W‖² dt with the end given is least at constant velocity: no other of many paths does better."""
    world = CONTROLS["quadratic-action"](SMALL, 0)
    assert world.points is not None
    x, y = world.points[0], world.points[1]
    random = np.random.default_rng(0)
    for size in (0.0, 0.1, 1.0):
        steps = random.normal(size=(50, 2)) * size
        velocity = (y - x) + steps - steps.mean(0)
        action = np.square(velocity - np.array([0.4, 0.0])).sum(1).mean()
        assert action >= world.matrix[0, 1] - 1e-12
        assert size > 0 or action == pytest.approx(world.matrix[0, 1])


def brute_scores(energy: np.ndarray, graph: Graph) -> tuple[float, float]:
    """AUC and direction from the definition, over pairs that no rule joins in either direction."""
    reached = {i: {i} for i in range(graph.size)}
    for _ in range(graph.size):
        for p, q in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
            reached[p] |= reached[q]
    rules = set(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    pairs = [(p, q) for p, q in permutations(range(graph.size), 2) if (p, q) not in rules and (q, p) not in rules]
    implied = [pair for pair in pairs if pair[1] in reached[pair[0]]]
    others = [pair for pair in pairs if pair[1] not in reached[pair[0]]]
    auc = np.mean([(energy[a] < energy[b]) + 0.5 * (energy[a] == energy[b]) for a in implied for b in others])
    right = np.mean([(energy[p, q] < energy[q, p]) + 0.5 * (energy[p, q] == energy[q, p]) for p, q in implied])
    return float(auc), float(right)


@pytest.mark.parametrize("kind", ["tree", "dag"])
def test_scores_by_the_definition(kind: str):
    graph = implications(kind, 14, seed=0)
    energy = np.random.default_rng(0).integers(0, 6, (14, 14)).astype(float)
    found = scores(energy, graph)
    assert (found["auc"].value, found["direction"].value) == pytest.approx(brute_scores(energy, graph))
    assert scores(energy + energy.T, graph)["direction"].value == 0.5


@pytest.mark.parametrize(("kind", "rules"), [("tree", 1), ("dag", 2)])
def test_implications_lead_to_the_most_general_fact(kind: str, rules: int):
    graph = implications(kind, 30, seed=1)
    assert (graph.target < graph.source).all() and set(graph.source.tolist()) == set(range(1, 30))
    assert len(graph.source) == rules * 29 - (rules - 1)  # the second fact has one before it only
    assert not np.array_equal(graph.target, implications(kind, 30, seed=2).target)


def test_an_energy_of_facts_is_learned_from_rules(tmp_path: Path):
    """Few facts and few steps: more often than not the direction of pairs that were never shown is found."""
    settings = {"graph": "tree", "head": "iqe", "facts": 16, "steps": 300, "seed": 0}
    record = embedded(settings, str(tmp_path))
    values = {verdict["name"]: verdict["value"] for verdict in record["verdicts"]}
    assert record["status"] == "finished" and values["direction"] > 0.7 and values["auc"] > 0.7


def test_the_effort_of_moving_knots_is_an_effort_with_its_floor():
    effort = IntervalEffort(4)
    points = exact_worlds.random_maps(20, 0, pieces=5)[:, 1:-1]
    assert all(verdict.passed for verdict in effort_verdicts(effort, points))
    slopes = np.diff(np.pad(np.eye(4), ((0, 0), (1, 1))))
    assert effort.floor**2 == pytest.approx(np.linalg.eigvalsh(slopes @ slopes.T)[0])


def test_the_effort_of_moving_knots_by_the_definition():
    """∫u_x² dx over [0, 1] for u straight between knots, zero at both ends."""
    knots, velocity = np.array([0.2, 0.5, 0.9]), np.array([0.3, -0.1, 0.4])
    x = np.linspace(0, 1, 200_001)
    u = np.interp(x, [0, *knots, 1], [0, *velocity, 0])
    squares = float((np.diff(u) ** 2 / np.diff(x)).sum())
    found = IntervalEffort(3)(torch.tensor(knots), torch.tensor(velocity))
    assert float(found) == pytest.approx(math.sqrt(squares), rel=1e-3)
    met = torch.tensor([0.5, 0.4, 0.9], dtype=torch.float64)
    assert float(IntervalEffort(3)(met, torch.tensor(velocity))) == math.inf
    assert float(IntervalEffort(3)(torch.tensor(knots), torch.zeros(3, dtype=torch.float64))) == 0
