"""The callback with real trainers of Lightning."""

from __future__ import annotations

import importlib
import logging
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import jepatlas as ja
from jepatlas.core.errors import InputError
from jepatlas.core.seeding import torch_generator
from jepatlas.objectives import LeJEPA

EVERY = 6
PACKAGES = ["lightning.pytorch", "pytorch_lightning"]


@pytest.fixture(params=PACKAGES)
def lightning(request: pytest.FixtureRequest) -> Any:
    for name in PACKAGES:  # the callback serves the packages that are loaded when it is imported
        pytest.importorskip(name)
    logging.getLogger(request.param).setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    return importlib.import_module(request.param)


def module(lightning: Any, *, manual: bool = False) -> Any:
    """A LeJEPA; `manual` optimises and returns its state as modules of stable-pretraining do."""

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = not manual
            self.encoder = nn.Linear(2, 2)
            self.objective = LeJEPA(self.encoder)

        def forward(self, batch: list[Tensor], stage: str) -> dict[str, Any]:
            del stage
            x, x_next = batch
            h, h_next = self.encoder(x), self.encoder(x_next)
            loss = (h - h_next).square().mean() + (h.T.cov() - torch.eye(2)).square().mean()
            return {"loss": loss, "h": h, "h_next": h_next, "state": x}

        def training_step(self, batch: list[Tensor], batch_idx: int) -> dict[str, Any]:
            del batch_idx
            state = self(batch, stage="fit")
            if manual:
                optimizer = self.optimizers()
                self.manual_backward(state["loss"])
                optimizer.step()
                optimizer.zero_grad()
            return state

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    return Module()


def loader(batches: int = 4 * EVERY) -> DataLoader[Any]:
    z, noise = torch.randn(2, 128 * batches, 2, generator=torch_generator(0, "pairs"))
    return DataLoader(TensorDataset(z, 0.9 * z + 0.19**0.5 * noise), batch_size=128)


def trainer(lightning: Any, folder: Path, *callbacks: Any, epochs: int = 1) -> Any:
    return lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=lightning.loggers.CSVLogger(folder),
        log_every_n_steps=EVERY,
        callbacks=list(callbacks),
        enable_progress_bar=False,
        enable_model_summary=False,
    )


@pytest.mark.parametrize("manual", [False, True])
def test_records_are_made_and_logged(lightning: Any, manual: bool, tmp_path: Path) -> None:
    monitor = ja.Monitor(every=EVERY, rows=600)
    run = trainer(lightning, tmp_path, ja.LightningMonitor(monitor, pairs=("h", "h_next", "state")))
    run.fit(module(lightning, manual=manual), loader())
    assert [row.step for row in monitor.history] == [6, 12, 18, 24]
    assert all(row.r2.value > 0.999 for row in monitor.history)  # a linear encoder
    assert run.callback_metrics["monitor/r2"] == pytest.approx(monitor.history[-1].r2.value)
    assert "monitor/bound_whitened" in Path(run.logger.log_dir, "metrics.csv").read_text()


def test_pairs_by_a_function_and_from_the_batch(lightning: Any, tmp_path: Path) -> None:
    monitor = ja.Monitor(every=EVERY, rows=600)

    def pairs(outputs: Any, batch: Any, network: Any) -> tuple[Tensor, Tensor]:
        assert "loss" in outputs
        return network.encoder(batch[0]), network.encoder(batch[1])

    trainer(lightning, tmp_path, ja.LightningMonitor(monitor, pairs)).fit(module(lightning), loader())
    assert len(monitor.history) == 4 and monitor.history[0].r2 is None


def test_early_stopping_reads_the_records(lightning: Any, tmp_path: Path) -> None:
    monitor = ja.Monitor(every=EVERY, rows=600)
    stop = lightning.callbacks.EarlyStopping("monitor/rho", mode="max", stopping_threshold=0.5)
    run = trainer(lightning, tmp_path, ja.LightningMonitor(monitor), stop, epochs=5)
    run.fit(module(lightning), loader(EVERY))
    assert len(monitor.history) == 1 and run.current_epoch < 5


def test_checkpoints_hold_the_history(lightning: Any, tmp_path: Path) -> None:
    monitor = ja.Monitor(every=EVERY, rows=600)
    run = trainer(lightning, tmp_path, ja.LightningMonitor(monitor))
    run.fit(module(lightning), loader())
    run.save_checkpoint(tmp_path / "saved.ckpt")
    resumed = ja.Monitor(every=EVERY, rows=600)
    second = trainer(lightning, tmp_path, ja.LightningMonitor(resumed), epochs=2)
    second.fit(module(lightning), loader(), ckpt_path=tmp_path / "saved.ckpt")
    assert [row.step for row in resumed.history] == [6, 12, 18, 24, 30, 36, 42, 48]
    for row, saved in zip(resumed.history, monitor.history, strict=False):
        assert row.columns() == pytest.approx(saved.columns(), nan_ok=True)


def test_missing_keys_are_named(lightning: Any, tmp_path: Path) -> None:
    callback = ja.LightningMonitor(ja.Monitor(every=EVERY), pairs=("embedding", "h_next"))
    with pytest.raises(InputError, match=r"'embedding'.*h_next"):
        trainer(lightning, tmp_path, callback).fit(module(lightning), loader())
    with pytest.raises(InputError, match="two or three keys"):
        ja.LightningMonitor(ja.Monitor(), pairs=("h",))
