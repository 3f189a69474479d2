"""Exact energies: tables against Floyd-Warshall, currents against the closed form and shooting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path
from workflows.energy.tiny import GRID

from jepatlas.core.errors import InputError
from jepatlas.core.figures import Curves, Landscape, LandscapePanel
from jepatlas.core.records import Record
from jepatlas.energy.exact import EnergyMap, zermelo
from jepatlas.workflows.energy import exact_record
from jepatlas.worlds import ConstantCurrent, CurrentWorld, GymTable, JetCurrent, OneWayGrid, ShearCurrent


def value(record: Record, name: str) -> float:
    return next(one.value for one in record.verdicts if one.name == name)


def panels(record: Record) -> Sequence[LandscapePanel]:
    figure = record.figures[0]
    assert isinstance(figure, Landscape)
    return figure.panels


def names(record: Record) -> set[str]:
    return {one.name for one in record.verdicts}


@pytest.mark.parametrize(
    "world", [GRID, replace(GRID, costly=((1, 1),), cliffs=((3, 2),)), GymTable(), GymTable("FrozenLake-v1")]
)
def test_tables_match_floyd_warshall(world: OneWayGrid | GymTable):
    steps = np.zeros((world.graph.size, world.graph.size))
    steps[world.graph.source, world.graph.target] = world.graph.cost
    truth = shortest_path(steps, method="FW")
    record = exact_record(world)
    np.testing.assert_array_equal(record.arrays["energies"], truth)
    unreachable = np.isinf(truth).sum() / (len(truth) * (len(truth) - 1))
    assert f"{unreachable:.1%}" in record.summary
    assert {"nonnegativity", "identity", "triangle", "asymmetry"} == names(record)


def test_landscapes_and_paths_of_a_grid():
    record = exact_record(GRID, goal=(1, 3))
    truth, goal = record.arrays["energies"], 7
    np.testing.assert_array_equal(record.arrays["to_goal"].ravel(), truth[:, goal])
    np.testing.assert_array_equal(record.arrays["from_goal"].ravel(), truth[goal])
    there, back = record.arrays["to_goal_path"], record.arrays["from_goal_path"]
    assert there[-1].tolist() == back[0].tolist() == [3, 1]  # column before row, as figures have it
    assert len(there) - 1 == truth[np.isfinite(truth[:, goal]), goal].max()
    assert (back[:, 0] >= 2).all()  # the wall cannot be crossed backwards
    assert (panels(record)[0].marks or [])[0].at == [3, 1]
    assert all(part in record.summary for part in ("(1, 3)", "15 states", "7 states"))


def test_the_default_goal_shows_the_asymmetry():
    record = exact_record(GRID)
    reached, left = (np.isfinite(record.arrays[name]).mean() for name in ("to_goal", "from_goal"))
    assert reached != left


@pytest.mark.parametrize("goal", [(4, 0), (0,), (0.5, 1), (0, 0, 0), (float("nan"), 0), (2, 2)])
def test_goals_outside_a_grid_are_rejected(goal: tuple[float, ...]):
    world = replace(GRID, obstacles=((2, 2),))
    with pytest.raises(InputError, match=r"goal .*\(3, 3\)"):
        exact_record(world, goal=goal)


def test_goals_are_state_numbers_without_a_plane_and_large_worlds_are_rejected():
    record = exact_record(GymTable("Taxi-v4"), goal=[3])
    assert "(3)" in record.summary
    assert [type(figure) for figure in record.figures] == [Curves]  # the states have no positions
    with pytest.raises(InputError, match="4096"):
        exact_record(OneWayGrid(65, 64))


def test_a_graph_without_edges_is_rejected():
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
    assert "400" in record.summary
    assert all(path.points in record.arrays for panel in panels(record) for path in panel.paths or [])


def test_a_shear_current_against_shooting(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("jepatlas.workflows.energy.exact_energies.AUDITED", 3)
    monkeypatch.setattr("jepatlas.workflows.energy.exact_energies.COMPARED", 25)
    monkeypatch.setattr("jepatlas.workflows.energy.ground_truth.RESOLUTION", 41)
    record = exact_record(CurrentWorld(ShearCurrent(0.9)), resolution=101)
    assert value(record, "mean_error") < 0.003 and "shooting" in record.summary
    assert value(record, "asymmetry") > 0
    fast = exact_record(CurrentWorld(ShearCurrent(1.2)), resolution=41)
    jet = exact_record(CurrentWorld(JetCurrent()), resolution=41)
    for other in (fast, jet):
        assert "mean_error" not in names(other) and "no independent method" in other.summary


def test_a_current_faster_than_the_vehicle_reaches_only_a_cone():
    """Only the cone downstream of the goal is reachable, and no place from the downstream edge."""
    world = CurrentWorld(ConstantCurrent(2.0, 0.0))
    record = exact_record(world, goal=(0, 0), resolution=81)
    axis = np.linspace(-1, 1, 81)
    x, y = np.meshgrid(axis, axis)
    inside = (x > 0) & (np.abs(y) < x / np.sqrt(3) - 0.05)
    outside = (x < -0.05) | (np.abs(y) > x / np.sqrt(3) + 0.1)
    assert np.isfinite(record.arrays["from_goal"][inside]).all() and np.isinf(record.arrays["from_goal"][outside]).all()
    assert value(record, "reach_disagreement") < 0.02
    edge = exact_record(world, goal=(1, 0), resolution=41)
    assert "mean_error" not in names(edge) and value(edge, "reach_disagreement") == 0


def test_a_current_as_fast_as_the_vehicle_reaches_half_of_the_plane():
    """Half of the plane is reachable; on its border times are infinite, not the inverse of a rounding error."""
    record = exact_record(CurrentWorld(ConstantCurrent(1.0, 0.0)), goal=(0.5, 0), resolution=41)
    axis, reached = np.linspace(-1, 1, 41), np.isfinite(record.arrays["from_goal"])
    assert reached[:, axis > 0.51].all() and reached[:, axis < 0.51].sum() == 1  # the goal itself
    assert record.arrays["from_goal"][reached].max() < 100
    assert value(record, "largest_error") < 1 and value(record, "reach_disagreement") <= 0.02


def test_paths_that_cannot_be_traced_are_left_out(monkeypatch: pytest.MonkeyPatch):
    """This happens on coarse grids if a vortex is several times faster than the vehicle."""
    traced = EnergyMap.path

    def path(self: EnergyMap, place: np.ndarray) -> np.ndarray:
        if place[1] > 0:
            raise InputError("The path was lost.")
        return traced(self, place)

    monkeypatch.setattr(EnergyMap, "path", path)
    record = exact_record(CurrentWorld(ConstantCurrent()), resolution=21)
    paths = [path.points for panel in panels(record) for path in panel.paths or []]
    assert paths == ["to_goal_path_1", "from_goal_path_1"] and set(paths) <= set(record.arrays)


@pytest.mark.parametrize("goal", [(2, 0), (0,), (float("nan"), 0), (0, 0, 0)])
def test_goals_outside_the_box_are_rejected(goal: tuple[float, ...]):
    with pytest.raises(InputError, match="goal"):
        exact_record(CurrentWorld(), goal=goal)


def test_a_resolution_that_is_too_low_is_rejected():
    with pytest.raises(InputError, match=r"resolution .*11.*10"):
        exact_record(CurrentWorld(), resolution=10)
