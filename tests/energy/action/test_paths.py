"""Minimal paths against closed forms: straight lines, currents, sizes and the Poincaré half-plane."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from jepatlas.core.errors import InputError
from jepatlas.energy.action import (
    Anisotropic,
    Conformal,
    Current,
    Effort,
    Euclidean,
    Pullback,
    Scale,
    minimal_paths,
)
from jepatlas.energy.action.paths import equal_steps, euler_lagrange_residuals, path_action, path_residual

HALF_PLANE = Conformal(lambda x: 1 / x[..., 1], 1e-3)
SHEAR = Current(lambda x: torch.stack([0.8 * torch.tanh(x[..., 1]), 0 * x[..., 1]], -1), 0.8)


def ends(count: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    start, goal = np.random.default_rng(seed).uniform(0.5, 3.0, (2, count, 2))
    return start, goal


def bent(start: np.ndarray, goal: np.ndarray, steps: int = 32) -> np.ndarray:
    """Paths that are far from minimal, and unevenly spaced."""
    share = np.linspace(0, 1, steps + 1)[None, :, None] ** 2
    paths = (1 - share) * start[:, None] + share * goal[:, None] + 0.3 * np.sin(np.pi * share)
    paths[:, -1] = goal
    return paths


def cross(rows: np.ndarray, way: np.ndarray) -> np.ndarray:
    return rows[:, 0] * way[1] - rows[:, 1] * way[0]


def actions(effort: Effort, start: np.ndarray, goal: np.ndarray, **options) -> np.ndarray:
    return np.array([path.action for path in minimal_paths(start, goal, effort, **options)])


def test_euclidean_paths_are_straight_for_any_initial_path() -> None:
    start, goal = ends()
    for path, x, y in zip(
        minimal_paths(start, goal, Euclidean(2.0), initial=bent(start, goal)), start, goal, strict=True
    ):
        assert path.action == pytest.approx(2 * np.linalg.norm(y - x), rel=1e-8)
        off = cross(path.points - x, y - x) / np.linalg.norm(y - x)
        assert np.abs(off).max() < 1e-3 and path.residual < 1e-2
        steps = np.linalg.norm(np.diff(path.points, axis=0), axis=1)
        assert steps.max() < 1.05 * steps.min()  # evenly spaced


@pytest.mark.parametrize("speed", [0.0, 0.5, 0.9])
def test_the_action_in_a_constant_current_is_zermelos_time(speed: float) -> None:
    """|W| < 1: T = (−d·W + √((d·W)² + (1 − |W|²)|d|²)) / (1 − |W|²)."""
    current = speed * np.array([0.6, 0.8])
    start, goal = ends()
    d, slack = goal - start, 1 - speed**2
    time = (-d @ current + np.sqrt((d @ current) ** 2 + slack * (d**2).sum(1))) / slack
    assert actions(Current.constant(current), start, goal, initial=bent(start, goal)) == pytest.approx(time, rel=1e-5)


def test_a_current_faster_than_the_vehicle_allows_one_direction_only() -> None:
    effort, d = Current.constant(np.array([2.0, 0.0])), np.array([[3.0, 0.5], [-3.0, 0.5]])
    down, up = minimal_paths(np.zeros((2, 2)), d, effort)
    along, slack = d[0] @ [2, 0], 2.0**2 - 1
    assert down.action == pytest.approx((along - np.sqrt(along**2 - slack * (d[0] @ d[0]))) / slack, rel=1e-6)
    assert up.action == np.inf and not up.reached and np.isnan(up.residual)


def test_the_scale_effort_has_its_closed_form_action() -> None:
    start, goal = ends()
    ratio = np.log(goal / start)
    exact = (2.0 * np.maximum(ratio, 0) + 0.5 * np.maximum(-ratio, 0)).sum(1)
    assert actions(Scale(2.0, 0.5, 10.0), start, goal, steps=48) == pytest.approx(exact, rel=2e-3)


def test_the_half_plane_gives_the_poincare_distance_to_second_order() -> None:
    start, goal = ends(20)  # many paths with many points, where unpreconditioned descent stops too early
    exact = np.arccosh(1 + ((goal - start) ** 2).sum(1) / (2 * start[:, 1] * goal[:, 1]))
    coarse, fine = (minimal_paths(start, goal, HALF_PLANE, steps=steps) for steps in (16, 64))
    errors = [np.abs([path.action for path in found] / exact - 1).max() for found in (coarse, fine)]
    assert errors[1] < 5e-5 and errors[0] / errors[1] == pytest.approx(16, rel=0.1)
    assert max(path.residual for path in fine) < 2e-3
    chord = np.linspace(start[0], goal[0], 65)
    assert path_residual(chord, HALF_PLANE) > 0.1


def test_a_constant_metric_has_straight_minimal_paths() -> None:
    metric, (start, goal) = np.array([[2.0, 0.5], [0.5, 1.0]]), ends()
    exact = np.sqrt(np.einsum("bi,ij,bj->b", goal - start, metric, goal - start))
    found = actions(Anisotropic.constant(metric), start, goal, initial=bent(start, goal))
    assert found == pytest.approx(exact, rel=1e-6)


def test_minimal_paths_of_a_pullback_decode_to_minimal_paths() -> None:
    """Polar coordinates decode to the plane, where shortest paths are straight."""

    def decoder(h: torch.Tensor) -> torch.Tensor:
        return torch.stack([h[..., 0] * torch.cos(h[..., 1]), h[..., 0] * torch.sin(h[..., 1])], -1)

    start, goal = np.array([[1.0, 0.2]]), np.array([[2.0, 1.8]])
    (path,) = minimal_paths(start, goal, Pullback(Euclidean(), decoder, 0.3), steps=48)
    here, there = (decoder(torch.as_tensor(end)).numpy() for end in (start, goal))
    assert path.action == pytest.approx(np.linalg.norm(there - here), rel=1e-3)
    between = decoder(torch.as_tensor(path.points)).numpy() - here
    assert np.abs(cross(between, (there - here)[0])).max() < 0.01


def test_the_action_does_not_depend_on_the_parametrisation() -> None:
    at = np.linspace(0, 1, 2001)
    for clock in (at, at**2, (at + np.sin(np.pi * at) / 5)):
        curve = np.stack([3 * clock, 1 + np.sin(3 * clock)], 1)
        reference = np.stack([3 * at, 1 + np.sin(3 * at)], 1)
        assert path_action(curve, SHEAR) == pytest.approx(path_action(reference, SHEAR), rel=1e-5)
        assert path_residual(curve, SHEAR) == pytest.approx(path_residual(reference, SHEAR), rel=1e-2)


def test_the_euclidean_residual_is_the_turning_angle() -> None:
    angle = np.linspace(0, np.pi / 2, 400)
    arc = 3 * np.stack([np.cos(angle), np.sin(angle)], 1)
    assert path_residual(arc, Euclidean(5.0)) == pytest.approx(np.pi / 2, rel=0.02)
    assert euler_lagrange_residuals(arc, Euclidean()).shape == (396, 2)


def test_the_action_from_a_point_to_itself_is_zero() -> None:
    start, _ = ends()
    for path in minimal_paths(start, start, HALF_PLANE):
        assert path.action == path.residual == 0 and len(path.points) == 1


def test_minimal_actions_obey_the_triangle_inequality() -> None:
    x, y, z = np.random.default_rng(0).uniform(-1, 1, (3, 12, 2))
    found = actions(SHEAR, np.concatenate([x, x, y]), np.concatenate([z, y, z]))
    direct, first, second = found.reshape(3, -1)
    assert (direct <= (first + second) * (1 + 1e-3)).all()


def test_a_shear_current_is_asymmetric_and_its_path_bends_into_it() -> None:
    start, goal = np.array([[0.0, 0.0], [4.0, 0.0]]), np.array([[4.0, 0.0], [0.0, 0.0]])
    there, back = minimal_paths(start, goal, SHEAR, initial=bent(start, goal))
    assert there.points[:, 1].max() > 0.3 and there.action < 4  # upwards, where the current helps
    assert there.residual < 0.1 and back.residual < 0.1


def test_equal_steps_resample_the_same_polygon() -> None:
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 3.0]])
    assert equal_steps(corners, 4) == pytest.approx(np.array([[0, 0], [1, 0], [1, 1], [1, 2], [1, 3]]))


@pytest.mark.parametrize(
    ("start", "goal", "options"),
    [
        (np.zeros((2, 2)), np.zeros((3, 2)), {}),
        (np.zeros(2), np.zeros(2), {}),
        (np.zeros((1, 2)), np.full((1, 2), np.nan), {}),
        (np.zeros((1, 2)), np.ones((1, 2)), {"steps": 3}),
        (np.zeros((1, 2)), np.ones((1, 2)), {"initial": np.zeros((1, 9, 2))}),
    ],
)
def test_invalid_ends_are_rejected(start: np.ndarray, goal: np.ndarray, options: dict) -> None:
    with pytest.raises(InputError):
        minimal_paths(start, goal, Euclidean(), **options)
