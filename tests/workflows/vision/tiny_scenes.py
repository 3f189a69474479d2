"""Tiny images of two views with labels and groups, and recipes that train in a second."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from jepatlas.nn import ViTConfig
from jepatlas.objectives.vision import IJEPAConfig, NarrowPredictorConfig
from jepatlas.recipes import ImageTable, VisionRecipe
from jepatlas.training import ConstantSchedule, TrainingConfig

__all__ = ["SIZE", "agent", "write_scenes"]

SIZE = 16


def write_scenes(folder: Path, *, groups: int = 10, each: int = 4, labels: bool = True, name: str = "g") -> Path:
    """Stripes: orientation is the label, width and phase the state; the right view has other colours."""
    rng = np.random.default_rng(0)
    place = np.arange(SIZE)
    rows = []
    folder.mkdir(parents=True, exist_ok=True)
    for group in range(groups):
        wave = rng.uniform(0.5, 1.5)
        for number in range(each):
            line = np.sin(wave * place + rng.uniform(0, 6))
            stripes = np.broadcast_to(line[:, None] if group % 2 else line, (SIZE, SIZE))
            for view, sign in (("left", 1), ("right", -1)):
                shades = np.stack([stripes, sign * stripes, stripes * 0.5], 2)
                file = f"{name}{group}-{number}-{view}.png"
                Image.fromarray((127.5 + 100 * shades).astype(np.uint8)).save(folder / file)
                rows.append([file, f"{name}{group}-{number}", view, f"{name}{group}", ("standing", "lying")[group % 2]])
    columns = ["path", "state", "view", "group", "label"]
    with (folder / "views.csv").open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows] if labels else [columns[:4], *(row[:4] for row in rows)])
    return folder / "views.csv"


def agent(
    table: Path, view: str, *, seed: int = 0, width: int = 16, objective: Any = None, **training: Any
) -> VisionRecipe:
    config = {
        "steps": 6,
        "batch_size": 8,
        "lr": 1e-3,
        "collapse": 0.0,
        "checkpoint_every": 3,
        "log_every": 3,
    } | training
    return VisionRecipe(
        seed=seed,
        images=ImageTable(str(table)).sealed(),
        view=view,
        size=SIZE,
        encoder=ViTConfig(patch=4, width=width, depth=1, heads=2, mlp_ratio=2.0),
        objective=objective or IJEPAConfig(NarrowPredictorConfig(8, 1, 2)),
        training=TrainingConfig(schedule=ConstantSchedule(), **config),
    )
