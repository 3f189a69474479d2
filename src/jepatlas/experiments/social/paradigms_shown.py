"""What agents learn by, to look at: published figures beside ours, controls, and pairs that collapsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import bars, mean_and_range, spread
from jepatlas.experiments.social.charts import CONTROLS, NAMES
from jepatlas.experiments.social.collapse import ENOUGH, marked

__all__ = ["bars_figure", "lost_table", "scores_table"]

Kinds = Mapping[str, Sequence[Result]]
PUBLISHED = {
    "ijepa": ((0.891, 0.872, 0.27), (0.489, 0.584, 0.033)),
    "mae": ((0.882, 0.845, 0.31), (0.409, 0.450, 0.028)),
    "autoencoder": ((0.611, 0.593, 0.58), None),
    "simclr": ((0.678, 0.641, 0.52), (0.437, 0.558, 0.072)),
    "barlow-twins": (None, (0.452, 0.561, 0.058)),
    "dino": ((0.811, 0.913, 0.046), (0.283, 0.391, 0.102)),
    "moco-v3": ((0.987, 0.994, 0.125), (0.358, 0.521, 0.086)),
    "ibot": ((0.851, 0.916, 0.130), (0.283, 0.391, 0.102)),
    "swav": (None, (0.312, 0.428, 0.094)),
    "dinov2": (None, (0.441, 0.542, 0.045)),
}
"""R², DSC and NOS@10 on smallNORB and on ImageNet."""


def bars_figure(kinds: Kinds, flat: Sequence[str]) -> dict[str, Any]:
    shown = {"trained": "r2"} | {NAMES[name]: f"r2_{name}" for name in CONTROLS}
    series = [bars(title, [mean_and_range(runs, name) for runs in kinds.values()]) for title, name in shown.items()]
    published = [(PUBLISHED.get(name, (None,))[0] or (np.nan,))[0] for name in kinds]
    note = "Means over seeds, with the lowest and the highest; dashes: published for smallNORB."
    return {
        "kind": "bars",
        "title": "Held-out R² between two views, by what the agents learn by",
        "names": [f"{name}*" if name in flat else name for name in kinds],
        "y_label": "held-out R²",
        "series": series,
        "published": published,
        "note": f"{note} *: collapsed at some seed." if flat else note,
    }


def scores_table(kinds: Kinds) -> dict[str, Any]:
    rows = [
        [
            marked(name, runs),
            *(_spread(runs, key) for key in ("r2", "r2_raw", "dsc", "nos_10", "beyond", "beyond_raw", "cka")),
            f"{mean_and_range(runs, 'p_r2').high:.2f}",
            _spread(runs, "directions", 1),
            f"{mean_and_range(runs, 'flops').value / 1e12:.2f}",
            *(_published(name, number) for number in range(2)),
        ]
        for name, runs in kinds.items()
    ]
    columns = [
        "objective",
        "R²",
        "R², as they are",
        "DSC",
        "NOS@10",
        "R² beyond the best control",
        "the same, as they are",
        "CKA",
        "largest p",
        "directions",
        "training, 10¹² FLOPs",
        "published, smallNORB",
        "published, ImageNet",
    ]
    return {
        "title": "Mean ± standard deviation over seeds; published are R², DSC, NOS@10",
        "columns": columns,
        "rows": rows,
    }


def _spread(runs: Sequence[Result], key: str, digits: int = 3) -> str:
    return spread([run.value(key) for run in runs], digits)


def _published(name: str, number: int) -> str:
    found = PUBLISHED.get(name, (None, None))[number]
    return "–" if found is None else " ".join(map(str, found))


def lost_table(pairs: Sequence[Result]) -> dict[str, Any]:
    """Agents whose latents collapsed, and pairs that came to no number, are kept in sight."""
    rows = [
        [pair.at["objective"], pair.at["seed"], pair.status, f"{pair.value('directions'):.1f}"]
        for pair in pairs
        if not pair.value("directions") >= ENOUGH
    ]
    return {
        "title": "Pairs whose latents vary along less than 2 directions, or that did not finish",
        "columns": ["objective", "seed", "agents", "directions"],
        "rows": rows,
    }
