"""What one trial of `image-controls` does: read two views, encode them without learning, map one to the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jepatlas.alignment.controls import pca_control, untrained_control
from jepatlas.alignment.maps import RidgeMap
from jepatlas.alignment.nulls import Null, half_sample_intervals, permutation_null
from jepatlas.alignment.similarity import METRICS
from jepatlas.alignment.splits import split_rows
from jepatlas.core.linear import Split, r2
from jepatlas.core.linear_map import CONDITION_LIMIT
from jepatlas.core.records import Direction, Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.data.images import MultiViewTable
from jepatlas.experiments.engine.image_folder import image_folder

__all__ = ["DIRECTIONS", "run", "view_pairs"]

DIRECTIONS: dict[str, Direction] = {"r2": "higher", "r2_raw": "higher", "dsc": "higher", "nos_10": "lower"}

Statistic = Callable[[np.ndarray, np.ndarray], Mapping[str, float]]


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """The seed decides which groups are held out, and the weights of the untrained encoders."""
    del folder
    table = MultiViewTable.read(image_folder() / settings["scene"])
    rows, groups = view_pairs(table, settings["scene"], settings["groups"])
    split = split_rows(len(groups), numpy_generator(settings["seed"], "split"), groups=groups)
    a, b = (_control(settings, table.images(side, mode="grey"), split, number) for number, side in enumerate(rows))
    return {"status": "finished", "verdicts": _measured(a, b, groups, split, settings)}


def view_pairs(
    table: MultiViewTable, scene: str, groups: int | None
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Rows of the first and the second view, and the group of each pair (time block or object)."""
    views = [("left", "right")] if scene == "driving" else _turned(table)
    first, second = (np.concatenate(side) for side in zip(*(table.pairs(*pair) for pair in views), strict=True))
    labels = table.column("group")[first]
    kept = np.isin(labels, np.unique(labels)[:groups])
    return (first[kept], second[kept]), labels[kept]


def _turned(table: MultiViewTable) -> list[tuple[str, str]]:
    """All pairs of views that are 90° apart."""
    seen = sorted({int(view) for view in table.column("view")})
    return [(str(view), str((view + 90) % 360)) for view in seen if (view + 90) % 360 in seen]


def _control(settings: dict[str, Any], images: np.ndarray, split: Split, number: int) -> np.ndarray:
    if settings["control"] == "pca":
        return pca_control(images, settings["width"], split.fit)
    return untrained_control(images, settings["width"], numpy_generator(settings["seed"], "encoder", number))


def _measured(
    a: np.ndarray, b: np.ndarray, groups: np.ndarray, split: Split, settings: dict[str, Any]
) -> list[dict[str, Any]]:
    """Every measure on held-out rows, with its interval by groups and its null: groups paired with other ones."""
    statistic, held = _statistic(a, b, groups, split), groups[split.score]
    every, rng = np.arange(len(held)), numpy_generator(settings["seed"], "evidence")
    found = half_sample_intervals(
        lambda rows: statistic(rows, rows), len(held), rng, groups=held, replicates=settings["replicates"]
    )
    # Of a drive, too, whole blocks change places: those held out do not follow each other in time, so their borders are
    # breaks already, and shifts by whole blocks would leave 14 nulls, where p ≤ 5% takes 19.
    nulls = permutation_null(
        lambda order: statistic(every, order),
        len(held),
        rng,
        directions=DIRECTIONS,
        groups=held,
        permutations=settings["permutations"],
    )
    return [verdict for name in DIRECTIONS for verdict in _verdicts(name, found[name], nulls[name])]


def _statistic(a: np.ndarray, b: np.ndarray, groups: np.ndarray, split: Split) -> Statistic:
    """Measures of some held-out rows of the first view with others of the second, by a map from the rows to fit on.

    `r2` is between standardised latents, as published; `r2_raw` is that of a map between latents as they are.
    """
    fit, score = split
    fitted, raw = (
        RidgeMap(standardise=standardise, condition_limit=CONDITION_LIMIT).fit(a[fit], b[fit], groups=groups[fit])
        for standardise in (True, False)
    )
    x_scale, y_scale = fitted.map_.x_scale, fitted.map_.y_scale
    target, predicted, predicted_raw = b[score], fitted.transform(a[score]), raw.transform(a[score])
    own, back = a[score] / x_scale, fitted.inverse_transform(b[score]) / x_scale

    def statistic(rows: np.ndarray, order: np.ndarray) -> Mapping[str, float]:
        scores = {
            "r2": r2(target[order] / y_scale, predicted[rows] / y_scale),
            "r2_raw": r2(target[order], predicted_raw[rows]),
        }
        return scores | {name: METRICS[name](own[rows], back[order]) for name in ("dsc", "nos_10")}

    return statistic


def _verdicts(name: str, found: Estimate, null: Null) -> list[dict[str, Any]]:
    chance = Estimate(null.p, null.p, null.p, null.n_permutations)
    return [
        Verdict.judge(name, found, direction=DIRECTIONS[name], null=null.mean, good="on held-out groups").to_json(),
        Verdict.judge(f"p_{name}", chance, direction="lower", good="by permutation of groups").to_json(),
    ]
