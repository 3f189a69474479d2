"""Two views of real scenes without any training: alignment of PCA of grey pixels and of an untrained encoder.

The scenes are the left and right camera of a car (held out by time block) and objects turned by 90° (held out by
object). The protocol is the published one: standardised latents, a ridge map from one half, R² on the other, and DSC
and NOS@10 in the first coordinates. `JEPATLAS_DATA` names the folder that contains `driving` and `eth80`, each with its
`views.csv`. No trained model is included; these are the controls for one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from jepatlas.alignment.controls import pca_control, untrained_control
from jepatlas.alignment.evidence import HeldOut
from jepatlas.alignment.maps import RidgeMap
from jepatlas.alignment.similarity import METRICS
from jepatlas.alignment.splits import split_rows
from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.linear import Split, r2
from jepatlas.core.linear_map import CONDITION_LIMIT
from jepatlas.core.records import Direction, Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.data.images import MultiViewTable
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Criterion, Outcome
from jepatlas.experiments.engine.scene_images import image_folder
from jepatlas.experiments.engine.seed_tables import cell, finished_only, grouped, horizontal, mean_and_range, select

__all__ = ["EXPERIMENT", "run", "view_pairs"]

CONTROLS = {"pca": "PCA of grey pixels", "untrained": "untrained encoder"}
SCENES = {"driving": "left → right camera", "eth80": "objects, turned by 90°"}
PUBLISHED = {
    "driving": ("nuScenes, front and side", 0.838, 0.804, 0.36),
    "eth80": ("smallNORB, 0° and 160°", 0.891, 0.872, 0.27),
}
"""Setting, R², DSC, NOS@10."""
SHOWN = {"r2": "R²", "r2_raw": "R², not standardised", "dsc": "DSC", "nos_10": "NOS@10"}
DIRECTIONS: dict[str, Direction] = {"r2": "higher", "r2_raw": "higher", "dsc": "higher", "nos_10": "lower"}

CLAIM = Claim(
    statement="An R² of .84 to .89 between two views reflects predictive structure that training found, not the images "
    "themselves.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, Table 1 and section 4.2",
    measured="R², DSC, NOS@10: .838 .804 .36 for nuScenes front and side, .891 .872 .27 for smallNORB at 0° and 160°; "
    "neither raw images nor an untrained encoder are compared",
)


@dataclass(frozen=True)
class Plan:
    widths: tuple[int, ...]
    seeds: int
    permutations: int
    replicates: int
    groups: int | None = None  # number of groups to use; None for all


SCALES = {
    "tiny": Plan((8,), seeds=1, permutations=9, replicates=10, groups=6),
    "small": Plan((16, 64, 384), seeds=3, permutations=19, replicates=25),
    "paper": Plan((16, 64, 128, 384), seeds=5, permutations=199, replicates=200),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    counts = {"groups": plan.groups, "permutations": plan.permutations, "replicates": plan.replicates}
    coordinates = grid(scene=SCENES, control=CONTROLS, width=plan.widths, seed=range(seed, seed + plan.seeds))
    return [Trial(at, run, at | counts) for at in coordinates]


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
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


def _control(settings: dict[str, Any], images: np.ndarray, split: Split, number: int) -> np.ndarray:
    if settings["control"] == "pca":
        return pca_control(images, settings["width"], split.fit)
    return untrained_control(images, settings["width"], numpy_generator(settings["seed"], "encoder", number))


@dataclass(frozen=True)
class Maps:
    """Maps between the views, as published (standardised latents) and between latents as they are."""

    standardised: RidgeMap
    raw: RidgeMap


def _measure(
    a: np.ndarray, b: np.ndarray, groups: np.ndarray, split: Split, settings: dict[str, Any]
) -> list[dict[str, Any]]:
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


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """A scene refutes the claim if its best control reaches the published R² at every seed; otherwise undecided."""
    ended = finished_only(results)
    best = {scene: _best_runs(runs) for (scene,), runs in grouped(ended, "scene").items()}
    reached = [scene for scene, runs in best.items() if all(_reaches_published(run) for run in runs)]
    outcome: Outcome = "undecided"
    if reached:
        outcome = "holds in part" if len(reached) < len(SCENES) else "does not hold"
    criteria = []
    for scene, runs in best.items():
        setting, published, *_ = PUBLISHED[scene]
        name = f"{SCENES[scene]}: R² of the best control ({CONTROLS[runs[0].at['control']]}, d = {runs[0].at['width']})"
        found = cell(mean_and_range(runs, "r2"))
        criteria.append(Criterion(name, found, f"< {published} ({setting})", scene not in reached))
    scores = [f"{SCENES[scene].split(',')[0]} {mean_and_range(runs, 'r2').value:.2f}" for scene, runs in best.items()]
    return Finding(
        outcome,
        f"R² of the best control without training: {', '.join(scores)}.",
        criteria=tuple(criteria),
        verdicts=tuple(_verdict(scene, runs) for scene, runs in best.items()),
        figures=(_figure(ended, scale),),
        tables=(_table(ended), _pca_table(ended)),
    )


def _reaches_published(result: Result) -> bool:
    return result.estimate("r2").low >= PUBLISHED[result.at["scene"]][1]


def _best_runs(results: Sequence[Result], name: str = "r2") -> list[Result]:
    """The runs, over seeds, of the control and width with the highest mean score."""
    kinds = grouped(results, "control", "width").values()
    return max(kinds, key=lambda runs: mean_and_range(runs, name).value, default=[])


def _verdict(scene: str, runs: Sequence[Result]) -> Verdict:
    lowest = min(runs, key=lambda run: run.estimate("r2").low)
    return Verdict.judge(
        f"r2_{scene}",
        lowest.estimate("r2"),
        direction="higher",
        threshold=PUBLISHED[scene][1],
        good="A control without training reaches the published R².",
        bad="The controls do not reach the published R² at every seed.",
    )


def _figure(results: Sequence[Result], scale: Scale) -> Curves:
    widths = SCALES[scale].widths
    panels = []
    for scene, title in SCENES.items():
        series = []
        for control, name in product(CONTROLS, ("r2", "r2_raw")):
            runs = select(results, scene=scene, control=control)
            means = [mean_and_range(select(runs, width=w), name).value for w in widths]
            series.append(Curve(f"{CONTROLS[control]}, {SHOWN[name]}", list(widths), means))
        published = horizontal("published R²", [widths[0], widths[-1]], PUBLISHED[scene][1])
        panels.append(CurvePanel([*series, published], title))
    return Curves(
        title="Held-out R² between two views, without any training",
        log_x=True,
        x_label="dimensions",
        y_label="held-out R²",
        panels=panels,
    )


def _table(results: Sequence[Result]) -> Table:
    rows = []
    for r in results:
        cells = [cell(r.estimate(name)) for name in SHOWN]
        largest = max(r.value(f"p_{name}") for name in SHOWN)
        kind = [SCENES[r.at["scene"]], CONTROLS[r.at["control"]], r.at["width"], r.at["seed"]]
        rows.append([*kind, *cells, f"{largest:.3f}"])
    title = "Held out by time block or object; intervals and p-values by the same groups"
    return Table(title, ["views", "control", "d", "seed", *SHOWN.values(), "largest p"], rows)


def _pca_table(results: Sequence[Result]) -> Table:
    """Untrained encoder against PCA, each at its best width; one is better if its lowest seed is above the other's
    highest. Standardising increases the weight of faint directions of PCA, which two views hardly share."""
    rows = []
    for scene, name in product(SCENES, ("r2", "r2_raw")):
        untrained = mean_and_range(_best_runs(select(results, scene=scene, control="untrained"), name), name)
        pca = mean_and_range(_best_runs(select(results, scene=scene, control="pca"), name), name)
        if not untrained.n or not pca.n:
            continue
        better = "too close to tell"
        if untrained.low > pca.high:
            better = "untrained encoder"
        elif pca.low > untrained.high:
            better = "PCA"
        rows.append([SCENES[scene], SHOWN[name], f"{untrained.value:z.3f}", f"{pca.value:z.3f}", better])
    return Table("Best width of each control", ["views", "measure", "untrained encoder", "PCA", "better"], rows)


EXPERIMENT = Experiment("image-controls", "Real images without training", CLAIM, trials, conclude)
