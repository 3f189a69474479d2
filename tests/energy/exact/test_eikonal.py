from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter, label

from jepatlas.core.errors import InputError
from jepatlas.core.graphs import Graph
from jepatlas.energy.exact.eikonal import energies_from, energies_to
from jepatlas.energy.exact.medium import Medium
from jepatlas.energy.exact.navigation import zermelo
from jepatlas.energy.exact.shortest_paths import graph_energies
from jepatlas.energy.exact.zermelo_shooting import Shear, shoot

SOURCE = np.array([-0.5, -0.3])


def square(n: int) -> np.ndarray:
    """Points of a grid over [−1, 1]², (n, n, 2)."""
    axis = np.linspace(-1, 1, n)
    return np.stack(np.meshgrid(axis, axis), axis=-1)


def medium(current: np.ndarray, **more: object) -> Medium:
    n = len(current)
    return Medium(current, origin=(-1.0, -1.0), spacing=(2 / (n - 1), 2 / (n - 1)), **more)  # pyright: ignore[reportArgumentType]


def constant(n: int, w: tuple[float, float], **more: object) -> Medium:
    return medium(np.broadcast_to(np.array(w), (n, n, 2)), **more)


def eddies(n: int, strength: float = 0.6) -> np.ndarray:
    return swirl(square(n), strength)


def swirl(points: np.ndarray, strength: float) -> np.ndarray:
    x, y = np.moveaxis(points, -1, 0)
    return strength * np.stack([np.sin(3 * y), np.cos(3 * x)], axis=-1)


def errors(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    somewhere = np.isfinite(truth) & (truth > 1e-9)
    return np.abs(found[somewhere] / truth[somewhere] - 1)


@pytest.mark.parametrize("w", [(0.0, 0.0), (0.5, 0.2), (-0.9, 0.0), (0.0, 0.99)])
def test_a_constant_current_is_exact_when_factored(w: tuple[float, float]) -> None:
    truth = zermelo(SOURCE, square(41), np.array(w))
    assert errors(energies_from(constant(41, w), SOURCE).values, truth).max() < 1e-4
    assert errors(energies_from(constant(41, w), SOURCE, factored=False).values, truth).max() < 0.01


@pytest.mark.parametrize("w", [(1.0, 0.0), (1.2, 0.5), (0.3, -4.0)])
def test_a_fast_current_reaches_only_its_cone(w: tuple[float, float]) -> None:
    truth, found = zermelo(SOURCE, square(41), np.array(w)), energies_from(constant(41, w), SOURCE)
    assert not found.factored
    np.testing.assert_array_equal(np.isfinite(found.values), np.isfinite(truth))
    assert 0 < np.isinf(truth).mean() < 1
    assert errors(found.values, truth).max() < 0.02


def test_speed_and_metric_are_changes_of_units_and_axes() -> None:
    turn = np.array([[np.cos(0.4), -np.sin(0.4)], [np.sin(0.4), np.cos(0.4)]])
    stretch = turn @ np.diag([1.0, 3.0])  # x' = A x: Euclidean coordinates
    w = np.array([0.3, 0.2])
    found = energies_from(constant(41, tuple(w), speed=2.0, metric=stretch.T @ stretch), SOURCE)
    truth = zermelo(SOURCE @ stretch.T, square(41) @ stretch.T, stretch @ w, 2.0)
    assert errors(found.values, truth).max() < 1e-4


def sheared(source: np.ndarray) -> tuple[Shear, np.ndarray, np.ndarray]:
    """A shear current that changes sign: targets whose paths stay inside the square, and travel times by shooting."""
    bend = np.pi / 2
    shear = Shear(lambda y: 0.9 * np.sin(bend * y), lambda y: 0.9 * bend * np.cos(bend * y))
    targets = square(11).reshape(-1, 2)
    arrivals = shoot(shear, source, targets)
    inside = (np.abs(arrivals.paths(60)).max((1, 2)) <= 1 + 1e-6) & (arrivals.time > 0)
    assert inside.mean() > 0.85
    return shear, targets[inside], arrivals.time[inside]


def in_shear(shear: Shear, n: int) -> Medium:
    y = square(n)[..., 1]
    return medium(np.stack([shear.current(y), 0 * y], axis=-1))


def test_a_shear_current_agrees_with_shooting_to_second_order() -> None:
    shear, targets, truth = sheared(np.zeros(2))
    mean = {}
    for n in (21, 41, 81):
        found = errors(energies_from(in_shear(shear, n), np.zeros(2))(targets), truth)
        mean[n] = found.mean()
        assert found.max() < 0.5 * (20 / (n - 1)) ** 2 * 0.05
    assert mean[81] < 3e-4
    assert np.log2(mean[21] / mean[41]) > 1.5
    assert np.log2(mean[41] / mean[81]) > 1.5


def test_energies_to_a_goal_are_energies_from_it_in_the_reversed_current() -> None:
    shear, targets, truth = sheared(SOURCE)
    backwards = in_shear(Shear(lambda y: -shear.current(y), lambda y: -shear.slope(y)), 61)
    found = energies_to(backwards, SOURCE)(targets)
    assert errors(found, truth).max() < 0.01
    one_way = energies_from(backwards, SOURCE)(targets)
    assert errors(one_way, truth).mean() > 0.1


def test_energies_from_and_to_agree() -> None:
    waters = medium(eddies(41))
    points = np.array([[-0.5, -0.3], [0.4, 0.7], [0.9, -0.8], [0.05, 0.0]])
    there = np.array([energies_from(waters, p)(points) for p in points])
    back = np.array([energies_to(waters, p)(points) for p in points]).T
    np.testing.assert_allclose(there, back, rtol=0.01, atol=1e-12)
    assert np.abs(there - there.T).max() > 0.2
    assert (there >= 0).all()
    assert (there[:, None] <= (there[:, :, None] + there[None]) * 1.01).all()


def test_the_energy_to_a_set_is_that_of_its_nearest_member() -> None:
    waters = medium(eddies(41))
    goals = np.array([[-0.5, -0.3], [0.4, 0.7], [0.9, -0.8]])
    each = np.stack([energies_to(waters, goal).values for goal in goals])
    together = energies_to(waters, goals)
    assert not together.factored
    nearest = each.min(0)
    assert errors(together.values, nearest).max() < 0.01
    np.testing.assert_allclose(together(goals), 0, atol=1e-12)


def fine_graph(points: np.ndarray, strength: float, reach: int = 5) -> Graph:
    """A graph with straight edges to all nodes nearby, at their travel times: an upper bound of the least time."""
    n = len(points)
    i, j = np.indices((n, n)).reshape(2, -1)
    edges = []
    for di, dj in np.ndindex(2 * reach + 1, 2 * reach + 1):
        to = i + di - reach, j + dj - reach
        inside = (np.minimum(*to) >= 0) & (np.maximum(*to) < n)
        a, b = points[i[inside], j[inside]], points[to[0][inside], to[1][inside]]
        time = [zermelo(a, b, swirl(a + share * (b - a), strength)) for share in (1 / 6, 1 / 2, 5 / 6)]
        edges.append((i[inside] * n + j[inside], to[0][inside] * n + to[1][inside], np.mean(time, axis=0)))
    return Graph(n * n, *map(np.concatenate, zip(*edges, strict=True)))


@pytest.mark.parametrize(
    ("strength", "above"), [(0.6, 0.006), (0.8, 0.02)]
)  # the second one exceeds the vehicle's speed in places
def test_eddies_agree_with_a_graph_of_many_directions(strength: float, above: float) -> None:
    bound = graph_energies(fine_graph(square(41), strength), [14 * 41 + 10])[0].reshape(41, 41)  # the node of SOURCE
    found = energies_from(medium(eddies(81, strength)), SOURCE).values[::2, ::2]
    relative = found[bound > 0] / bound[bound > 0] - 1
    assert relative.max() < above
    assert relative.min() > -0.05
    assert np.abs(relative).mean() < 0.01


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_walls_are_impassable(seed: int) -> None:
    """Reachable cells are connected by sides: no path passes between walls that touch at a corner."""
    rng = np.random.default_rng(seed)
    free = rng.random((12, 15)) > 0.4
    i, j = np.argwhere(free)[rng.integers(free.sum())]
    waters = Medium(0.7 * rng.uniform(-1, 1, (12, 15, 2)) / np.sqrt(2), passable=free)
    rooms = np.zeros(free.shape, dtype=np.int32)
    label(free, output=rooms)
    found = energies_from(waters, np.array([float(j), float(i)]))
    np.testing.assert_array_equal(np.isfinite(found.values), rooms == rooms[i, j])
    assert (found.values >= 0).all()


def test_paths_around_a_wall_touch_its_corners() -> None:
    free = np.ones((61, 61), dtype=bool)
    free[:41, 30] = False
    found = energies_from(Medium(np.zeros((61, 61, 2)), passable=free), np.array([20.0, 10.0]))
    corners = np.array([[29.5, 40.5], [30.5, 40.5]])
    way = np.hypot(*(corners[0] - [20, 10])) + 1 + np.hypot(*(np.array([45, 5]) - corners[1]))
    assert found(np.array([45.0, 5.0])) == pytest.approx(
        way, rel=0.03
    )  # paths keep a distance of part of a cell from corners
    assert np.isinf(found.values[~free]).all()


def duration(waters: Medium, path: np.ndarray) -> float:
    """Travel time of a polyline in short pieces, each in the current at its midpoint."""
    cuts = np.linspace(0, 1, 9)
    fine = np.concatenate([a + cuts[:-1, None] * (b - a) for a, b in pairwise(path)] + [path[-1:]])
    middle = waters.places((fine[1:] + fine[:-1]) / 2)
    i, j = middle.astype(int).clip(0, np.array(waters.shape) - 2).T
    a, b = (middle - np.stack([i, j], axis=-1)).T[..., None]
    w = waters.current
    here = (1 - a) * ((1 - b) * w[i, j] + b * w[i, j + 1]) + a * ((1 - b) * w[i + 1, j] + b * w[i + 1, j + 1])
    return float(zermelo(fine[:-1], fine[1:], here).sum())


@pytest.mark.parametrize("walls", [False, True])
def test_the_duration_of_a_path_is_its_energy(walls: bool) -> None:
    free = np.ones((61, 61), dtype=bool)
    if walls:
        free[10:, 30] = free[:50, 45] = False
    waters = medium(eddies(61), passable=free)
    for point in np.array([[-0.9, -0.123], [0.31, 0.77], [0.95, 0.1]]):
        there, back = energies_to(waters, SOURCE), energies_from(waters, SOURCE)
        path = there.path(point)
        np.testing.assert_allclose(path[[0, -1]], [point, SOURCE], atol=1e-12)
        assert duration(waters, path) == pytest.approx(there(point), rel=0.02)
        path = back.path(point)
        np.testing.assert_allclose(path[[0, -1]], [SOURCE, point], atol=1e-12)
        assert duration(waters, path) == pytest.approx(back(point), rel=0.02)


def rough(n: int, strength: float, seed: int) -> Medium:
    """A current that varies on the scale of the grid, with speed at most `strength`."""
    w = gaussian_filter(np.random.default_rng(seed).standard_normal((n, n, 2)), (1.5, 1.5, 0))
    return medium(strength * w / np.linalg.norm(w, axis=-1).max())


def test_every_path_is_found_in_a_rough_slow_current() -> None:
    """Near the source, T is too inaccurate to determine the direction back to it."""
    end = SOURCE + 0.03  # between the nodes
    for seed in range(4):
        waters, points = rough(21, 0.9, seed), np.random.default_rng(seed).uniform(-1, 1, (12, 2))
        for found in (energies_from(waters, end), energies_to(waters, end)):
            for point in points:
                ends = np.stack([point, end] if found.to_goal else [end, point])
                np.testing.assert_allclose(found.path(point)[[0, -1]], ends, atol=1e-12)


def test_a_path_lost_in_a_fast_current_is_an_input_error() -> None:
    found = energies_to(rough(31, 3.0, 3), SOURCE)
    with pytest.raises(InputError, match="path"):
        found.path(np.array([0.5, 0.5]))


def test_unreachable_points_have_an_empty_path() -> None:
    found = energies_from(constant(21, (2.0, 0.0)), np.zeros(2))
    assert np.isinf(found(np.array([-0.5, 0.0])))
    assert found.path(np.array([-0.5, 0.0])).shape == (0, 2)
    assert found.path(np.array([0.55, 0.1])).shape[0] > 2


def test_interpolated_energies_are_as_accurate_as_nodal_ones() -> None:
    w = np.array([0.6, 0.3])
    points = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    for factored, allowed in ((True, 1e-4), (False, 0.02)):
        found = energies_from(constant(41, (0.6, 0.3)), np.array([0.013, 0.27]), factored)
        assert errors(found(points), zermelo(np.array([0.013, 0.27]), points, w)).max() < allowed
        np.testing.assert_allclose(found(square(41)), found.values, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ([3.0, 0.0], "outside the grid"),
        ([np.nan, 0.0], "outside the grid"),
        ([0.0, 0.0], "inside a wall"),
        ([0.0, 0.0, 0.0], "points must be"),
        (np.zeros((0, 2)), "must be one point"),
        (np.zeros((1, 1, 2)), "must be one point"),
    ],
)
def test_invalid_ends_are_rejected(ends: list, message: str) -> None:
    free = np.ones((21, 21), dtype=bool)
    free[10, 10] = False
    waters = constant(21, (0.1, 0.0), passable=free)
    for solve in (energies_from, energies_to):
        with pytest.raises(InputError, match=message):
            solve(waters, np.array(ends))
    with pytest.raises(InputError, match="outside the grid"):
        energies_from(waters, SOURCE)(np.array([0.0, 1.5]))
