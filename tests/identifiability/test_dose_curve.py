"""Dose curve on worlds where isotropisation helps, has no effect, or harms."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.identifiability import SpectrumSettings, dose_response

QUICK = SpectrumSettings(features=64, length_scales=(0.7, 1.6), ridges=(1e-4, 1e-2), pilot=3000, replicates=20)
MIX = np.linalg.qr(np.random.default_rng(7).standard_normal((2, 2)))[0]


def gaussian(rows: int, rho: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    z, noise = np.random.default_rng(seed).standard_normal((2, rows, 2))
    return z, rho * z + np.sqrt(1 - rho**2) * noise


def observe(z: np.ndarray) -> np.ndarray:
    return np.sinh(z @ MIX / 2)


def curve(rho: list[float], doses: tuple[float, ...], **options: Any) -> list[float]:
    z, z_next = gaussian(4000, np.array(rho), 0)
    z_test = gaussian(2000, np.array(rho), 1)[0]
    points = dose_response(
        observe(z),
        observe(z_next),
        z,
        z_next,
        {"own": (observe(z_test), z_test)},
        dim=2,
        doses=doses,
        settings=QUICK,
        replicates=50,
        **options,
    )
    assert [point.dose for point in points] == list(doses)
    for point in points:
        assert point.recovery["own"].low <= point.recovery["own"].value <= point.recovery["own"].high
        assert point.recovery["own"].n == 1000 and point.share == point.ess / 4000
    assert all(one.ess >= other.ess for one, other in pairwise(points))
    return [point.recovery["own"].value for point in points]


@pytest.mark.parametrize("method", ["reweight", "resample"])
def test_isotropisation_recovers_a_direction_outside_the_window(method: Any):
    """ρ₂ = .8 < .95²: without weights, a harmonic of the slow direction replaces the fast direction."""
    none, full = curve([0.95, 0.8], (0.0, 1.0), method=method)
    assert none < 0.6 and full > 0.9


def test_isotropisation_has_no_effect_inside_the_window():
    none, full = curve([0.9, 0.9], (0.0, 1.0))
    assert none > 0.97 and full == pytest.approx(none, abs=0.01)


def test_too_few_effective_pairs_are_reported_without_error():
    rng = np.random.default_rng(0)
    z = 0.05 * rng.standard_normal((1000, 2)) + (rng.uniform(size=(1000, 1)) < 0.05) * rng.standard_normal((1000, 2))
    z_next = z + 0.01 * rng.standard_normal(z.shape)
    (point,) = dose_response(z, z_next, z, z_next, {"own": (z, z)}, dim=2, doses=(1.0,), settings=QUICK, units="given")
    assert point.ess < 200 and np.isnan(point.recovery["own"].value) and point.recovery["own"].n == 0


def test_errors_name_the_argument():
    z, z_next = gaussian(500, np.array([0.9, 0.9]), 0)
    with pytest.raises(InputError, match="tests"):
        dose_response(z, z_next, z, z_next, {}, dim=2)
    with pytest.raises(InputError, match=r"method.*'drop'"):
        dose_response(z, z_next, z, z_next, {"own": (z, z)}, dim=2, method="drop")  # pyright: ignore[reportArgumentType]
