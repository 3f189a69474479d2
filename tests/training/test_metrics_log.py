"""metrics.jsonl, TensorBoard and Weights & Biases logs, read back with their own readers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from training.small import ENV, call, command, metrics, recipe, until

from jepatlas.core.errors import InputError
from jepatlas.recipes import build_batches, build_objective
from jepatlas.training import train
from jepatlas.training.metrics_log import MetricsLog
from jepatlas.workflows.runs import start_run


def write(folder: Path, start: int, steps: range) -> None:
    with MetricsLog(folder, start) as log:
        for step in steps:
            log.write(step, {"loss": step / 10})


def test_resumed_log_is_truncated_to_its_checkpoint(tmp_path: Path):
    write(tmp_path, 0, range(1, 8))
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"step": 8, "lo')  # after a kill
    write(tmp_path, 5, range(6, 10))
    assert metrics(tmp_path) == [{"step": step, "loss": step / 10} for step in range(1, 10)]


def test_complete_line_without_newline_is_kept(tmp_path: Path):
    write(tmp_path, 0, range(1, 4))
    path = tmp_path / "metrics.jsonl"
    path.write_text(path.read_text().rstrip("\n"))
    write(tmp_path, 3, range(4, 6))
    assert [line["step"] for line in metrics(tmp_path)] == [1, 2, 3, 4, 5]


ODD = [b'{"a": 1}', b"[1]", b'{"step": 2, "lo', b"", b'{"step": "2"}', b'{"step": true}', b"\xff\xfe", b"null"]


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("number", [2, 5])
def test_invalid_line_is_named_and_the_file_is_unchanged(odd: bytes, number: int, tmp_path: Path):
    write(tmp_path, 0, range(1, 6))
    path = tmp_path / "metrics.jsonl"
    lines = path.read_bytes().splitlines()
    lines[number - 1] = odd
    path.write_bytes(text := b"\n".join(lines) + b"\n")
    with pytest.raises(InputError, match=rf"metrics\.jsonl, line {number}:"):
        MetricsLog(tmp_path, 5)
    assert path.read_bytes() == text


def test_run_with_damaged_metrics_is_not_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    start_run(recipe(steps=4, log_every=1, checkpoint_every=2), tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-4")
    path = tmp_path / "run" / "metrics.jsonl"
    whole = path.read_text()
    for odd in ('{"a":1}', "[1]", "garbled"):
        path.write_text(whole.replace(whole.splitlines()[1], odd))
        assert call("train", "--resume", tmp_path / "run") == 2
        err = capsys.readouterr().err
        assert f"{path}, line 2" in err
        assert "Traceback" not in err
    path.write_text(whole)
    assert call("train", "--resume", tmp_path / "run") == 0
    assert path.read_text() == whole


def test_nan_and_infinity_are_logged(tmp_path: Path):
    with MetricsLog(tmp_path, 0) as log:
        log.write(1, {"a": float("nan"), "b": float("-inf"), "c": 1.5})
    assert json.loads((tmp_path / "metrics.jsonl").read_text()) == {"step": 1, "a": "nan", "b": "-inf", "c": 1.5}


def test_each_line_is_written_immediately(tmp_path: Path):
    with MetricsLog(tmp_path, 0) as log:
        log.write(1, {"loss": 1.0})
        assert len(metrics(tmp_path)) == 1


def run(folder: Path, steps: int, *track: str) -> None:
    """Train the same run first for some steps, then for more."""
    given = recipe(steps=steps, log_every=2, checkpoint_every=5, track=track)
    train(build_objective(given), build_batches(given), given.training, folder, recipe="mine")


@pytest.mark.slow
def test_tensorboard_reads_every_step_once(tmp_path: Path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run(tmp_path, 6, "tensorboard")
    run(tmp_path, 8, "tensorboard")
    with MetricsLog(tmp_path, 4, ["tensorboard"]) as log:  # as after a kill: steps 5, 6 and 8 are repeated
        for step in (5, 6, 8):
            log.write(step, {"loss": -1.0})
    events = reader.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert {"loss", "invariance", "sigreg"} <= set(events.Tags()["scalars"])
    shown = {event.step: event.value for event in events.Scalars("loss")}
    assert len(shown) == len(events.Scalars("loss"))
    lines = {line["step"]: line["loss"] for line in metrics(tmp_path)}
    assert sorted(lines) == [2, 4, 5, 6, 8]
    assert shown == pytest.approx(lines)
    assert lines[8] == -1.0


@pytest.mark.slow
def test_wandb_writes_an_offline_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    run(tmp_path / "spiral", 4, "wandb")
    (written,) = (tmp_path / "spiral" / "wandb").glob("offline-run-*/run-*.wandb")
    until(lambda: b"invariance" in written.read_bytes(), seconds=10)  # written by wandb's process
    own = (tmp_path / "spiral" / "wandb-id").read_text()
    assert own in written.name
    run(tmp_path / "spiral", 8, "wandb")
    assert (tmp_path / "spiral" / "wandb-id").read_text() == own
    run(tmp_path / "elsewhere" / "spiral", 4, "wandb")
    assert (tmp_path / "elsewhere" / "spiral" / "wandb-id").read_text() != own
    assert own.encode() in written.read_bytes()


@pytest.mark.slow
def test_wandb_without_login_prints_no_traceback(tmp_path: Path):
    pytest.importorskip("wandb")
    home = {name: str(tmp_path) for name in ("HOME", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR")}
    env = {name: value for name, value in ENV.items() if not name.startswith("WANDB")} | home
    words = ["train", "--track", "wandb", "--steps", "3", "--out", "run"]
    process = command(*words, env=env | {"WANDB_API_KEY": "too short"}, cwd=tmp_path)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "WANDB_API_KEY" in err
    assert "WANDB_MODE=offline" in err
    assert "Traceback" not in err


BLOCKED = """
import sys
from jepatlas.cli import main
for package in ("tensorboard", "wandb"):
    sys.modules[package] = None  # as if it were not installed
    print(main(["train", "--track", package, "--steps", "3", "--out", "run"]))
"""


@pytest.mark.slow
def test_missing_extra_error_names_the_package(tmp_path: Path):
    line = [sys.executable, "-c", BLOCKED]
    done = subprocess.run(line, cwd=tmp_path, env=ENV, capture_output=True, text=True, check=False)
    assert done.stdout == "2\n2\n"
    for package, message in zip(("tensorboard", "wandb"), done.stderr.splitlines(), strict=True):
        assert message.startswith(
            f"jepatlas train: --track {package} needs the package '{package}', which is not installed."
        )
        assert message.endswith("Run: pip install 'jepatlas[track]'")
    assert not list(tmp_path.iterdir())  # so that the same command works after installation
