"""Detection of NaN, divergence and collapse; healthy runs are not stopped."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn
from training.small import WORDS, call, metrics, recipe, tensors

from jepatlas.core.contracts import Batches
from jepatlas.core.errors import InputError
from jepatlas.core.records import Pairs
from jepatlas.nn import MLPConfig
from jepatlas.objectives import (
    CovarianceConfig,
    InfoNCEConfig,
    LeJEPA,
    LeJEPAConfig,
    VICRegConfig,
    WhiteningConfig,
)
from jepatlas.recipes import build_batches, build_objective
from jepatlas.training import TrainingConfig, train
from jepatlas.training.health import HealthCheck
from jepatlas.workflows.runs import start_run


def with_nan(name: str, at: int, row: int) -> Batches:
    clean = build_batches(recipe())

    def batches(step: int) -> Pairs:
        batch = clean(step)
        if step == at:
            getattr(batch, name)[row, 1] = torch.nan
        return batch

    return batches


@pytest.mark.parametrize("name", ["x", "x_next"])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_nan_in_the_data_stops_the_run(name: str, accumulate: int, tmp_path: Path):
    config = TrainingConfig(steps=40, batch_size=32 * accumulate, accumulate=accumulate, log_every=10)
    config = replace(config, checkpoint_every=7)
    message = rf"'{name}' of batch 24 \(step {24 // accumulate + 1}\) has 1 .* row 5\. "
    with pytest.raises(InputError, match=message):
        train(LeJEPA(nn.Linear(2, 2)), with_nan(name, 24, 5), config, tmp_path, recipe="mine")
    newest = tensors(tmp_path)
    assert all(value.isfinite().all() for value in newest.values())
    assert list((tmp_path / "checkpoints").glob("step-*"))
    outcome = train(LeJEPA(nn.Linear(2, 2)), build_batches(recipe()), config, tmp_path, recipe="mine")
    assert outcome.status == "finished"  # after the data are fixed
    steps = [line["step"] for line in metrics(tmp_path)]
    assert steps == sorted(set(steps))


def test_non_finite_weights_are_not_saved_despite_finite_loss(tmp_path: Path):
    """The loss of a step is computed before its weight update."""
    fine = Pairs(*(torch.ones(8, 2) * torch.arange(8.0)[:, None] for _ in range(4)))
    objective = LeJEPA(nn.Linear(2, 2))
    weight: nn.Parameter = objective.encoder.weight  # pyright: ignore[reportAssignmentType]
    weight.register_hook(lambda grad: torch.full_like(grad, torch.inf))
    outcome = train(
        objective, lambda step: fine, TrainingConfig(steps=1, batch_size=8, grace=0), tmp_path, recipe="mine"
    )
    assert outcome.status == "failed"
    assert outcome.verdict is not None
    assert outcome.verdict.name == "finite_loss"
    assert not (tmp_path / "checkpoints").exists()


def test_divergence_message_gives_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["--encoder.width", "16", "--encoder.depth", "3", "--lr", "1e15", "--schedule", "constant"]
    code = call("train", *words, "--steps", "60", "--log-every", "5", "--out", tmp_path / "run", "--json", "-")
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert code == 1
    assert answer["status"] == "failed"
    assert answer["verdicts"][0]["name"] == "finite_loss"
    assert answer["verdicts"][0]["passed"] is False
    assert "Try a lower lr" in " ".join(err.split())
    assert "Traceback" not in err
    outcome = json.loads((tmp_path / "run" / "records" / "outcome.json").read_text())
    assert outcome["verdicts"][0]["name"] == "finite_loss"
    assert "failed after 5 of 60 steps" in outcome["summary"]


@pytest.mark.slow
def test_collapsing_run_is_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = [*WORDS, "--objective.weight", "0", "--steps", "3000", "--log-every", "10", "--grace", "50"]
    assert call("train", *words, "--out", tmp_path / "run") == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "The latents collapsed" in out
    assert "--objective.weight" in out
    outcome = json.loads((tmp_path / "run" / "records" / "outcome.json").read_text())
    (verdict,) = outcome["verdicts"]
    assert verdict["name"] == "variance"
    assert verdict["passed"] is False
    assert verdict["value"] < verdict["threshold"]
    assert metrics(tmp_path / "run")[-1]["step"] < 3000


def test_collapse_check_can_be_disabled(tmp_path: Path):
    given = replace(recipe(steps=60, grace=0, log_every=5, collapse=0.0), objective=LeJEPAConfig(weight=0.0))
    assert start_run(given, tmp_path / "never").status == "finished"
    patient = replace(given, training=replace(given.training, collapse=1e6, grace=45))
    outcome = start_run(patient, tmp_path / "late")
    assert (outcome.status, outcome.step) == ("failed", 55)  # the third consecutive check: 45, 50, 55


@pytest.mark.parametrize("interrupted", [6, 10, 12, 14])
def test_interruption_does_not_change_when_a_collapse_is_detected(interrupted: int, tmp_path: Path):
    """Checks at steps 5, 10 and 15 count; the check before an interrupted run is saved does not."""
    given = recipe(steps=60, grace=0, log_every=5, collapse=1e6)
    batches = build_batches(given)
    whole = train(build_objective(given), batches, given.training, tmp_path / "whole", recipe="mine")
    assert (whole.status, whole.step) == ("failed", 15)

    def stopped(step: int) -> Pairs:
        if step == interrupted - 1:
            signal.raise_signal(signal.SIGINT)
        return batches(step)

    run = tmp_path / "parts"
    assert train(build_objective(given), stopped, given.training, run, recipe="mine").step == interrupted
    resumed = train(build_objective(given), batches, given.training, run, recipe="mine")
    assert (resumed.status, resumed.step) == ("failed", 15)
    assert resumed.verdict == whole.verdict


def test_unscheduled_check_detects_non_finite_weights():
    health = HealthCheck(tolerance=1e-4, grace=0)
    verdicts = [health.check(step, 0.1, torch.zeros(20, 2), due=False) for step in range(5)]
    assert verdicts == [None] * 5
    broken = health.check(5, 0.1, torch.full((20, 2), torch.nan), due=False)
    assert broken is not None
    assert broken.name == "finite_loss"


def test_temporary_collapse_does_not_stop_a_run():
    health = HealthCheck(tolerance=1e-4, grace=0)
    flat, round_ = torch.zeros(20, 2), torch.randn(20, 2)
    verdicts = [health.check(step, 0.1, h) for step, h in enumerate([flat, flat, round_, flat, flat])]
    assert verdicts == [None] * 5
    last = health.check(5, 0.1, flat)
    assert last is not None
    assert last.n == 20


def test_one_collapsed_direction_is_reported_with_advice():
    """Its variance exceeds the tolerance but is negligible relative to the others; the verdict must fail."""
    h = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0)) * torch.tensor([100.0, 0.02])
    health = HealthCheck(tolerance=1e-4, grace=0)
    verdict = [health.check(step, 0.1, h) for step in range(3)][-1]
    assert verdict is not None
    assert verdict.value > 1e-4
    assert verdict.passed is False
    assert "collapsed" in verdict.advice


HEALTHY = [
    LeJEPAConfig(),
    VICRegConfig(),
    CovarianceConfig(),
    InfoNCEConfig(),
    InfoNCEConfig(kernel="cosine"),
    WhiteningConfig(),
]


@pytest.mark.slow
@pytest.mark.parametrize("objective", HEALTHY, ids=lambda o: f"{o.kind}-{getattr(o, 'kernel', '')}")
def test_healthy_run_is_not_stopped(objective, tmp_path: Path):
    """Checked from the second step on, without the default grace period."""
    given = replace(recipe(steps=150, grace=2, log_every=1, checkpoint_every=1000), objective=objective)
    given = replace(given, encoder=MLPConfig(width=64, depth=2))
    assert start_run(given, tmp_path / "run").status == "finished"
