"""Checkpoints: round trips, damage, incomplete writes, and full disks."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from training.small import WORDS, call, forked_command, metrics, recipe, same, until

from jepatlas.core.errors import InputError
from jepatlas.training import Checkpoint, fingerprint, latest_checkpoint, load_checkpoint, save_checkpoint
from jepatlas.workflows.runs import resume_run, start_run


def save(folder: Path, step: int, keep: int = 2) -> Path:
    return save_checkpoint(folder, Checkpoint(step, {"w": torch.full((50,), float(step))}), "recipe", keep)


def test_checkpoint_round_trip(tmp_path: Path):
    path = save(tmp_path, 7)
    assert path == tmp_path / "step-7"
    loaded = load_checkpoint(path, "recipe")
    assert loaded.step == 7
    assert torch.equal(loaded.tensors["w"], torch.full((50,), 7.0))
    meta = json.loads((path / "checkpoint.json").read_text())
    assert meta.keys() == {"format", "step", "flat", "recipe", "sha256", "seal"}


def test_collapse_count_is_saved(tmp_path: Path):
    path = save_checkpoint(tmp_path, Checkpoint(3, {"w": torch.zeros(2)}, flat=2), "recipe", 2)
    assert load_checkpoint(path, "recipe").flat == 2


def test_newest_checkpoints_are_kept_in_numerical_order(tmp_path: Path):
    for step in (8, 9, 10, 100):
        save(tmp_path, step, keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-10", "step-100"]
    assert latest_checkpoint(tmp_path) == tmp_path / "step-100"


def test_checkpoints_of_interruptions_do_not_replace_regular_ones(tmp_path: Path):
    def kept() -> list[str]:
        return sorted(path.name for path in tmp_path.iterdir())

    def save_at(step: int) -> None:
        save_checkpoint(tmp_path, Checkpoint(step, {"w": torch.zeros(1)}), "recipe", keep=2, every=10)

    for step in (10, 20, 27):
        save_at(step)
    assert kept() == ["step-20", "step-27"]  # the newest one is always kept
    save_at(30)
    assert kept() == ["step-20", "step-30"]
    save_at(34)  # the last step
    assert kept() == ["step-30", "step-34"]


def test_incomplete_checkpoints_are_ignored_then_removed(tmp_path: Path):
    save(tmp_path, 5)
    unfinished = tmp_path / ".step-6.4711.part"
    unfinished.mkdir()
    (unfinished / "state.safetensors").write_bytes(b"half")
    (tmp_path / "step-notes").mkdir()  # created by the user
    assert latest_checkpoint(tmp_path) == tmp_path / "step-5"
    save(tmp_path, 7)
    assert not unfinished.exists()
    assert (tmp_path / "step-notes").exists()


def test_no_checkpoint_yet(tmp_path: Path):
    assert latest_checkpoint(tmp_path / "nowhere") is None


def truncate(path: Path) -> None:
    data = (path / "state.safetensors").read_bytes()
    (path / "state.safetensors").write_bytes(data[: len(data) // 2])


def flip_a_bit(path: Path) -> None:
    data = bytearray((path / "state.safetensors").read_bytes())
    data[-3] ^= 1
    (path / "state.safetensors").write_bytes(data)


def remove_the_tensors(path: Path) -> None:
    (path / "state.safetensors").unlink()


def remove_the_description(path: Path) -> None:
    (path / "checkpoint.json").unlink()


def cut_the_description(path: Path) -> None:
    (path / "checkpoint.json").write_text('{"format": 1, "st')


def another_description(path: Path) -> None:
    (path / "checkpoint.json").write_text('["step", 5]')


def odd_numbers(path: Path) -> None:
    meta = json.loads((path / "checkpoint.json").read_text())
    (path / "checkpoint.json").write_text(json.dumps(meta | {"step": "five"}))


def odd_hashes(path: Path) -> None:
    meta = json.loads((path / "checkpoint.json").read_text())
    (path / "checkpoint.json").write_text(json.dumps(meta | {"sha256": {}}))


def another_step(path: Path) -> None:
    meta = json.loads((path / "checkpoint.json").read_text())
    (path / "checkpoint.json").write_text(json.dumps(meta | {"step": 3}))


DAMAGES = [
    (another_step, r"step-5 "),
    (truncate, r"state\.safetensors "),
    (flip_a_bit, r"state\.safetensors "),
    (remove_the_tensors, r"state\.safetensors "),
    (remove_the_description, r"checkpoint\.json"),
    (cut_the_description, r"checkpoint\.json .*JSON"),
    (another_description, r"checkpoint\.json "),
    (odd_numbers, r"checkpoint\.json "),
    (odd_hashes, r"checkpoint\.json "),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGES, ids=[damage.__name__ for damage, _ in DAMAGES])
def test_damaged_checkpoint_is_rejected(damage: Any, message: str, tmp_path: Path):
    path = save(tmp_path, 5)
    damage(path)
    with pytest.raises(InputError, match=f"{message}.*[Dd]elete"):
        load_checkpoint(path, "recipe")


def test_renamed_checkpoint_is_rejected(tmp_path: Path):
    renamed = save(tmp_path, 5).rename(tmp_path / "step-6")
    with pytest.raises(InputError, match="step-6 "):
        load_checkpoint(renamed, "recipe")


def test_run_resumes_before_a_deleted_damaged_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = tmp_path / "run"
    start_run(recipe(steps=20, checkpoint_every=10), run)
    shutil.copytree(run, tmp_path / "whole")
    flip_a_bit(run / "checkpoints" / "step-20")
    assert call("train", "--resume", run) == 2
    err = capsys.readouterr().err
    assert "step-20" in err
    assert "Traceback" not in err
    shutil.rmtree(run / "checkpoints" / "step-20")
    assert call("train", "--resume", run) == 0
    assert same(run, tmp_path / "whole")


def test_checkpoint_of_another_recipe_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = tmp_path / "run"
    start_run(recipe(steps=10), run)
    text = (run / "recipe.yaml").read_text()
    (run / "recipe.yaml").write_text(text.replace("width: 16", "width: 17"))
    for words in (("train", "--resume", run), ("certify", run)):
        assert call(*words) == 2
        assert "recipe" in capsys.readouterr().err
    (run / "recipe.yaml").write_text(text.replace("log_every: 50", "log_every: 5"))
    assert call("train", "--resume", run) == 0  # the logging interval is not part of the fingerprint


def test_fingerprint_is_independent_of_key_order():
    assert fingerprint({"a": 1, "b": [2, 3]}) == fingerprint({"b": [2, 3], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte; requires permission to mount."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", place], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("only root may mount a small disk")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_full_disk_while_saving(small_disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A checkpoint takes about 200 kB: with 300 kB free, only the first one fits."""
    words = ["train", "--encoder.width", "128", "--encoder.depth", "2", "--batch-size", "32", "--steps", "20"]
    words += ["--checkpoint-every", "10"]
    assert call(*words, "--out", tmp_path / "whole") == 0
    (small_disk / "filler").write_bytes(bytes(700_000))
    capsys.readouterr()
    assert call(*words, "--out", small_disk / "run") == 2
    err = capsys.readouterr().err
    assert "No space left on device" in err
    assert f"jepatlas train --resume {small_disk / 'run'}" in err
    assert "Traceback" not in err
    assert [path.name for path in (small_disk / "run" / "checkpoints").iterdir()] == ["step-10"]
    (small_disk / "filler").unlink()
    assert call("train", "--resume", small_disk / "run") == 0
    assert same(small_disk / "run", tmp_path / "whole")


def test_full_disk_while_logging_metrics(small_disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Eight free pages: one for the lock, one for the recipe, two for the checkpoint, four for 150 lines of metrics."""
    words = ["train", *WORDS, "--steps", "200", "--log-every", "1", "--checkpoint-every", "100"]
    assert call(*words, "--out", tmp_path / "whole") == 0
    (small_disk / "filler").write_bytes(bytes(1_048_576 - 8 * 4096))
    capsys.readouterr()
    assert call(*words, "--out", small_disk / "run") == 2
    err = capsys.readouterr().err
    assert "metrics" in err
    assert "No space left on device" in err
    assert f"jepatlas train --resume {small_disk / 'run'}" in err
    assert "Traceback" not in err
    (small_disk / "filler").unlink()
    assert call("train", "--resume", small_disk / "run") == 0
    assert same(small_disk / "run", tmp_path / "whole")
    assert [line["step"] for line in metrics(small_disk / "run")] == list(range(1, 201))


def test_file_size_limit_is_reported_like_a_full_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """For machines without permission to mount: the file-size limit raises the same kind of error."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    words = ["--encoder.width", "128", "--encoder.depth", "2", "--batch-size", "32", "--steps", "20"]
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
        code = call("train", *words, "--out", tmp_path / "run")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert code == 2
    err = capsys.readouterr().err
    assert "File too large" in err
    assert "Traceback" not in err
    assert not list((tmp_path / "run" / "checkpoints").iterdir())
    assert resume_run(tmp_path / "run").status == "finished"


@pytest.mark.slow
def test_kill_while_saving(tmp_path: Path):
    """With a checkpoint at every step, most of the time is spent saving."""
    words = ["--encoder.width", "256", "--encoder.depth", "3", "--batch-size", "8", "--steps", "40"]
    words += ["--checkpoint-every", "1", "--log-every", "1"]
    assert call("train", *words, "--out", tmp_path / "whole") == 0
    run = tmp_path / "run"
    process = forked_command("train", *words, "--out", run)
    until((run / "checkpoints" / "step-12").exists)
    until(lambda: list((run / "checkpoints").glob(".step-*.part/state.safetensors")))
    process.kill()
    process.communicate()
    assert list((run / "checkpoints").glob(".step-*.part")), "the process finished before it was killed"
    assert call("train", "--resume", run) == 0
    assert same(run, tmp_path / "whole")
    assert not list((run / "checkpoints").glob(".*"))
    assert [line["step"] for line in metrics(run)] == list(range(1, 41))
