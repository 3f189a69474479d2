"""Training loop against a plain reference loop; resumption, signals, averages and validation."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from training.small import metrics, recipe, same, tensors

from jepatlas.core.errors import InputError
from jepatlas.core.records import Crops, Loss, Pairs
from jepatlas.objectives import ExactWhitening, LeJEPA, PairObjective, VICReg, WhiteningConfig
from jepatlas.recipes import Recipe, build_batches, build_objective
from jepatlas.training import (
    ConstantSchedule,
    CosineSchedule,
    OneCycleSchedule,
    Outcome,
    TrainingConfig,
    latest_checkpoint,
    load_checkpoint,
    load_weights,
    train,
)
from jepatlas.workflows.runs import load_objective, resume_run, start_run


def plain_loop(given: Recipe) -> PairObjective:
    """Reference implementation of the training loop."""
    objective, batches, config = build_objective(given), build_batches(given), given.training
    optimizer = torch.optim.AdamW(
        objective.parameters(), config.lr, config.betas, weight_decay=config.weight_decay, fused=True
    )
    for step in range(config.steps):
        optimizer.param_groups[0]["lr"] = config.lr * config.schedule.factor(step, config.steps)
        optimizer.zero_grad()
        objective(batches(step), step).total.backward()
        if config.clip:
            nn.utils.clip_grad_norm_(objective.parameters(), config.clip)
        optimizer.step()
    return objective


def equal(run: Path, objective: nn.Module) -> bool:
    ours = tensors(run)
    return all(torch.equal(ours[f"model.{name}"], value) for name, value in objective.state_dict().items())


@pytest.mark.parametrize("schedule", [ConstantSchedule(warmup=5), CosineSchedule(warmup=5, hold=3), OneCycleSchedule()])
def test_training_matches_the_plain_loop_for_each_schedule(schedule, tmp_path: Path):
    given = recipe(steps=30, schedule=schedule, betas=(0.8, 0.95))
    assert start_run(given, tmp_path / "run") == Outcome("finished", 30)
    assert equal(tmp_path / "run", plain_loop(given))
    assert not equal(tmp_path / "run", build_objective(given))


def test_clipping_bounds_the_gradient(tmp_path: Path):
    given = recipe(steps=20, clip=0.01)
    start_run(given, tmp_path / "run")
    assert equal(tmp_path / "run", plain_loop(given))
    assert not equal(tmp_path / "run", plain_loop(replace(given, training=replace(given.training, clip=None))))


def test_logged_metrics_are_means_over_micro_batches(tmp_path: Path):
    given = recipe(steps=1, batch_size=96, accumulate=3, log_every=1)
    start_run(given, tmp_path / "run")
    objective, batches = build_objective(given), build_batches(given)
    losses = [objective(batches(micro), micro) for micro in range(3)]
    (entry,) = metrics(tmp_path / "run")
    assert entry["loss"] == pytest.approx(sum(loss.total.item() for loss in losses) / 3, rel=1e-5)
    assert entry["sigreg"] == pytest.approx(sum(loss.terms["sigreg"].item() for loss in losses) / 3, rel=1e-5)


def test_accumulated_gradient_is_the_mean_over_micro_batches(tmp_path: Path):
    given = recipe(steps=5, batch_size=96, accumulate=3)
    objective, batches = build_objective(given), build_batches(given)
    optimizer = torch.optim.AdamW(objective.parameters(), given.training.lr, weight_decay=given.training.weight_decay)
    for step in range(5):
        gradients = []
        for micro in range(3 * step, 3 * step + 3):
            batch = batches(micro)
            assert len(batch.x) == 32
            total = objective(batch, micro).total
            gradients.append(torch.autograd.grad(total, list(objective.parameters())))
        for parameter, *parts in zip(objective.parameters(), *gradients, strict=True):
            parameter.grad = torch.stack(parts).mean(0)
        optimizer.step()
    start_run(given, tmp_path / "run")
    ours = tensors(tmp_path / "run")
    for name, value in objective.state_dict().items():
        torch.testing.assert_close(ours[f"model.{name}"], value, rtol=1e-4, atol=1e-5)
    for (
        name,
        parameter,
    ) in objective.named_parameters():  # AdamW's update is independent of the gradient's scale, but its moments are not
        moment = optimizer.state[parameter]["exp_avg"]
        torch.testing.assert_close(ours[f"optimizer.{name}.exp_avg"], moment, rtol=1e-3, atol=1e-5)


@dataclass
class Watched:
    """Batches that record the weights at each call."""

    batches: Callable[[int], Any]
    look: Callable[[int], Any]

    def __call__(self, step: int) -> Any:
        self.look(step)
        return self.batches(step)


def test_moving_average_of_the_weights_is_loaded(tmp_path: Path):
    given = recipe(steps=12, ema=0.8)
    objective = build_objective(given)
    weight: Tensor = objective.encoder[0].weight  # pyright: ignore[reportIndexIssue, reportAssignmentType]
    at: dict[int, Tensor] = {}
    look = Watched(build_batches(given), lambda step: at.update({step: weight.detach().clone()}))
    train(objective, look, given.training, tmp_path / "run", recipe="mine")
    seen = [*at.values(), weight.detach()]
    by_hand = seen[0]
    for step, weight in enumerate(seen[1:]):
        decay = min(0.8, (1 + step) / (10 + step))
        by_hand = decay * by_hand + (1 - decay) * weight
    torch.testing.assert_close(tensors(tmp_path / "run")["average.encoder.0.weight"], by_hand)
    start_run(given, tmp_path / "again")
    _, loaded = load_objective(tmp_path / "again")
    torch.testing.assert_close(loaded.encoder[0].weight, by_hand)  # pyright: ignore[reportIndexIssue]
    assert not torch.allclose(by_hand, seen[-1])


def test_averaged_weights_reject_batch_norm_statistics(tmp_path: Path):
    given = replace(recipe(steps=2, ema=0.8), objective=WhiteningConfig())
    with pytest.raises(InputError, match="'mean'"):
        start_run(given, tmp_path / "run")
    assert not (tmp_path / "run").exists()


class Tied(nn.Module):
    """A parameter registered under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.second = nn.Linear(2, 2)
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).tanh())


def test_tied_weight_is_averaged_under_both_names(tmp_path: Path):
    given = recipe(steps=10, ema=0.9)
    train(LeJEPA(Tied()), build_batches(given), given.training, tmp_path, recipe="tied")
    saved = tensors(tmp_path)
    fresh = LeJEPA(Tied())
    load_weights(fresh, saved)
    assert torch.equal(fresh.encoder.first.weight, saved["average.encoder.first.weight"])  # pyright: ignore[reportAttributeAccessIssue, reportArgumentType]
    assert not torch.equal(saved["average.encoder.first.weight"], saved["model.encoder.first.weight"])


class Unruly(nn.Module):
    """A custom encoder with dropout from the global generator, BatchNorm statistics and a frozen layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))
        self.layers[0].requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def unruly() -> PairObjective:
    torch.manual_seed(0)
    return LeJEPA(Unruly())


def test_custom_module_trains_and_resumes_bit_for_bit(tmp_path: Path):
    given = recipe()
    batches, config = build_batches(given), replace(given.training, steps=40, checkpoint_every=10, log_every=7)
    whole = unruly()
    before = whole.encoder.layers[0].weight.clone()  # pyright: ignore[reportAttributeAccessIssue, reportIndexIssue]
    state = torch.get_rng_state()
    assert train(whole, batches, config, tmp_path / "whole", recipe="mine").status == "finished"
    assert torch.equal(torch.get_rng_state(), state)  # the caller's generator is unchanged
    assert torch.equal(whole.encoder.layers[0].weight, before)  # pyright: ignore[reportAttributeAccessIssue, reportIndexIssue]
    assert len(metrics(tmp_path / "whole")) == 9  # 7 14 21 28 35, 10 20 30, 40

    def interrupt(step: int) -> None:
        if step == 11:  # between two health checks: an additional check must have no effect
            signal.raise_signal(signal.SIGINT)

    stopped = train(unruly(), Watched(batches, interrupt), config, tmp_path / "parts", recipe="mine")
    assert stopped == Outcome("interrupted", 12)
    torch.manual_seed(123)
    assert train(unruly(), batches, config, tmp_path / "parts", recipe="mine") == Outcome("finished", 40)
    assert same(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_takes_effect_between_steps(number: signal.Signals, tmp_path: Path):
    given = recipe(steps=30, ema=0.9, accumulate=2)
    start_run(given, tmp_path / "whole")
    run = tmp_path / "parts"

    def interrupt(micro: int) -> None:
        if micro == 24:  # the first half of step 13
            signal.raise_signal(number)

    before = signal.getsignal(number)
    batches = Watched(build_batches(given), interrupt)
    assert train(build_objective(given), batches, given.training, run, recipe="mine") == Outcome("interrupted", 13)
    assert signal.getsignal(number) == before
    assert latest_checkpoint(run / "checkpoints") == run / "checkpoints" / "step-13"
    outcome = train(build_objective(given), build_batches(given), given.training, run, recipe="mine")
    assert outcome == Outcome("finished", 30)
    assert same(tmp_path / "whole", run)


def test_second_ctrl_c_stops_immediately(tmp_path: Path):
    given = recipe(steps=10)

    def insist(step: int) -> None:
        if step == 3:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(build_objective(given), Watched(build_batches(given), insist), given.training, tmp_path, recipe="mine")
    assert latest_checkpoint(tmp_path / "checkpoints") is None


def test_signal_during_the_last_step_gives_a_finished_run(tmp_path: Path):
    given = recipe(steps=4)
    last = Watched(build_batches(given), lambda step: step == 3 and signal.raise_signal(signal.SIGTERM))
    outcome = train(build_objective(given), last, given.training, tmp_path, recipe="mine")
    assert outcome == Outcome("finished", 4)


def test_metrics_contain_the_terms_of_each_step(tmp_path: Path):
    given = recipe(steps=25, log_every=10)
    start_run(given, tmp_path / "run")
    lines = metrics(tmp_path / "run")
    assert [line["step"] for line in lines] == [10, 20, 25]
    objective = plain_loop(
        replace(given, training=replace(given.training, steps=9))
    )  # constant rate: the same initial weights
    loss = objective(build_batches(given)(9), 9)
    assert lines[0]["loss"] == pytest.approx(loss.total.item(), rel=1e-6)
    assert lines[0].keys() == {"step", "loss", *loss.terms}


def test_bfloat16_trains_and_keeps_statistics_in_float32(tmp_path: Path):
    given = recipe(steps=20, precision="bfloat16")
    kinds = set()
    objective = build_objective(given)
    objective.encoder.register_forward_hook(lambda module, inputs, output: kinds.add(output.dtype))
    outcome = train(objective, build_batches(given), given.training, tmp_path, recipe="mine")
    assert outcome.status == "finished"
    assert torch.bfloat16 in kinds
    assert {value.dtype for value in tensors(tmp_path).values()} == {torch.float32}
    objective_in_full = plain_loop(given)
    assert not equal(tmp_path, objective_in_full)
    for name, value in objective_in_full.state_dict().items():
        torch.testing.assert_close(tensors(tmp_path)[f"model.{name}"], value, rtol=0.1, atol=0.05)


def test_running_statistics_of_an_objective_are_saved(tmp_path: Path):
    given = recipe(steps=10)
    objective = ExactWhitening(nn.Linear(2, 2), 2)
    train(objective, build_batches(given), given.training, tmp_path, recipe="mine")
    assert torch.equal(tensors(tmp_path)["model.covariance"], objective.covariance)
    assert not torch.equal(objective.covariance, torch.eye(2))


def test_finished_run_is_not_trained_again(tmp_path: Path):
    start_run(recipe(steps=5), tmp_path / "run")
    before = (tmp_path / "run" / "metrics.jsonl").read_text()
    assert resume_run(tmp_path / "run") == Outcome("finished", 5)
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == before


def test_checkpoint_of_another_module_is_rejected(tmp_path: Path):
    given = recipe(steps=3)
    train(LeJEPA(nn.Linear(2, 2)), build_batches(given), given.training, tmp_path, recipe="mine")
    other = LeJEPA(nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 2)))
    with pytest.raises(InputError, match=r"encoder\.0\.bias"):
        train(other, build_batches(given), given.training, tmp_path, recipe="mine")
    newest = latest_checkpoint(tmp_path / "checkpoints")
    assert newest is not None
    with pytest.raises(InputError, match="encoder"):
        load_weights(LeJEPA(nn.Linear(2, 3)), load_checkpoint(newest, "mine").tensors)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"steps": 0}, "steps .*0"),
        ({"lr": 0.0}, "lr .*0.0"),
        ({"lr": float("nan")}, "lr .*nan"),
        ({"clip": -1.0}, "clip .*-1.0"),
        ({"betas": (0.9, 1.0)}, "betas .*1.0"),
        ({"weight_decay": -1.0}, "weight_decay .*-1.0"),
        ({"collapse": float("nan")}, "collapse .*nan"),
        ({"ema": 1.0}, "ema .*1.0"),
        ({"batch_size": 10, "accumulate": 3}, "batch_size 10 .*accumulate 3"),
    ],
)
def test_invalid_settings_are_rejected(values: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        TrainingConfig(**values)


@pytest.mark.parametrize("device", ["cuda:99", "gpu", "meta:x", "meta", "ipu", "hpu"])
def test_missing_device_is_named_and_nothing_is_written(device: str, tmp_path: Path):
    with pytest.raises(InputError, match=f"device '{device}' .*--device cpu") as caught:
        start_run(recipe(device=device), tmp_path / "run")
    assert len(str(caught.value)) < 180  # torch's own message can exceed a thousand characters
    assert not (tmp_path / "run").exists()


def test_batches_without_true_states_can_be_used(tmp_path: Path):
    """The loop requires only the observations of a batch."""
    x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    nothing = torch.empty(64, 0)
    outcome = train(
        LeJEPA(nn.Linear(2, 2)),
        lambda step: Pairs(x, x + 0.1, nothing, nothing),
        TrainingConfig(steps=5, batch_size=64),
        tmp_path,
        recipe="mine",
    )
    assert outcome.status == "finished"


def gaussian(rows: int, dim: int) -> Callable[[int], Pairs]:
    """Custom batches."""

    def batch(step: int) -> Pairs:
        x = torch.randn(4, rows, dim, generator=torch.Generator().manual_seed(step))
        return Pairs(*x)

    return batch


@pytest.mark.parametrize(
    ("objective", "rows", "message"),
    [
        (VICReg, 1, "batch of 1 .*VICReg .*8 latent .* 2 pairs"),
        (lambda net: ExactWhitening(net, 8), 4, "ExactWhitening .*8 latent .* 5 pairs"),
    ],
)
@pytest.mark.parametrize("accumulate", [1, 4])
def test_too_small_batch_is_rejected_for_a_custom_module(
    objective: Any, rows: int, message: str, accumulate: int, tmp_path: Path
):
    config = TrainingConfig(steps=3, batch_size=rows * accumulate, accumulate=accumulate)
    with pytest.raises(InputError, match=message):
        train(objective(nn.Linear(8, 8)), gaussian(rows, 8), config, tmp_path / "run", recipe="mine")
    assert not (tmp_path / "run").exists()
    more = replace(config, batch_size=5 * accumulate)
    assert train(objective(nn.Linear(8, 8)), gaussian(5, 8), more, tmp_path / "run", recipe="mine").step == 3


@pytest.mark.parametrize(
    ("rows", "batch_size", "accumulate", "message"),
    [
        (64, 256, 1, "256 rows, but has 64"),
        (64, 32, 1, "32 rows, but has 64"),
        (64, 64, 2, "32 rows, but has 64"),
        (0, 64, 1, "64 rows, but has 0"),
    ],
)
def test_batches_must_have_the_configured_size(
    rows: int, batch_size: int, accumulate: int, message: str, tmp_path: Path
):
    config = TrainingConfig(steps=3, batch_size=batch_size, accumulate=accumulate)
    with pytest.raises(InputError, match=message):
        train(LeJEPA(nn.Linear(2, 2)), gaussian(rows, 2), config, tmp_path / "run", recipe="mine")
    assert not (tmp_path / "run").exists()


def test_finished_run_requests_no_batches(tmp_path: Path):
    """A custom source of batches may be exhausted after the run."""
    few = [gaussian(8, 2)(step) for step in range(3)]
    config = TrainingConfig(steps=3, batch_size=8)
    for _ in range(2):
        assert train(LeJEPA(nn.Linear(2, 2)), lambda step: few[step], config, tmp_path, recipe="mine").step == 3


def test_custom_objective_must_encode_to_vectors(tmp_path: Path):
    class Odd(LeJEPA):
        def encode(self, x: Tensor) -> Tensor:
            return x.sum(1)

    with pytest.raises(InputError, match=r"\(8, d\).*\(8,\)"):
        train(Odd(nn.Linear(2, 2)), gaussian(8, 2), TrainingConfig(batch_size=8), tmp_path, recipe="mine")


def test_module_without_trainable_weights_is_rejected(tmp_path: Path):
    for module in (nn.Identity(), nn.Linear(2, 2).requires_grad_(False)):
        with pytest.raises(InputError, match="gradient"):
            train(LeJEPA(module), gaussian(8, 2), TrainingConfig(batch_size=8), tmp_path / "run", recipe="mine")
    assert not (tmp_path / "run").exists()


def test_folder_may_be_a_string(tmp_path: Path):
    config = TrainingConfig(steps=2, batch_size=8)
    assert train(LeJEPA(nn.Linear(2, 2)), gaussian(8, 2), config, str(tmp_path), recipe="mine").status == "finished"
    assert latest_checkpoint(tmp_path / "checkpoints") == tmp_path / "checkpoints" / "step-2"


@pytest.mark.parametrize(("before", "after"), [(None, 0.9), (0.9, None)])
def test_averaging_cannot_change_on_resume(before: float | None, after: float | None, tmp_path: Path):
    config = TrainingConfig(steps=2, batch_size=8, ema=before)
    train(LeJEPA(nn.Linear(2, 2)), gaussian(8, 2), config, tmp_path, recipe="mine")
    saved, module = tensors(tmp_path), LeJEPA(nn.Linear(2, 2))
    first = module.encoder.weight.clone()  # pyright: ignore[reportCallIssue]
    with pytest.raises(InputError, match="ema"):
        train(module, gaussian(8, 2), replace(config, steps=4, ema=after), tmp_path, recipe="mine")
    assert torch.equal(module.encoder.weight, first)  # pyright: ignore[reportArgumentType]
    assert tensors(tmp_path).keys() == saved.keys()
    more = replace(config, steps=4)
    assert train(LeJEPA(nn.Linear(2, 2)), gaussian(8, 2), more, tmp_path, recipe="mine").status == "finished"


def test_thread_count_is_set_during_the_run_and_restored(tmp_path: Path):
    given = recipe(steps=2, threads=2)
    seen: list[int] = []
    batches = Watched(build_batches(given), lambda step: seen.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    train(build_objective(given), batches, given.training, tmp_path / "run", recipe="any")
    assert set(seen) == {2} and torch.get_num_threads() == before


@pytest.mark.parametrize(("decayed", "still"), [("all", False), ("matrices", True)])
def test_weight_decay_can_skip_biases_and_normalisations(tmp_path: Path, decayed: str, still: bool):
    """With zero gradients, weights change only by weight decay."""

    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)
            nn.init.ones_(self.layer.bias)

        def encode(self, x: Tensor) -> Tensor:
            return self.layer(x)

        def forward(self, batch: Any, step: int) -> Loss:
            return Loss(0 * self.encode(batch.x).sum())

        def after_step(self, step: int) -> None: ...

        def smallest_batch(self, dim: int) -> int:
            return 1

    objective = Constant()
    before = objective.layer.weight.detach().clone()
    config = replace(TrainingConfig(steps=2, batch_size=4, lr=0.1, weight_decay=0.5, collapse=0.0), decayed=decayed)
    train(objective, lambda step: Crops(torch.randn(4, 2)), config, tmp_path, recipe="x")
    assert (objective.layer.bias == 1).all().item() is still
    assert (objective.layer.weight.abs() < before.abs()).all()
