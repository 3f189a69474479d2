"""Progress of one run or of several runs: live bars in a terminal, plain lines otherwise."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from jepatlas.core.errors import InputError
from jepatlas.core.parsing import parse_json
from jepatlas.training.metrics_log import METRICS_FILE

__all__ = ["SweepProgress", "TrainingProgress", "latest_step"]

RUN_LINE_SECONDS = 10.0
SWEEP_BAR_SECONDS = 1.0
SWEEP_LINE_SECONDS = 15.0


class TrainingProgress:
    """Progress of one run, reported by the training loop."""

    def __init__(self, console: Console | None, title: str, start: int, steps: int) -> None:
        self.console, self.title, self.start, self.steps = console, title, start, steps
        self.bar = None
        if console is not None and console.is_terminal:
            self.bar = _progress_bar(console, "status")
            self.task = self.bar.add_task(title, total=steps, completed=start, status="")

    def __enter__(self) -> Self:
        self.began = time.monotonic()
        self.last_line = -math.inf  # show the first report at once
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def advance(self, step: int) -> None:
        if self.bar is not None:
            self.bar.update(self.task, completed=step)

    def report(self, step: int, values: dict[str, float]) -> None:
        """Show loss terms and speed. Without a terminal, print a line every few seconds and at the last step."""
        rate = (step - self.start) / max(1e-9, time.monotonic() - self.began)
        terms = " ".join(f"{name} {value:.4g}" for name, value in values.items())
        status = f"{terms} · {rate:.0f} steps/s"
        if self.bar is not None:
            self.bar.update(self.task, status=status)
            return
        due = step == self.steps or time.monotonic() - self.last_line > RUN_LINE_SECONDS
        if self.console is not None and due:
            self.last_line = time.monotonic()
            remaining = (self.steps - step) / max(1e-9, rate)
            _print_line(self.console, f"{self.title}: step {step}/{self.steps} · {status} · {remaining:.0f} s left")


class SweepProgress:
    """Progress of several runs within the block, read from the metrics that they write.

    `runs` maps the folder of each run to its number of steps.
    """

    def __init__(self, console: Console, runs: Mapping[Path, int]) -> None:
        self.console, self.runs = console, runs
        self.bars = _progress_bar(console, "loss")
        self.all = self.bars.add_task("runs", total=len(runs), loss="")
        self.tasks = {
            run: self.bars.add_task(run.name, total=steps, loss="", visible=False) for run, steps in runs.items()
        }
        self.over = threading.Event()

    def __enter__(self) -> Self:
        show = self._show_bars if self.console.is_terminal else self._print_lines
        self.thread = threading.Thread(target=show, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.thread.join()

    def _show_bars(self) -> None:
        with self.bars:
            while not self.over.wait(SWEEP_BAR_SECONDS):
                for run, task in self.tasks.items():
                    step, loss = latest_step(run)
                    self.bars.update(task, completed=step, loss=loss, visible=step > 0 and not _is_done(run))
                self.bars.update(self.all, completed=sum(map(_is_done, self.runs)))

    def _print_lines(self) -> None:
        while not self.over.wait(SWEEP_LINE_SECONDS):
            steps = {run: latest_step(run)[0] for run in self.runs if not _is_done(run)}
            active = [f"{run.name} {step}/{self.runs[run]}" for run, step in steps.items() if step > 0]
            done = len(self.runs) - len(steps)
            _print_line(self.console, f"done {done} of {len(self.runs)}; training: {', '.join(active) or 'none'}")


def latest_step(run: Path) -> tuple[int, str]:
    """The last step in a run's metrics and its loss; (0, "") if there is none yet.

    If a run trains several models in subfolders, the one that was updated last counts.
    """
    try:
        newest = max([run / METRICS_FILE, *run.glob(f"*/{METRICS_FILE}")], key=_modification_time)
        lines = newest.read_bytes().rsplit(b"\n", 2)
        entry = parse_json(lines[-2], newest)
        return int(entry["step"]), f"loss {float(entry['loss']):.4g}"
    except (InputError, OSError, LookupError, TypeError, ValueError):  # an incomplete or foreign file shows no progress
        return 0, ""


def _progress_bar(console: Console, text_field: str) -> Progress:
    text = TextColumn(f"{{task.fields[{text_field}]}}")
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), text, TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)


def _print_line(console: Console, line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def _is_done(run: Path) -> bool:
    return (run / "result.json").exists()


def _modification_time(file: Path) -> float:
    return file.stat().st_mtime if file.exists() else 0.0
