"""The monitor in plain loops: what it records, when, from which pairs, and in several processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from processes import run_processes
from torch import Tensor

import jepatlas as ja
from jepatlas.core.distributed import rank, world_size
from jepatlas.core.errors import InputError
from jepatlas.core.files import finite, read_json
from jepatlas.core.normality import epps_pulley_null
from jepatlas.core.seeding import torch_generator
from jepatlas.monitoring import MonitorRow, quick_verdicts
from jepatlas.reporting import write_report

mpl.use("Agg")
RHO = 0.9
BATCH = 128


def pairs(step: int, rows: int = BATCH) -> tuple[Tensor, Tensor]:
    """States and their successors of a Gaussian world."""
    z, noise = torch.randn(2, rows, 2, generator=torch_generator(0, "pairs", step))
    return z, RHO * z + (1 - RHO**2) ** 0.5 * noise


def bend(z: Tensor, amount: float) -> Tensor:
    """Rotated and, the more the larger `amount`, nonlinear latents."""
    turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]])
    return (z + amount * torch.stack([z[:, 1] ** 2, torch.zeros(len(z))], 1)) @ turn.T


def train(monitor: ja.Monitor, steps: int, *, truth: bool = True) -> list[MonitorRow | None]:
    """A loop whose latents become linear in the state."""
    rows = []
    for step in range(steps):
        z, z_next = pairs(step)
        amount = 1 - (step + 1) / steps
        rows.append(monitor.update(bend(z, amount), bend(z_next, amount), z if truth else None, step=step))
    return rows


def test_records_follow_the_training() -> None:
    seen: list[MonitorRow] = []
    monitor = ja.Monitor(every=40, rows=2000, on_record=seen.append)
    rows = train(monitor, 120)
    assert [step for step, row in enumerate(rows) if row is not None] == [39, 79, 119]
    assert monitor.history == seen == [row for row in rows if row is not None]
    first, _, last = monitor.history
    assert [row.step for row in monitor.history] == [39, 79, 119]
    assert first.r2 is not None and last.r2 is not None
    assert first.r2.high < 0.98 < last.r2.low
    assert last.bound.value < first.bound.value
    assert last.bound_whitened.value < first.bound_whitened.value
    assert last.rho.low < RHO < last.rho.high
    assert last.dimension.value == last.effective_rank.value == 2
    assert last.sigreg.value < 3 * epps_pulley_null() < first.sigreg.value
    assert last.pairs == 2048  # whole batches


def test_a_record_is_the_certificate_of_the_last_pairs() -> None:
    """The same numbers as from all rows of the steps before the record, which the buffer holds completely."""
    monitor = ja.Monitor(every=30, rows=8 * BATCH, rho=RHO)
    train(monitor, 30)
    steps = [pairs(step) for step in range(22, 30)]
    h, h_next, z = [], [], []
    for step, (state, successor) in enumerate(steps, start=22):
        amount = 1 - (step + 1) / 30
        h.append(bend(state, amount))
        h_next.append(bend(successor, amount))
        z.append(state)
    arrays = [torch.cat(parts).double().numpy() for parts in (h, h_next, z)]
    expected = ja.certify(*arrays, rho=RHO)
    row = monitor.history[0]
    assert row.pairs == 8 * BATCH
    for name in ("bound", "bound_whitened", "r2", "effective_rank"):
        assert row.estimates()[name].value == pytest.approx(expected[name].value, rel=1e-6)


def test_large_batches_are_subsampled() -> None:
    monitor = ja.Monitor(every=10, rows=800)
    z, z_next = pairs(0, rows=5000)
    for _ in range(10):
        monitor.update(z.clone().requires_grad_(), z_next)
    assert [row.pairs for row in monitor.history] == [800]


def test_an_empty_batch_adds_nothing() -> None:
    monitor = ja.Monitor(every=3, rows=600)
    for rows in (150, 0, 150):
        monitor.update(*pairs(rows, rows))
    assert [row.pairs for row in monitor.history] == [300]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_latents_of_any_dtype(dtype: torch.dtype) -> None:
    monitors = [ja.Monitor(every=4, rows=400), ja.Monitor(every=4, rows=400)]
    for step in range(4):
        z, z_next = pairs(step)
        monitors[0].update(z.to(dtype), z_next.to(dtype))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            monitors[1].update(z.to(dtype).float().numpy(), z_next.to(dtype).float().numpy())
    first, second = (monitor.history[0].values() for monitor in monitors)
    assert first | {"seconds": 0} == pytest.approx(second | {"seconds": 0}, nan_ok=True)


def test_the_global_random_state_is_left_alone() -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()
    train(ja.Monitor(every=5, rows=600), 5)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]


@pytest.mark.parametrize("value", [torch.nan, 1.0])
def test_diverged_and_collapsed_latents_do_not_stop_the_training(value: float) -> None:
    monitor = ja.Monitor(every=5, rows=600, rho=RHO)
    h = torch.full((BATCH, 2), value)
    for step in range(5):
        monitor.update(h, h, pairs(step)[0])
    row = monitor.history[0]
    assert np.isnan(row.dimension.value)
    assert row.r2 is not None and not row.r2.value > 0.5
    assert np.isnan(row.effective_rank.value) if np.isnan(value) else row.effective_rank.value == 0
    assert monitor.result().passed is not True


@pytest.mark.parametrize("width", [1, 40])
def test_latents_of_any_width(width: int) -> None:
    rng = np.random.default_rng(0)
    z, noise = rng.standard_normal((2, 2000, width))
    found = {verdict.name: verdict for verdict in quick_verdicts(z, RHO * z + (1 - RHO**2) ** 0.5 * noise, z)}
    assert found["r2"].value > 0.999
    assert found["effective_rank"].value == width
    assert found["rho"].low < RHO < found["rho"].high


def test_wrong_use_is_explained() -> None:
    z, z_next = pairs(0)
    monitor = ja.Monitor(every=2, rows=400)
    with pytest.raises(InputError, match="'h_next'"):
        monitor.update(z, z_next[:-1])
    with pytest.raises(InputError, match="'z'"):
        ja.Monitor(every=2).update(z, z_next, z[:, 0])
    with pytest.raises(InputError, match="'h'"):
        monitor.update(None, z_next)
    with pytest.raises(InputError, match="every"):
        ja.Monitor(every=0)
    with pytest.raises(InputError, match="folder"):
        ja.Monitor(track=("tensorboard",))
    with pytest.raises(InputError, match="rho"):
        ja.Monitor(rho=1.5)
    few = ja.Monitor(every=2, rows=400)
    few.update(z[:5], z_next[:5])
    with pytest.raises(InputError, match="10 were collected"):
        few.update(z[:5], z_next[:5])
    mixed = ja.Monitor(every=3, rows=400)
    mixed.update(z, z_next, z)
    with pytest.raises(InputError, match="'z'"):
        mixed.update(z, z_next)


def test_the_record_is_drawn_by_report_and_in_notebooks(tmp_path: Path) -> None:
    monitor = ja.Monitor(every=10, rows=800, folder=tmp_path)
    train(monitor, 20)
    saved = read_json(tmp_path / "records" / "monitor.json")
    assert saved["figures"][0]["kind"] == "curves"
    assert len(saved["figures"][0]["panels"]) == 7
    page = write_report([tmp_path], tmp_path / "page.html", title="Run")
    assert "Certificate during training" in page.read_text()
    assert len(monitor.plot()) == 7
    assert "Certificate during training" in monitor._repr_html_()
    assert monitor.result()["r2"].value == monitor.history[-1].r2.value


def test_the_history_is_a_table() -> None:
    pytest.importorskip("pandas")
    monitor = ja.Monitor(every=10, rows=800)
    assert monitor.to_frame().empty
    train(monitor, 20)
    frame = monitor.to_frame()
    assert list(frame.index) == [9, 19]
    assert frame.loc[19, "r2_low"] == monitor.history[1].r2.low


def test_trackers_receive_each_record(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with ja.Monitor(every=10, rows=800, folder=tmp_path, track=("tensorboard",)) as monitor:
        train(monitor, 20)
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    found = [(event.step, event.value) for event in events.Scalars("monitor/r2")]
    expected = [(row.step, row.values()["r2"]) for row in monitor.history]
    assert found == [(step, pytest.approx(value)) for step, value in expected]


def test_wandb_logs_into_the_run_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    wandb: Any = pytest.importorskip("wandb")
    own = wandb.init(project="mine", dir=str(tmp_path))
    try:
        with ja.Monitor(every=10, rows=800, folder=tmp_path, track=("wandb",)) as monitor:
            train(monitor, 10)
        own.log({"loss": 1.0}, step=11)  # the run is still open; this completes the step before
        assert own.summary["monitor/r2"] == monitor.history[0].values()["r2"]
    finally:
        own.finish()


def test_a_resumed_monitor_continues() -> None:
    whole = ja.Monitor(every=10, rows=1200)
    train(whole, 20)
    first = ja.Monitor(every=10, rows=1200)
    train(first, 10)
    second = ja.Monitor(every=10, rows=1200)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert second.history[0].columns() == pytest.approx(first.history[0].columns(), nan_ok=True)
    assert finite(second.result().record.to_json()) == finite(first.result().record.to_json())
    for step in range(10, 20):
        z, z_next = pairs(step)
        amount = 1 - (step + 1) / 20
        second.update(bend(z, amount), bend(z_next, amount), z, step=step)
    assert [row.step for row in second.history] == [9, 19]
    assert second.history[1].bound == whole.history[1].bound


def gathered(path: Path) -> tuple[list[dict[str, float]], bool]:
    monitor = ja.Monitor(every=8, rows=8 * BATCH, rho=RHO, folder=path / str(rank()))
    half = slice(rank(), None, world_size())
    for step in range(8):
        z, z_next = (x[half] for x in pairs(step))
        row = monitor.update(bend(z, 0.2), bend(z_next, 0.2), z)
        assert (row is not None) == (step == 7)
    return [row.values() for row in monitor.history], (path / str(rank())).exists()


@pytest.mark.slow
def test_processes_record_the_pairs_of_all_of_them(tmp_path: Path) -> None:
    """The processes share the rows of each batch, so they record what one process would, up to the order of rows."""
    (first, wrote), (second, other_wrote) = run_processes(gathered, 2, tmp_path)
    assert first[0] == pytest.approx(second[0], nan_ok=True)
    assert wrote and not other_wrote
    alone = ja.Monitor(every=8, rows=8 * BATCH, rho=RHO)
    for step in range(8):
        z, z_next = pairs(step)
        alone.update(bend(z, 0.2), bend(z_next, 0.2), z)
    expected = alone.history[0].values()
    assert first[0]["pairs"] == expected["pairs"] == 8 * BATCH
    assert first[0]["sigreg"] == pytest.approx(expected["sigreg"], rel=1e-3)  # does not depend on the order
    assert first[0]["r2"] == pytest.approx(expected["r2"], abs=0.02)
