"""Sweep jobs in an importable module, because worker processes import them by name."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

__all__ = ["job", "small_run"]


def small_run(recipe: dict[str, Any], folder: str) -> dict[str, Any]:
    """`run_job` with a certificate of few samples."""
    from jepatlas.core.config import from_plain
    from jepatlas.recipes import Recipe
    from jepatlas.workflows.runs import certify_run, start_run

    built = from_plain(Recipe, recipe)
    outcome = start_run(built, Path(folder))
    record = certify_run(Path(folder), samples=1000, seed=built.seed)
    return {"status": outcome.status, "verdicts": [verdict.to_json() for verdict in record.verdicts]}


def job(recipe: dict[str, Any], folder: str) -> dict[str, Any]:
    """Act as the job's settings say, and log one line per call."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "calls", "a") as file:
        file.write(f"{os.getpid()}\n")
    calls = len((place / "calls").read_text().splitlines())
    match recipe["do"]:
        case "raise":
            raise ZeroDivisionError("on purpose")
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "die once" if calls == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        case "fail":
            return {"status": "failed", "value": recipe["value"]}
        case "stop":
            return {"status": "interrupted"}
    return {"status": "finished", "value": 2 * recipe["value"]}
