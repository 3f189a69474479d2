"""What a person sees while a run trains: a live bar in a terminal, plain lines anywhere else."""

from __future__ import annotations

import math
import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["TrainingProgress"]

SECONDS_BETWEEN_LINES = 10.0


class TrainingProgress:
    def __init__(self, console: Console | None, title: str, start: int, steps: int) -> None:
        self.console, self.title, self.start, self.steps = console, title, start, steps
        self.bar = None
        if console is not None and console.is_terminal:
            columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[status]}"))
            self.bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
            self.task = self.bar.add_task(title, total=steps, completed=start, status="")

    def __enter__(self) -> Self:
        self.began, self.spoke = time.monotonic(), -math.inf  # the first report is shown at once
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
        """Show loss terms and speed; outside a terminal at most one line every few seconds, and the last."""
        rate = (step - self.start) / max(1e-9, time.monotonic() - self.began)
        terms = " ".join(f"{name} {value:.4g}" for name, value in values.items())
        status = f"{terms} · {rate:.0f} steps/s"
        if self.bar is not None:
            self.bar.update(self.task, status=status)
        elif self.console is not None and (step == self.steps or time.monotonic() - self.spoke > SECONDS_BETWEEN_LINES):
            self.spoke = time.monotonic()
            left = (self.steps - step) / max(1e-9, rate)
            line = f"{self.title}: step {step}/{self.steps} · {status} · {left:.0f} s left"
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)
