"""Progress: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import os
import pty
import re
import threading
from pathlib import Path

import pytest
from rich.console import Console
from training.small import recipe

from jepatlas.training.progress_display import latest_step
from jepatlas.workflows.runs import start_run


def test_plain_lines_without_a_terminal(tmp_path: Path):
    file = io.StringIO()
    start_run(recipe(steps=30, log_every=10), tmp_path / "a[b]c", Console(file=file, width=40))
    line, last = file.getvalue().splitlines()  # later lines would follow after some seconds
    assert last.startswith("a[b]c: step 30/30 · loss ")
    assert line.startswith("a[b]c: step 10/30 · loss ")
    assert re.search(r" invariance [\d.e-]+ .*· \d+ steps/s · \d+ s left$", line)
    assert "\x1b" not in line


@pytest.mark.slow
def test_bar_in_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    leader, follower = pty.openpty()
    seen = bytearray()

    def read() -> None:
        try:
            while data := os.read(leader, 4096):
                seen.extend(data)
        except OSError:  # raised on Linux when the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(follower, "w") as terminal:
        start_run(recipe(steps=400, log_every=10), tmp_path / "run", Console(file=terminal, width=160))
    reader.join(10)
    os.close(leader)
    text = seen.decode()
    assert "━" in text
    assert re.search(r"\d+/400", text)
    assert re.search(r"loss [\d.e-]+", text)
    assert re.search(r"\d+ steps/s", text)
    assert re.search(r"\d:\d\d:\d\d", text)  # remaining time
    assert "\x1b[2K" in text  # erased at the end


def test_no_output_without_a_console(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    start_run(recipe(steps=3), tmp_path / "run")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("line", ["", "[1]", '{"a": 1}', '{"step": 7}', '{"step": null, "loss": 1}', "garbled", "\xff"])
def test_monitoring_skips_damaged_lines(line: str, tmp_path: Path):
    assert latest_step(tmp_path) == (0, "")
    (tmp_path / "metrics.jsonl").write_text(f"{line}\n", encoding="latin-1")
    assert latest_step(tmp_path) == (0, "")
    (tmp_path / "metrics.jsonl").write_text(f'{line}\n{{"step": 8, "loss": 0.25}}\n{{"st', encoding="latin-1")
    assert latest_step(tmp_path) == (8, "loss 0.25")


def test_monitoring_follows_the_model_that_is_written(tmp_path: Path):
    for age, (name, step) in enumerate({"teacher": 300, "student": 40}.items()):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").write_text(f'{{"step": {step}, "loss": 0.25}}\n')
        os.utime(tmp_path / name / "metrics.jsonl", (age, age))
    assert latest_step(tmp_path) == (40, "loss 0.25")
