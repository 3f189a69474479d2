"""Two views of real scenes without any training: alignment of PCA of grey pixels and of an untrained encoder.

The scenes are the left and right camera of a car (held out by time block) and objects turned by 90° (held out by
object). `JEPATLAS_DATA` names the folder that contains `driving` and `eth80`, each with its
`views.csv`. No trained model is included; these are the controls for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.records import Verdict
from jepatlas.experiments.alignment.view_alignment import run
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Criterion, Outcome
from jepatlas.experiments.engine.seed_tables import cell, finished_only, grouped, horizontal, mean_and_range, select

__all__ = ["EXPERIMENT"]

CONTROLS = {"pca": "PCA of grey pixels", "untrained": "untrained encoder"}
SCENES = {"driving": "left → right camera", "eth80": "objects, turned by 90°"}
PUBLISHED = {
    "driving": ("nuScenes, front and side", 0.838, 0.804, 0.36),
    "eth80": ("smallNORB, 0° and 160°", 0.891, 0.872, 0.27),
}
"""Setting, R², DSC, NOS@10."""
SHOWN = {"r2": "R²", "r2_raw": "R², not standardised", "dsc": "DSC", "nos_10": "NOS@10"}

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
