"""How often goals were reached, how long it took, and how much longer than it had to, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jepatlas.core.stats import success_rate
from jepatlas.workflows.plan.driving import Drive
from jepatlas.worlds import ActionWorld, FlatWorld

__all__ = ["detours", "success_table"]

NOTHING = "–"


def success_table(world: ActionWorld, drives: Mapping[str, Drive], chance: np.ndarray) -> dict[str, Any]:
    """Columns are narrow, so that a terminal of 80 columns holds them; the title says what they mean."""
    rows = [
        [name, *_share(drive.reached), _typical(drive), _ratio(world, drive), str(int(drive.out_of_reach.sum()))]
        for name, drive in drives.items()
    ]
    rows.append(["random actions", *_share(chance), NOTHING, NOTHING, NOTHING])
    title = "Goals reached (medians where reached; +∞: held to be out of reach)"
    columns = ["who drives", "reached", "share [95%]", "steps", "× shortest", "+∞"]
    return {"title": title, "columns": columns, "rows": rows}


def detours(world: ActionWorld, drive: Drive) -> np.ndarray | None:
    """Steps over the least number of steps to within reach, for the goals that were reached; where it is known."""
    if not isinstance(world, FlatWorld) or world.current is not None or not drive.reached.any():
        return None
    pairs = zip(drive.tasks.starts[drive.reached], drive.tasks.goals[drive.reached], strict=True)
    least = np.array([world.distance_to(goal, start[None])[0] for start, goal in pairs]) - world.reach
    return drive.steps[drive.reached] / np.maximum(np.ceil(least), 1)


def _share(reached: np.ndarray) -> list[str]:
    found = success_rate(reached)
    return [f"{int(reached.sum())} of {found.n}", f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"]


def _typical(drive: Drive) -> str:
    return f"{np.median(drive.steps[drive.reached]):.0f}" if drive.reached.any() else NOTHING


def _ratio(world: ActionWorld, drive: Drive) -> str:
    ratio = detours(world, drive)
    return NOTHING if ratio is None else f"{np.median(ratio):.2f}"
