"""kill -9 and Ctrl-C: resumed runs are bitwise equal to uninterrupted ones."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest
from training.small import WORDS, call, command, forked_command, metrics, same, until

RUN = ["train", *WORDS, "--steps", "800", "--log-every", "10", "--checkpoint-every", "50", "--ema", "0.9"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert call(*RUN, "--out", folder) == 0
    return folder


def lines(run: Path) -> int:
    return (run / "metrics.jsonl").read_bytes().count(b"\n") if (run / "metrics.jsonl").exists() else 0


@pytest.mark.slow
def test_run_survives_five_kills_at_random_times(whole: Path, tmp_path: Path):
    chance = random.Random(0)
    run = tmp_path / "run"
    words, before = [*RUN, "--out", run], 0
    for kill in range(5):
        process = forked_command(*words)
        until(lambda before=before: lines(run) > before)
        time.sleep(chance.uniform(0, 0.1))
        process.kill()
        _, err = process.communicate()
        assert process.returncode == -signal.SIGKILL, err
        words, before = ["train", "--resume", run], 10 * (kill + 1)
    assert call("train", "--resume", run) == 0
    assert same(run, whole)
    assert metrics(run) == metrics(whole)


@pytest.mark.slow
def test_ctrl_c_saves_and_prints_the_resume_command(whole: Path, tmp_path: Path):
    run = tmp_path / "a folder whose name is so long that no terminal would show it in one line of eighty columns"
    process = command(*RUN, "--out", run, "--json", tmp_path / "answer.json")
    until(lambda: lines(run) >= 3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert f"jepatlas train --resume '{run}'" in out
    assert err == ""
    assert (tmp_path / "answer.json").exists()
    assert metrics(run)[-1]["step"] < 800
    assert call("train", "--resume", run) == 0
    assert same(run, whole)
    steps = [line["step"] for line in metrics(run)]
    assert steps == sorted(set(steps))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="sees through /proc that torch is being loaded")
def test_ctrl_c_before_the_first_step_prints_no_traceback(tmp_path: Path):
    process = command("train", *WORDS, "--out", tmp_path / "run")
    libraries = Path("/proc", str(process.pid), "maps")
    until(lambda: "libtorch" in libraries.read_text())  # during imports
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (130, "jepatlas train: interrupted.\n")
    assert not (tmp_path / "run").exists()
