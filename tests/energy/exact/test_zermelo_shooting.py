import numpy as np
import pytest
from scipy.optimize import minimize

from jepatlas.core.errors import InputError
from jepatlas.energy.exact.navigation import zermelo
from jepatlas.energy.exact.zermelo_shooting import Shear, shoot

JET = Shear(lambda y: 0.8 * np.cos(np.pi * y / 2) ** 2, lambda y: -0.4 * np.pi * np.sin(np.pi * y), 1.2)
GAUSS, WEIGHTS = (np.polynomial.legendre.leggauss(3)[0] + 1) / 2, np.polynomial.legendre.leggauss(3)[1] / 2
TARGETS = np.array([[-0.9, 0.0], [0.8, 0.1], [0.2, -0.9], [-0.4, 0.7], [0.01, 0.0]])


def best_polyline(shear: Shear, source: np.ndarray, target: np.ndarray, pieces: int = 16) -> float:
    """The least duration of polylines with few pieces, from several initial guesses: a tight upper bound."""
    way = np.linspace(source, target, pieces + 1)

    def duration(inner: np.ndarray) -> float:
        path = np.concatenate([way[:1], inner.reshape(-1, 2), way[-1:]])
        w = shear.current(path[:-1, 1] + GAUSS[:, None] * np.diff(path[:, 1]))
        return float(WEIGHTS @ zermelo(path[:-1], path[1:], np.stack([w, 0 * w], axis=-1), shear.speed).sum(-1))

    hump = np.sin(np.linspace(0, np.pi, pieces + 1))[1:-1, None] * [0.0, 1.0]
    guesses = [way[1:-1] + height * hump for height in (-0.8, 0.8)]
    return min(float(minimize(duration, guess.ravel(), method="L-BFGS-B").fun) for guess in guesses)


def test_a_constant_current_has_the_closed_form() -> None:
    shear = Shear(lambda y: 0.7 + 0 * y, lambda y: 0 * y, 1.5)
    truth = zermelo(np.zeros(2), TARGETS, np.array([0.7, 0.0]), 1.5)
    np.testing.assert_allclose(shoot(shear, np.zeros(2), TARGETS).time, truth, rtol=1e-9)


def test_times_match_the_best_polyline() -> None:
    source = np.array([0.1, 0.0])
    found = shoot(JET, source, TARGETS).time
    for time, target in zip(found[:2], TARGETS[:2], strict=True):
        best = best_polyline(JET, source, target)
        assert time == pytest.approx(best, rel=5e-3)
        assert time < best * (1 + 1e-6)


def test_paths_arrive_and_conserve_the_hamiltonian() -> None:
    source = np.array([0.1, 0.2])
    arrivals = shoot(JET, source, TARGETS)
    paths = arrivals.paths()
    np.testing.assert_allclose(paths[:, 0], np.broadcast_to(source, TARGETS.shape))
    np.testing.assert_allclose(paths[:, -1], TARGETS, atol=1e-7)
    _, y, heading = np.moveaxis(JET.path(source, arrivals.heading, arrivals.time), 1, 0)
    conserved = np.cos(heading) / (JET.speed + JET.current(y) * np.cos(heading))
    np.testing.assert_allclose(conserved, np.broadcast_to(conserved[0], conserved.shape), atol=1e-7)


def test_the_time_to_the_source_is_zero() -> None:
    arrivals = shoot(JET, np.zeros(2), np.zeros((1, 2)))
    assert arrivals.time.tolist() == [0.0]
    assert np.isnan(arrivals.heading).all()


def test_a_current_as_fast_as_the_vehicle_is_rejected() -> None:
    with pytest.raises(InputError, match="current"):
        shoot(Shear(lambda y: 1.0 + y, lambda y: 1 + 0 * y), np.zeros(2), TARGETS)
