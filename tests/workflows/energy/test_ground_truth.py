"""Ground truth of worlds and files: states, observations and exact energies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path
from workflows.energy.tiny import GRID, TRUTH, recipe, step_arrays, write_steps

from jepatlas.core.errors import InputError
from jepatlas.recipes import StepFile, WalkConfig, apply_mixing
from jepatlas.workflows.energy import ground_truth_of, world_ground_truth
from jepatlas.worlds import ConstantCurrent, Coupling, CurrentWorld, GymTable, OneWayGrid, VortexCurrent


def dense_truth(world: OneWayGrid | GymTable) -> np.ndarray:
    """Floyd-Warshall on a dense matrix."""
    steps = np.full((world.graph.size, world.graph.size), np.inf)
    steps[world.graph.source, world.graph.target] = world.graph.cost
    return shortest_path(np.where(np.isinf(steps), 0, steps), method="FW")


def test_all_states_of_a_grid():
    ground = world_ground_truth(GRID)
    np.testing.assert_array_equal(ground.truth, dense_truth(GRID))
    np.testing.assert_allclose(ground.x, GRID.observe(GRID.positions))
    assert ground.unreachable == pytest.approx(64 / 240) and ground.gridded  # 8 · 8 of 16 · 15 pairs


def test_large_worlds_are_subsampled_in_order():
    world = OneWayGrid(21, 21, wall=10)
    ground = world_ground_truth(world, seed=-3)
    assert ground.positions is not None and ground.truth is not None and len(ground.x) == 400
    number = {tuple(cell): state for state, cell in enumerate(world.positions)}
    chosen = [number[tuple(cell)] for cell in ground.positions]
    assert chosen == sorted(set(chosen))
    np.testing.assert_array_equal(ground.truth, dense_truth(world)[np.ix_(chosen, chosen)])
    assert not np.array_equal(ground.x, world_ground_truth(world, seed=1).x)


def test_states_without_a_plane_have_no_positions():
    ground = world_ground_truth(GymTable("Taxi-v4"))
    assert ground.positions is None and not ground.gridded and ground.x.shape == (400, 500)


def test_constant_currents_use_the_closed_form(monkeypatch: pytest.MonkeyPatch):
    """d = (W + s e) T with ‖e‖ = 1, so the time of each pair is a root of a quadratic equation."""
    monkeypatch.setattr("jepatlas.workflows.energy.ground_truth.PLACES", 12)
    ground = world_ground_truth(CurrentWorld(ConstantCurrent(1.5, 0.5), speed=1.0, half=2.0))
    assert ground.truth is not None and ground.positions is not None and not ground.gridded
    for i, j in np.ndindex(12, 12):
        d = ground.positions[j] - ground.positions[i]
        roots = np.roots([1.5**2 + 0.5**2 - 1, float(-2 * d @ [1.5, 0.5]), float(d @ d)])
        times = [root.real for root in roots if abs(root.imag) < 1e-12 and root.real >= 0]
        assert ground.truth[i, j] == (pytest.approx(min(times)) if times else np.inf)
    assert np.isinf(ground.truth).any() and np.abs(ground.x).max() <= 1


def test_varying_currents_use_the_solver(monkeypatch: pytest.MonkeyPatch):
    """A vortex is rotation-invariant: rotated places have the same times."""
    monkeypatch.setattr("jepatlas.workflows.energy.ground_truth.RESOLUTION", 41)
    from jepatlas.workflows.energy.ground_truth import current_energies

    z = np.array([[0.6, 0.1], [-0.2, 0.5]])
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    world = CurrentWorld(VortexCurrent())
    times, turned = current_energies(world, z), current_energies(world, z @ turn)
    np.testing.assert_allclose(times, turned, rtol=0.02)
    assert times[0, 1] < times[1, 0] and (np.diag(times) == 0).all()  # the vortex rotates anticlockwise


def test_observations_are_mixed():
    given = recipe(mixing=Coupling())
    np.testing.assert_array_equal(ground_truth_of(given).x, apply_mixing(Coupling(), GRID.observe(GRID.positions)))


def file_recipe(path: Path):
    return recipe(source=StepFile(str(path)), walk=WalkConfig())


def test_points_and_truth_of_a_file(tmp_path: Path):
    x = GRID.observe(GRID.positions)
    ground = ground_truth_of(file_recipe(write_steps(tmp_path / "s.npz", points=x, truth=TRUTH)))
    np.testing.assert_array_equal(ground.x, x)
    np.testing.assert_array_equal(ground.truth, TRUTH)
    assert ground.positions is None
    ground = ground_truth_of(file_recipe(write_steps(tmp_path / "p.npz", points=x[:5])))
    assert ground.truth is None and len(ground.x) == 5


def test_points_default_to_the_distinct_states_of_a_file(tmp_path: Path):
    ground = ground_truth_of(file_recipe(write_steps(tmp_path / "s.csv")))
    assert {tuple(row) for row in ground.x.round(9)} == {tuple(row) for row in step_arrays()["x"].round(9)}


NAN, BELOW = TRUTH.copy(), TRUTH.copy()
NAN[2, 3], BELOW[2, 3] = np.nan, -1
POINTS = GRID.observe(GRID.positions)
BAD = {
    "'truth' requires 'points'": {"truth": TRUTH},
    "'points' must be (n, 2) like x, but its shape is (16, 3)": {"points": np.ones((16, 3))},
    "'points' has 1 NaN": {"points": np.where(np.arange(32).reshape(16, 2) == 5, np.nan, POINTS)},
    "2 points": {"points": POINTS[:1]},
    "(15, 15)": {"points": POINTS[:15], "truth": TRUTH},
    "square": {"points": POINTS, "truth": TRUTH[:9]},
    "from state 2 to state 3": {"points": POINTS, "truth": NAN},
    "from 2 to 3": {"points": POINTS, "truth": BELOW},
}


@pytest.mark.parametrize("message", BAD)
def test_invalid_files_are_rejected(message: str, tmp_path: Path):
    with pytest.raises(InputError) as refusal:
        ground_truth_of(file_recipe(write_steps(tmp_path / "s.npz", **BAD[message])))
    assert message in str(refusal.value) and "s.npz" in str(refusal.value)
