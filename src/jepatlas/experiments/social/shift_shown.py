"""What shifts and other widths cost, to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import bars, extremes, grouped, mean_and_range, plain
from jepatlas.experiments.social.scenes import SCENES

__all__ = ["shift_figure", "shift_table", "width_figure", "width_table"]

PARTS = {"inside": "states like those fitted on", "outside": "others", "own": "others, by a map of their own"}


def shift_figure(scenes: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    series = [bars(title, [mean_and_range(runs, name) for runs in scenes.values()]) for name, title in PARTS.items()]
    return {
        "kind": "bars",
        "title": "Held-out R² of maps fitted on a part of the states",
        "y_label": "held-out R²",
        "names": list(scenes),
        "series": series,
        "note": "Bars are means over seeds, with the lowest and the highest.",
    }


def shift_table(moved: Sequence[Result]) -> dict[str, Any]:
    rows = [
        [
            SCENES[run.at["scene"]].title,
            run.at["seed"],
            run.status,
            plain(run.value("pairs"), ".0f"),
            *(plain(run.value(name)) for name in (*PARTS, "price")),
            plain(run.value("directions"), ".1f"),
        ]
        for run in moved
    ]
    columns = [
        "scene",
        "seed",
        "agents",
        "pairs fitted",
        *(f"R², {title}" for title in PARTS.values()),
        "price",
        "directions",
    ]
    return {"title": "Shift (published: .891 within, .844 shifted)", "columns": columns, "rows": rows}


def width_figure(pairs: Sequence[Result]) -> dict[str, Any]:
    """Held-out R² of each width with each other, the mean over seeds."""
    down, across = (sorted({pair.at[name] for pair in pairs}) for name in ("width", "to"))
    found = grouped(pairs, "width", "to")
    matrix = [[mean_and_range(found.get((one, other), []), "r2").value for other in across] for one in down]
    return {
        "kind": "heatmap",
        "title": "Held-out R² from one width (down) to another",
        "matrix": matrix,
        "x": [str(width) for width in across],
        "y": [str(width) for width in down],
    }


def width_table(pairs: Sequence[Result]) -> dict[str, Any]:
    names = ("r2", "r2_raw", "dsc", "nos_10", "r2_pca")
    rows = [
        [
            f"{one} → {other}",
            *(extremes(mean_and_range(runs, name)) for name in names),
            extremes(mean_and_range(runs, "directions"), 1),
        ]
        for (one, other), runs in grouped(pairs, "width", "to").items()
    ]
    columns = ["widths", "R²", "R², as they are", "DSC", "NOS@10", "R², PCA of such widths", "directions"]
    return {
        "title": "Widths (published: S to B .814, S to L .742): means over seeds (lowest to highest)",
        "columns": columns,
        "rows": rows,
    }
