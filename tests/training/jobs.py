"""Jobs of a sweep that misbehave. They stand in a module of their own, because worker processes import them by name."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

__all__ = ["job"]


def job(recipe: dict[str, Any], folder: str) -> dict[str, Any]:
    """Do as the recipe says, and leave a line for every call."""
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
