"""Streamed metrics equal those of all rows at once, over batches, merges and processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from processes import run_processes
from torch import Tensor

from jepatlas.alignment.similarity import cka, mutual_knn
from jepatlas.core.distributed import rank
from jepatlas.core.errors import InputError
from jepatlas.core.linear import least_squares, r2
from jepatlas.core.normality import epps_pulley_null
from jepatlas.core.seeding import torch_generator
from jepatlas.identifiability.dimension.rank import effective_rank
from jepatlas.monitoring import CKA, EffectiveRank, LinearR2, MutualKNN, SIGRegStatistic, StreamedMetric
from jepatlas.objectives import SIGRegConfig, draw_slices
from jepatlas.objectives.sigreg import sigreg

ROWS = 300


def latents() -> tuple[Tensor, Tensor]:
    """Related latents of 5 and 3 dimensions, far from the origin; the last of the 5 repeats the first."""
    generator = torch_generator(0, "latents")
    z = torch.randn(ROWS, 3, generator=generator)
    h = torch.tanh(z @ torch.randn(3, 5, generator=generator)) + 20
    h[:, 4] = 2 * h[:, 0]
    return h, z


def sigreg_of(h: np.ndarray, _: np.ndarray) -> float:
    config = SIGRegConfig()
    rows = torch.from_numpy(h)
    slices = draw_slices(h.shape[1], config.slices, torch_generator(0, "slices"), config.design)
    return float(sigreg(rows, slices.to(rows)))


def held_out_r2(h: np.ndarray, z: np.ndarray) -> float:
    return r2(z[1::2], least_squares(h[::2], z[::2]).apply(h[1::2]))


CASES: dict[str, tuple[Callable[[], Any], Callable[[np.ndarray, np.ndarray], float], int]] = {
    "cka": (CKA, cka, 2),
    "linear r2": (LinearR2, held_out_r2, 2),
    "mutual knn": (MutualKNN, mutual_knn, 2),
    "effective rank": (EffectiveRank, lambda h, _: effective_rank(h, h).value, 1),
    "sigreg": (SIGRegStatistic, sigreg_of, 1),
}


def updated(name: str, parts: list[tuple[Tensor, Tensor]]) -> StreamedMetric[Any]:
    make, _, arguments = CASES[name]
    metric = make()
    for pair in parts:
        metric.update(*pair[:arguments])
    return metric


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("size", [1, 7, ROWS])
def test_batches_give_the_value_of_all_rows(name: str, size: int) -> None:
    h, z = latents()
    if name == "effective rank":
        h = h - 20  # the reference standardises the rows themselves
    found = updated(name, list(zip(h.split(size), z.split(size), strict=True)))
    assert found.compute() == pytest.approx(CASES[name][1](h.numpy(), z.numpy()), rel=2e-3)


@pytest.mark.parametrize("name", CASES)
def test_metrics_merge_and_reset(name: str) -> None:
    h, z = latents()
    first = updated(name, [(h[:100], z[:100])])
    second = updated(name, [(h[100:], z[100:])])
    value = first.compute()
    merged = first.merge(second)
    assert merged.compute() == pytest.approx(updated(name, [(h, z)]).compute(), rel=1e-4)
    assert first.compute() == value  # merging changes neither
    first.reset()
    with pytest.raises(InputError, match="update"):
        first.compute()


@pytest.mark.parametrize("name", CASES)
def test_inputs_of_any_dtype_and_kind(name: str) -> None:
    h, z = (x.half().float() for x in latents())
    expected = updated(name, [(h, z)]).compute()
    for pair in [(h.half(), z.half()), (h.double(), z.double()), (h.clone().requires_grad_(), z)]:
        assert updated(name, [pair]).compute() == pytest.approx(expected, rel=1e-4)
    assert updated(name, [(h.numpy(), z.numpy())]).compute() == expected


def test_wrong_input_names_the_argument() -> None:
    h, z = latents()
    with pytest.raises(InputError, match="'z'"):
        LinearR2().update(h, z[:, 0])
    with pytest.raises(InputError, match="'b'"):
        CKA().update(h, z[:-1])
    with pytest.raises(InputError, match="'h'"):
        EffectiveRank().update(h * torch.nan)
    metric = LinearR2()
    metric.update(h[:8], z[:8])
    with pytest.raises(InputError, match="more than 10 rows"):
        metric.compute()


def test_sigreg_of_gaussian_latents_is_its_null() -> None:
    metric = SIGRegStatistic(SIGRegConfig(slices=256))
    for part in torch.randn(4000, 8, generator=torch_generator(0, "gaussian")).split(500):
        metric.update(part)
    assert metric.compute() == pytest.approx(epps_pulley_null(), rel=0.2)


def test_mutual_knn_samples_rows_uniformly() -> None:
    """Rows of one half of the stream are sampled as often as the others, however it is divided."""
    metric = MutualKNN(k=1, rows=200)
    index = torch.arange(4000.0)[:, None].expand(-1, 2)
    for part in index.split(130):
        metric.update(part, part)
    assert metric.state is not None
    kept = metric.state.a[:, 0]
    assert len(kept) == len(np.unique(kept)) == 200
    assert abs((kept < 2000).mean() - 0.5) < 0.15


def two_processes() -> dict[str, tuple[float, float]]:
    h, z = latents()
    part = slice(0, 80) if rank() == 0 else slice(80, None)  # of different sizes
    found = {}
    for name in CASES:
        metric = updated(name, [(h[part], z[part])])
        found[name] = metric.sync().compute(), metric.compute()
    return found


@pytest.mark.slow
def test_sync_gives_the_value_of_the_rows_of_all_processes() -> None:
    h, z = latents()
    first, second = run_processes(two_processes, 2)
    for name in CASES:
        assert first[name][0] == second[name][0] == pytest.approx(updated(name, [(h, z)]).compute(), rel=1e-4)
        assert first[name][1] == updated(name, [(h[:80], z[:80])]).compute()  # the local state is unchanged
