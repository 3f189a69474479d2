"""Several runs at once, as a person watches them: their steps are read from the metrics they write."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["Watch"]

METRICS = "metrics.jsonl"
SECONDS = 1.0
SECONDS_BETWEEN_LINES = 15.0


class Watch:
    """A bar for all and one for each run under way while the block lasts; without a terminal, a line now and then."""

    def __init__(self, console: Console, runs: Mapping[Path, int]) -> None:
        self.console, self.runs = console, runs
        columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[loss]}"))
        self.bars = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
        self.all = self.bars.add_task("runs", total=len(runs), loss="")
        self.tasks = {
            run: self.bars.add_task(run.name, total=steps, loss="", visible=False) for run, steps in runs.items()
        }
        self.over = threading.Event()

    def __enter__(self) -> Self:
        self.thread = threading.Thread(target=self._bars if self.console.is_terminal else self._lines, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.thread.join()

    def _bars(self) -> None:
        with self.bars:
            while not self.over.wait(SECONDS):
                for run, task in self.tasks.items():
                    step, loss = latest(run)
                    self.bars.update(task, completed=step, loss=loss, visible=step > 0 and not _done(run))
                self.bars.update(self.all, completed=sum(map(_done, self.runs)))

    def _lines(self) -> None:
        while not self.over.wait(SECONDS_BETWEEN_LINES):
            steps = {run: latest(run)[0] for run in self.runs if not _done(run)}
            going = [f"{run.name} {step}/{self.runs[run]}" for run, step in steps.items() if step > 0]
            line = f"done {len(self.runs) - len(steps)} of {len(self.runs)}; training: {', '.join(going) or 'none'}"
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)


def _done(run: Path) -> bool:
    return (run / "result.json").exists()


def _written(file: Path) -> float:
    return file.stat().st_mtime if file.exists() else 0.0


def latest(run: Path) -> tuple[int, str]:
    """The newest step of a run and its loss, as far as it has written any. Where a run trains several models, each in a
    folder of its own, that of the model that has written last."""
    try:
        newest = max([run / METRICS, *run.glob(f"*/{METRICS}")], key=_written)
        lines = newest.read_bytes().rsplit(b"\n", 2)
        entry = json.loads(lines[-2])
        return int(entry["step"]), f"loss {float(entry['loss']):.4g}"
    except (OSError, LookupError, TypeError, ValueError):  # whatever a line holds: who watches only looks
        return 0, ""
