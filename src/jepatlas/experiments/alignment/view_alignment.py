"""Alignment of two views of real scenes by controls without training: PCA of grey pixels, or an untrained encoder.

The protocol is the published one: standardised latents, a ridge map from one half, R² on the other, and DSC and NOS@10
in the first coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jepatlas.alignment.controls import pca_control, untrained_control
from jepatlas.alignment.evidence import HeldOut
from jepatlas.alignment.maps import RidgeMap
from jepatlas.alignment.similarity import METRICS
from jepatlas.alignment.splits import split_rows
from jepatlas.core.linear import Split, r2
from jepatlas.core.linear_map import CONDITION_LIMIT
from jepatlas.core.records import Direction, Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.data.images import MultiViewTable
from jepatlas.experiments.engine.experiment import Plain
from jepatlas.experiments.engine.scene_images import image_folder

__all__ = ["run", "view_pairs"]

DIRECTIONS: dict[str, Direction] = {"r2": "higher", "r2_raw": "higher", "dsc": "higher", "nos_10": "lower"}


def run(settings: Plain, folder: str) -> Plain:
    """The seed determines the held-out groups and the weights of the untrained encoders."""
    del folder
    table = MultiViewTable.read(image_folder() / settings["scene"])
    rows, groups = view_pairs(table, settings["scene"], settings["groups"])
    split = split_rows(len(groups), numpy_generator(settings["seed"], "split"), groups=groups)
    a, b = (_control(settings, table.images(side, mode="grey"), split, number) for number, side in enumerate(rows))
    return {"status": "finished", "verdicts": _measure(a, b, groups, split, settings)}


def view_pairs(
    table: MultiViewTable, scene: str, groups: int | None
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Rows of the first and the second view, and the group of each pair (time block or object)."""
    views = [("left", "right")] if scene == "driving" else _views_90_degrees_apart(table)
    first, second = (np.concatenate(side) for side in zip(*(table.pairs(*pair) for pair in views), strict=True))
    labels = table.column("group")[first]
    kept = np.isin(labels, np.unique(labels)[:groups])
    return (first[kept], second[kept]), labels[kept]


def _views_90_degrees_apart(table: MultiViewTable) -> list[tuple[str, str]]:
    seen = sorted({int(view) for view in table.column("view")})
    return [(str(view), str((view + 90) % 360)) for view in seen if (view + 90) % 360 in seen]


def _control(settings: Plain, images: np.ndarray, split: Split, number: int) -> np.ndarray:
    if settings["control"] == "pca":
        return pca_control(images, settings["width"], split.fit)
    return untrained_control(images, settings["width"], numpy_generator(settings["seed"], "encoder", number))


@dataclass(frozen=True)
class Maps:
    """Maps between the views, as published (standardised latents) and between raw latents."""

    standardised: RidgeMap
    raw: RidgeMap


def _measure(a: np.ndarray, b: np.ndarray, groups: np.ndarray, split: Split, settings: Plain) -> list[Plain]:
    """Every measure on held-out rows, with its interval by groups and its null.

    The null swaps whole groups for the drive as well: the held-out blocks are not contiguous in time, and shifting by
    whole blocks would allow only 14 permutations, where p ≤ 5% needs 19.
    """

    def fit(rows: np.ndarray, partners: np.ndarray) -> Maps:
        maps = []
        for standardise in (True, False):
            ridge = RidgeMap(standardise=standardise, condition_limit=CONDITION_LIMIT)
            maps.append(ridge.fit(a[rows], b[partners], groups=groups[rows]))
        return Maps(*maps)

    def score(maps: Maps, rows: np.ndarray, partners: np.ndarray) -> Mapping[str, float]:
        x_scale = maps.standardised.map_.x_scale
        y_scale = maps.standardised.map_.y_scale
        own = a[rows] / x_scale
        back = maps.standardised.inverse_transform(b[partners]) / x_scale
        return {
            "r2": r2(b[partners] / y_scale, maps.standardised.transform(a[rows]) / y_scale),
            "r2_raw": r2(b[partners], maps.raw.transform(a[rows])),
            "dsc": METRICS["dsc"](own, back),
            "nos_10": METRICS["nos_10"](own, back),
        }

    test = HeldOut(n=len(a), split=split, fit=fit, score=score, refit=False, groups=groups)
    rng = numpy_generator(settings["seed"], "evidence")
    found = test.intervals(rng, replicates=settings["replicates"])
    nulls = test.null(rng, directions=DIRECTIONS, permutations=settings["permutations"])
    verdicts = []
    for name, direction in DIRECTIONS.items():
        null = nulls[name]
        chance = Estimate.exact(null.p, null.n_permutations)
        verdicts += [
            Verdict.judge(name, found[name], direction=direction, null=null.mean, good="on held-out groups"),
            Verdict.judge(f"p_{name}", chance, direction="lower", good="by permutation of groups"),
        ]
    return [verdict.to_json() for verdict in verdicts]
