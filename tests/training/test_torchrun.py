"""Distributed training with torchrun and gloo."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from processes import run_processes
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from training.small import ENV, WORDS, children, metrics, recipe, same, tensors, until

from jepatlas.core.distributed import rank, world_size
from jepatlas.core.errors import InputError
from jepatlas.core.records import Pairs
from jepatlas.objectives import ExactWhitening, LeJEPA
from jepatlas.recipes import build_batches
from jepatlas.training import TrainingConfig, train
from jepatlas.workflows import runs
from jepatlas.workflows.runs import resume_run, start_run

STEPS = 40
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "jepatlas"]
RUN = ["train", *WORDS, "--steps", str(STEPS), "--log-every", "10", "--checkpoint-every", "10", "--ema", "0.9"]
GIVEN = recipe(steps=STEPS, log_every=10, checkpoint_every=10, ema=0.9)


def close(first: Path, second: Path) -> None:
    ours, expected = tensors(first), tensors(second)
    assert ours.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(ours[name], value, rtol=1e-4, atol=1e-4)


def two_processes(folder: Path) -> dict[str, Any]:
    """All cases in one process group, because starting a group takes seconds."""
    torch.set_num_threads(1)
    parts = replace(GIVEN, training=replace(GIVEN.training, accumulate=2, clip=0.05))
    sharded = replace(parts, training=replace(parts.training, parallel="fsdp"))
    return {
        "ddp": start_run(GIVEN, folder / "ddp").status,
        "parts": start_run(parts, folder / "parts").status,
        "fsdp": start_run(sharded, folder / "fsdp").status,
        "stopped": stop_and_resume(folder / "stopped", "ddp"),
        "stopped fsdp": stop_and_resume(folder / "stopped-fsdp", "fsdp"),
        "nan": nan_on_the_last_process(folder / "nan"),
        "odd": refused(lambda: start_run(recipe(batch_size=33), folder / "odd")),
        "undivided": refused(lambda: own(LeJEPA, (32, 32), 32, folder / "none")),
        "unequal": refused(lambda: own(LeJEPA, (12, 20), 32, folder / "none")),
        "too few": refused(lambda: own(whitening, (2, 2), 4, folder / "none")),
        "frozen": refused(lambda: own(lambda net: LeJEPA(net.requires_grad_(False)), (4, 4), 8, folder / "none")),
        "enough together": own(whitening, (3, 3), 6, folder / "together"),
        "outlives": outlives_the_group(folder / "outlives"),
    }


def outlives_the_group(folder: Path) -> list[int]:
    """Number of modules of a started and a resumed run that are still alive when the process group ends."""
    found = []

    @contextmanager
    def watched(device: str) -> Iterator[None]:
        del device
        yield
        gc.collect()
        found.append(sum(isinstance(one, DistributedDataParallel | LeJEPA) for one in gc.get_objects()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "process_group", watched)
        start_run(replace(GIVEN, training=replace(GIVEN.training, steps=2)), folder)
        resume_run(folder)
    return found


def own(objective: Any, rows: tuple[int, int], batch_size: int, folder: Path) -> str:
    """Custom batches with the given number of rows per process."""
    x = torch.randn(4, rows[rank()], 8, generator=torch.Generator().manual_seed(rank()))
    torch.manual_seed(0)
    config = TrainingConfig(steps=2, batch_size=batch_size)
    return train(objective(nn.Linear(8, 8)), lambda step: Pairs(*x), config, folder, recipe="mine").status


def whitening(encoder: nn.Module) -> ExactWhitening:
    return ExactWhitening(encoder, 8)


def stop_and_resume(folder: Path, how: str) -> list[str]:
    """A signal received by one process stops both after the same step."""
    training = replace(GIVEN.training, parallel=how)  # pyright: ignore[reportArgumentType]
    batches = build_batches(GIVEN)

    def interrupted(step: int) -> Any:
        if step == 37 and rank() == 1:
            signal.raise_signal(signal.SIGTERM)
        return batches(step)

    whole = train(fresh(), batches, training, folder / "whole", recipe="mine")
    first = train(fresh(), interrupted, training, folder / "parts", recipe="mine")
    second = train(fresh(), batches, training, folder / "parts", recipe="mine")
    return [whole.status, f"{first.status} {first.step}", second.status]


def fresh() -> LeJEPA:
    torch.manual_seed(0)
    return LeJEPA(nn.Linear(2, 2))


def nan_on_the_last_process(folder: Path) -> str:
    batches = build_batches(GIVEN)

    def with_nan(step: int) -> Any:
        batch = batches(step)
        if step == 3 and rank() == world_size() - 1:
            batch.x_next[2, 0] = torch.nan
        return batch

    config = TrainingConfig(steps=10, batch_size=32, log_every=5)
    return refused(lambda: train(fresh(), with_nan, config, folder, recipe="mine"))


def refused(act: Any) -> str:
    try:
        act()
    except InputError as error:
        return str(error)
    return "nothing was refused"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """Folder written by `two_processes`, and the return values of the processes."""
    folder = tmp_path_factory.mktemp("two")
    return folder, run_processes(two_processes, 2, folder)


@pytest.mark.slow
def test_two_processes_match_one_process(two: tuple[Path, list[dict[str, Any]]]):
    tmp_path, (first, second) = two
    assert first == second
    assert [first[name] for name in ("ddp", "parts", "fsdp")] == ["finished"] * 3
    start_run(GIVEN, tmp_path / "one")
    close(tmp_path / "ddp", tmp_path / "one")
    assert [line["step"] for line in metrics(tmp_path / "ddp")] == list(range(10, STEPS + 1, 10))
    for ours, expected in zip(metrics(tmp_path / "ddp"), metrics(tmp_path / "one"), strict=True):
        assert ours == pytest.approx(expected, rel=1e-3, abs=1e-4)
    clipped = replace(GIVEN, training=replace(GIVEN.training, accumulate=2, clip=0.05))
    start_run(clipped, tmp_path / "one-parts")
    close(tmp_path / "parts", tmp_path / "one-parts")
    close(tmp_path / "fsdp", tmp_path / "one-parts")
    for name in ("stopped", "stopped-fsdp"):
        assert same(tmp_path / name / "whole", tmp_path / name / "parts")
    assert first["stopped"] == first["stopped fsdp"] == ["finished", "interrupted 38", "finished"]
    assert "'x_next' of batch 3 (step 4)" in first["nan"] and "row 18" in first["nan"]
    assert "multiple of the 2 processes" in first["odd"]
    assert not (tmp_path / "odd").exists()
    assert "16 rows, but has 32" in first["undivided"]
    assert "12 or 20" in first["unequal"]
    assert "A batch of 4 is too small" in first["too few"]
    assert "There is nothing to train" in first["frozen"]
    assert not (tmp_path / "none").exists()
    assert first["outlives"] == [0, 0]  # otherwise the process sometimes aborts at exit
    assert first["enough together"] == "finished"  # three rows per process would be too few; statistics use all six
    # Checkpoints are independent of the number of processes.
    assert resume_run(tmp_path / "fsdp").status == "finished"


def torchrun(*words: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*TORCHRUN, *map(str, words)], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the processes of torchrun through /proc")
def test_torchrun_run_resumes_after_interrupt_and_kill(two: tuple[Path, list[dict[str, Any]]], tmp_path: Path):
    run = tmp_path / "run"
    saved = run / "checkpoints"

    process = torchrun(*RUN, "--out", run)
    until((saved / "step-10").exists)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert f"jepatlas train --resume {run}" in out, err
    interrupted = max(int(path.name.removeprefix("step-")) for path in saved.glob("step-*"))
    assert 10 <= interrupted < STEPS

    process = torchrun("train", "--resume", run)
    until(lambda: len(list(saved.glob("step-*"))) == 2 and not (saved / "step-10").exists())
    pids = [process.pid, *children(process.pid)]
    assert len(pids) == 3
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    process.communicate()

    process = torchrun("train", "--resume", run)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out.count(f"Trained {STEPS} steps") == 1
    assert same(run, two[0] / "ddp")
    steps = [line["step"] for line in metrics(run)]
    assert steps == sorted({*range(10, STEPS + 1, 10), interrupted})
