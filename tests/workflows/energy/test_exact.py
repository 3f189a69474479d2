"""Exact energies as records: of tables by another algorithm, of currents beside closed form and shooting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path
from workflows.energy.tiny import GRID

from jepatlas.core.errors import InputError
from jepatlas.core.records import Record
from jepatlas.energy.exact import EnergyMap, zermelo
from jepatlas.workflows.energy import exact_record
from jepatlas.worlds import ConstantCurrent, CurrentWorld, GymTable, JetCurrent, OneWayGrid, ShearCurrent


def value(record: Record, name: str) -> float:
    return next(one.value for one in record.verdicts if one.name == name)


def names(record: Record) -> set[str]:
    return {one.name for one in record.verdicts}


@pytest.mark.parametrize(
    "world", [GRID, replace(GRID, costly=((1, 1),), cliffs=((3, 2),)), GymTable(), GymTable("FrozenLake-v1")]
)
def test_tables_by_floyd_and_warshall(world: OneWayGrid | GymTable):
    steps = np.zeros((world.graph.size, world.graph.size))
    steps[world.graph.source, world.graph.target] = world.graph.cost
    truth = shortest_path(steps, method="FW")
    record = exact_record(world)
    np.testing.assert_array_equal(record.arrays["energies"], truth)
    without = np.isinf(truth).sum() / (len(truth) * (len(truth) - 1))
    assert f"{without:.1%} of ordered pairs have no way" in record.summary
    assert {"nonnegativity", "identity", "triangle", "asymmetry"} == names(record)


def test_landscapes_and_ways_of_a_grid():
    record = exact_record(GRID, goal=(1, 3))
    truth, goal = record.arrays["energies"], 7
    np.testing.assert_array_equal(record.arrays["to_goal"].ravel(), truth[:, goal])
    np.testing.assert_array_equal(record.arrays["from_goal"].ravel(), truth[goal])
    there, back = record.arrays["to_goal_path"], record.arrays["from_goal_path"]
    assert there[-1].tolist() == back[0].tolist() == [3, 1]  # column before row, as figures have it
    assert len(there) - 1 == truth[np.isfinite(truth[:, goal]), goal].max()
    assert (back[:, 0] >= 2).all()  # beyond the wall there is no way back
    assert record.figures[0]["panels"][0]["marks"][0]["at"] == [3, 1]
    assert "To the state (1, 3) there is a way from 15 states, from it to 7." in record.summary


def test_the_goal_that_is_chosen_shows_what_is_not_symmetric():
    record = exact_record(GRID)
    reached, left = (np.isfinite(record.arrays[name]).mean() for name in ("to_goal", "from_goal"))
    assert reached != left


@pytest.mark.parametrize("goal", [(4, 0), (0,), (0.5, 1), (0, 0, 0), (float("nan"), 0), (2, 2)])
def test_goals_outside_a_grid(goal: tuple[float, ...]):
    world = replace(GRID, obstacles=((2, 2),))
    with pytest.raises(InputError, match=r"is not a state of this world\. States are \(0, 0\) to \(3, 3\)"):
        exact_record(world, goal=goal)


def test_states_by_number_and_worlds_that_are_too_large():
    record = exact_record(GymTable("Taxi-v4"), goal=[3])
    assert "To the state (3) there is a way from" in record.summary
    assert [figure["kind"] for figure in record.figures] == ["curves"]  # no plane to draw it in
    with pytest.raises(InputError, match="all pairs are computed for at most 4096"):
        exact_record(OneWayGrid(65, 64))


def test_a_graph_with_no_edges():
    with pytest.raises(InputError, match="no edges"):
        exact_record(OneWayGrid(2, 2, wall=None, obstacles=((0, 1), (1, 0))))


def test_a_constant_current_against_its_closed_form():
    record = exact_record(CurrentWorld(ConstantCurrent(0.5, 0.2)), goal=(0.5, -0.25), resolution=41)
    assert value(record, "mean_error") < 0.003 and value(record, "reach_disagreement") == 0
    axis = np.linspace(-1, 1, 41)
    nodes = np.stack(np.meshgrid(axis, axis), -1)
    truth = zermelo(np.array([0.5, -0.25]), nodes, np.array([0.5, 0.2]))
    off = np.abs(record.arrays["from_goal"] - truth)[truth > 0.2] / truth[truth > 0.2]
    assert off.max() < 0.01
    np.testing.assert_allclose(
        record.arrays["to_goal"][truth > 0.2],
        zermelo(nodes, np.array([0.5, -0.25]), np.array([0.5, 0.2]))[truth > 0.2],
        rtol=0.01,
    )
    assert "Against the closed form, at 400 places the mean error is" in record.summary
    assert all(path["points"] in record.arrays for panel in record.figures[0]["panels"] for path in panel["paths"])


def test_a_shear_current_against_shooting(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("jepatlas.workflows.energy.exact_currents.AUDITED", 3)
    monkeypatch.setattr("jepatlas.workflows.energy.exact_currents.ASKED", 25)
    monkeypatch.setattr("jepatlas.workflows.energy.current_truth.RESOLUTION", 41)
    record = exact_record(CurrentWorld(ShearCurrent(0.9)), resolution=101)
    assert value(record, "mean_error") < 0.003 and "Against shooting" in record.summary
    assert value(record, "asymmetry") > 0
    fast = exact_record(CurrentWorld(ShearCurrent(1.2)), resolution=41)
    jet = exact_record(CurrentWorld(JetCurrent()), resolution=41)
    for other in (fast, jet):
        assert "mean_error" not in names(other) and "No independent method is at hand" in other.summary


def test_a_current_faster_than_the_vehicle_is_an_answer():
    """Beyond the cone downstream of the goal there is no way; at the far edge there is none to any place."""
    world = CurrentWorld(ConstantCurrent(2.0, 0.0))
    record = exact_record(world, goal=(0, 0), resolution=81)
    axis = np.linspace(-1, 1, 81)
    x, y = np.meshgrid(axis, axis)
    inside = (x > 0) & (np.abs(y) < x / np.sqrt(3) - 0.05)
    outside = (x < -0.05) | (np.abs(y) > x / np.sqrt(3) + 0.1)
    assert np.isfinite(record.arrays["from_goal"][inside]).all() and np.isinf(record.arrays["from_goal"][outside]).all()
    assert value(record, "reach_disagreement") < 0.02
    edge = exact_record(world, goal=(1, 0), resolution=41)
    assert "none can be reached from there, so no times are compared" in edge.summary
    assert "mean_error" not in names(edge) and value(edge, "reach_disagreement") == 0


def test_a_current_exactly_as_fast_as_the_vehicle():
    """Half of the plane can be reached; on its border times are infinite, not the inverse of a rounding error."""
    record = exact_record(CurrentWorld(ConstantCurrent(1.0, 0.0)), goal=(0.5, 0), resolution=41)
    axis, reached = np.linspace(-1, 1, 41), np.isfinite(record.arrays["from_goal"])
    assert reached[:, axis > 0.51].all() and reached[:, axis < 0.51].sum() == 1  # the goal itself
    assert record.arrays["from_goal"][reached].max() < 100
    assert value(record, "largest_error") < 1 and value(record, "reach_disagreement") <= 0.02


def test_ways_that_are_lost_between_nodes_are_left_out(monkeypatch: pytest.MonkeyPatch):
    """As happens on coarse grids where a vortex is several times faster than the vehicle."""
    traced = EnergyMap.path

    def path(self: EnergyMap, place: np.ndarray) -> np.ndarray:
        if place[1] > 0:
            raise InputError("The way was lost.")
        return traced(self, place)

    monkeypatch.setattr(EnergyMap, "path", path)
    record = exact_record(CurrentWorld(ConstantCurrent()), resolution=21)
    ways = [way["points"] for panel in record.figures[0]["panels"] for way in panel["paths"]]
    assert ways == ["to_goal_path_1", "from_goal_path_1"] and set(ways) <= set(record.arrays)


@pytest.mark.parametrize("goal", [(2, 0), (0,), (float("nan"), 0), (0, 0, 0)])
def test_goals_outside_the_box(goal: tuple[float, ...]):
    with pytest.raises(InputError, match="is outside the world, which reaches from -1 to 1 both ways"):
        exact_record(CurrentWorld(), goal=goal)


def test_a_resolution_that_is_too_low():
    with pytest.raises(InputError, match="at least 11 × 11 nodes, but a resolution of 10"):
        exact_record(CurrentWorld(), resolution=10)
