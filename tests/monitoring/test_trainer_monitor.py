"""The callback with a real Trainer of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

import jepatlas as ja
from jepatlas.core.errors import InputError
from jepatlas.core.files import read_json
from jepatlas.core.seeding import torch_generator

EVERY = 6


class Model(nn.Module):
    """A linear encoder."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder = nn.Linear(2, 2)

    def forward(self, x: Tensor, x_next: Tensor) -> dict[str, Tensor]:
        h, h_next = self.encoder(x), self.encoder(x_next)
        loss = (h - h_next).square().mean() + (h.T.cov() - torch.eye(2)).square().mean()
        return {"loss": loss, "h": h, "h_next": h_next, "state": x}


def pairs(batches: int = 4 * EVERY) -> list[dict[str, Tensor]]:
    z, noise = torch.randn(2, 128 * batches, 2, generator=torch_generator(0, "pairs"))
    rows = zip(z, 0.9 * z + 0.19**0.5 * noise, strict=True)
    return [{"x": first, "x_next": second} for first, second in rows]


def trainer(folder: Path, *callbacks: Any, steps: int = 4 * EVERY, accumulate: int = 1, **options: Any) -> Any:
    arguments = transformers.TrainingArguments(
        str(folder),
        max_steps=steps,
        per_device_train_batch_size=128 // accumulate,
        gradient_accumulation_steps=accumulate,
        learning_rate=0.01,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        logging_strategy="no",
        **{"save_strategy": "no"} | options,
    )
    data: Any = pairs()
    return transformers.Trainer(Model(), arguments, train_dataset=data, eval_dataset=data[:200], callbacks=[*callbacks])


@pytest.mark.parametrize("accumulate", [1, 2])
def test_records_are_made_and_logged(accumulate: int, tmp_path: Path):
    monitor = ja.Monitor(every=EVERY, rows=600)
    callback = ja.TrainerMonitor(monitor, pairs=("h", "h_next", "state"))
    run = trainer(tmp_path, callback, accumulate=accumulate, eval_strategy="steps", eval_steps=4)
    run.train()
    assert [row.step for row in monitor.history] == [6, 12, 18, 24]
    assert all(row.pairs >= 600 and row.r2 and row.r2.value > 0.99 for row in monitor.history), "linear"
    logged = [entry for entry in run.state.log_history if "monitor/r2" in entry]
    assert [entry["step"] for entry in logged] == [6, 12, 18, 24]
    assert logged[-1]["monitor/bound_whitened"] == pytest.approx(monitor.history[-1].bound_whitened.value, nan_ok=True)
    run.model.train()
    run.model(**{name: torch.randn(4, 2) for name in ("x", "x_next")})
    run.train()
    assert len(monitor.history) == 8, "calls between two trainings are not recorded"


def test_pairs_by_a_function_and_early_stopping(tmp_path: Path):
    monitor = ja.Monitor(every=EVERY, rows=600)

    def find(outputs: Any, inputs: Any, model: Any) -> tuple[Tensor, Tensor]:
        assert "loss" in outputs
        return model.encoder(inputs["x"]), model.encoder(inputs["x_next"])

    run = trainer(tmp_path, ja.TrainerMonitor(monitor, find, stop=lambda row: row.step >= 2 * EVERY))
    run.train()
    assert run.state.global_step == 2 * EVERY and len(monitor.history) == 2 and monitor.history[0].r2 is None


def test_checkpoints_hold_the_history(tmp_path: Path):
    monitor = ja.Monitor(every=EVERY, rows=600)
    whole = {"save_strategy": "steps", "save_steps": 2 * EVERY}
    trainer(tmp_path, ja.TrainerMonitor(monitor), **whole).train()
    saved = read_json(tmp_path / f"checkpoint-{2 * EVERY}" / "jepatlas_monitor.json")
    assert [row["step"] for row in saved["history"]] == [6, 12]
    resumed = ja.Monitor(every=EVERY, rows=600)
    trainer(tmp_path, ja.TrainerMonitor(resumed), **whole).train(
        resume_from_checkpoint=str(tmp_path / f"checkpoint-{2 * EVERY}")
    )
    assert [row.step for row in resumed.history] == [6, 12, 18, 24]
    for row, other in zip(resumed.history, monitor.history, strict=True):
        assert row.bound_whitened.value == pytest.approx(other.bound_whitened.value, rel=1e-4, nan_ok=True)


def test_missing_keys_are_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"'embedding'.*h_next"):
        trainer(tmp_path, ja.TrainerMonitor(ja.Monitor(every=EVERY), pairs=("embedding", "h_next"))).train()
    with pytest.raises(InputError, match="two or three keys"):
        ja.TrainerMonitor(ja.Monitor(), pairs="h")
