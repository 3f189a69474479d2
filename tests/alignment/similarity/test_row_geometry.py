"""Metrics from shared geometries agree with the plain functions: on all pairs, on parts, and on permuted pairs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from jepatlas.alignment.similarity import cka, cka_debiased, dsc, nos
from jepatlas.alignment.similarity.row_geometry import (
    GeometryMetric,
    Part,
    RowGeometry,
    permuted_cka,
    permuted_dsc,
    permuted_nos,
)

PAIRS: list[tuple[Callable[..., float], GeometryMetric]] = [
    (cka, partial(permuted_cka, debiased=False)),
    (cka_debiased, permuted_cka),
    (dsc, permuted_dsc),
    (partial(nos, k=1), partial(permuted_nos, k=1)),
    (partial(nos, k=7), partial(permuted_nos, k=7)),
]


@pytest.mark.parametrize(("plain", "shared"), PAIRS)
@pytest.mark.parametrize("ties", [False, True])
def test_shared_geometry_agrees_with_the_plain_metric(
    plain: Callable[..., float], shared: GeometryMetric, ties: bool
) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((60, 4)) + 3
    b = a[:, :3] + rng.standard_normal((60, 3))
    if ties:
        a, b = (np.repeat(x[:30], 2, axis=0) for x in (a, b))  # copies, at distance zero
    one, other = RowGeometry(a), RowGeometry(b)
    assert shared(one, other, None) == pytest.approx(plain(a, b), abs=1e-6)
    some = np.flatnonzero(rng.random(60) < 0.5)
    part = Part(some, 60)
    assert shared(one.part(part), other.part(part), None) == pytest.approx(plain(a[some], b[some]), abs=1e-6)
    if not ties:  # rows at equal distance may be ordered differently
        order = rng.permutation(60)
        assert shared(one, other, order) == pytest.approx(plain(a, b[order]), abs=1e-6)


@pytest.mark.parametrize(("plain", "shared"), PAIRS)
def test_constant_rows_are_undefined(plain: Callable[..., float], shared: GeometryMetric) -> None:
    a, b = np.ones((20, 2)), np.random.default_rng(0).standard_normal((20, 2))
    assert np.isnan(plain(a, b)) and np.isnan(shared(RowGeometry(a), RowGeometry(b), None))
