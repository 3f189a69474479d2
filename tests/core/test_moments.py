"""Moments and batch covariance, compared with numpy."""

from __future__ import annotations

import numpy as np
import torch
from core.moments_reference import assert_moments, normal
from hypothesis import given
from hypothesis import strategies as st

from jepatlas.core.moments import Moments, batch_covariance


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_merged_moments_match_the_moments_of_all_rows(sizes, dim, seed):
    if sum(sizes) == 0:
        sizes = [*sizes, 1]
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(sum(sizes), dim)) * rng.uniform(0.1, 10, dim) + rng.normal(size=dim) * 100
    parts = [Moments.of(torch.from_numpy(part)) for part in np.split(rows, np.cumsum(sizes)[:-1])]
    forward = parts[0]
    for part in parts[1:]:
        forward = forward.merge(part)
    backward = parts[-1]
    for part in parts[-2::-1]:
        backward = part.merge(backward)  # the other order of merging
    order = [parts[i] for i in rng.permutation(len(parts))]
    shuffled = order[0]
    for part in order[1:]:
        shuffled = part.merge(shuffled)
    for merged in (forward, backward, shuffled):
        assert_moments(merged, rows)
    if len(rows) > 1:
        np.testing.assert_allclose(forward.covariance, np.atleast_2d(np.cov(rows, rowvar=False)), atol=1e-7)


def test_moments_of_no_rows():
    empty = Moments.of(torch.zeros(0, 2))
    assert empty.merge(empty).count == 0
    assert torch.equal(empty.merge(empty).mean, torch.zeros(2, dtype=torch.float64))


def test_moments_are_float64_and_detached():
    rows = (1e4 + normal(1000, 2)).float().requires_grad_()
    moments = Moments.of(rows)
    assert moments.mean.dtype == moments.scatter.dtype == torch.float64 and not moments.mean.requires_grad
    assert_moments(moments, rows.detach().double().numpy())


def test_batch_covariance_matches_numpy():
    h = normal(50, 3) + 5
    mean, covariance = batch_covariance(h)
    np.testing.assert_allclose(mean, h.numpy().mean(0))
    np.testing.assert_allclose(covariance, np.cov(h.numpy(), rowvar=False))
