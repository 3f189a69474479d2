"""Two views of real scenes, and nothing learned: how well do PCA of grey pixels and an untrained encoder align?

Left and right camera of a car (held out: time blocks) and objects turned by 90° (held out: objects), by the published
protocol: latents standardised, a ridge map from one half, R² on the other, DSC and NOS@10 back in the first
coordinates. `JEPATLAS_DATA` names the folder that holds `driving` and `eth80`, each with its `views.csv`.
No trained model is among them yet: these are the controls that one will have to beat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jepatlas.core.records import Verdict
from jepatlas.experiments.alignment.beside_pca import beside_pca, best_runs
from jepatlas.experiments.alignment.image_control_runs import run
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, mean_and_range, select

__all__ = ["EXPERIMENT"]

CONTROLS = {"pca": "PCA of grey pixels", "untrained": "untrained encoder"}
SCENES = {"driving": "left → right camera", "eth80": "objects, turned by 90°"}
PUBLISHED = {
    "driving": ("nuScenes, front and side", 0.838, 0.804, 0.36),
    "eth80": ("smallNORB, 0° and 160°", 0.891, 0.872, 0.27),
}
SHOWN = {"r2": "R²", "r2_raw": "R², not standardised", "dsc": "DSC", "nos_10": "NOS@10"}

CLAIM = Claim(
    statement="An R² of .84 to .89 between two views speaks of predictive structure that training found, not of what "
    "the images look like.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, Table 1 and section 4.2",
    measured="R², DSC, NOS@10: .838 .804 .36 for nuScenes front and side, .891 .872 .27 for smallNORB at 0° and 160°; "
    "neither raw images nor an untrained encoder are compared",
)


@dataclass(frozen=True)
class Plan:
    widths: tuple[int, ...]
    groups: int | None  # of which images are taken; all where it is not given
    permutations: int
    replicates: int
    seeds: int


SCALES = {
    "tiny": Plan((8,), 6, 9, 10, 1),
    "small": Plan((16, 64, 384), None, 19, 25, 3),
    "paper": Plan((16, 64, 128, 384), None, 199, 200, 5),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    return [
        Trial(
            {"scene": scene, "control": control, "width": width, "seed": s},
            run,
            {
                "scene": scene,
                "control": control,
                "width": width,
                "groups": plan.groups,
                "permutations": plan.permutations,
                "replicates": plan.replicates,
                "seed": s,
            },
        )
        for scene in SCENES
        for control in CONTROLS
        for width in plan.widths
        for s in range(seed, seed + plan.seeds)
    ]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    finished = [result for result in results if result.status == "finished"]
    best = {scene: best_runs(select(finished, scene=scene)) for scene in SCENES}
    reached = [scene for scene, runs in best.items() if runs and all(_reaches(run) for run in runs)]
    return Finding(  # where no control reaches them, it takes a trained model to say more
        "undecided" if not reached else "holds in part" if len(reached) < len(SCENES) else "does not hold",
        " ".join(
            f"{_sentence(scene, runs)} {beside_pca(select(finished, scene=scene))}".strip()
            for scene, runs in best.items()
            if runs
        )
        + " These are other images than the published ones: what is tested is whether a figure of that size needs "
        "training. No trained model is compared yet.",
        short="best control: "
        + ", ".join(
            f"{SCENES[scene].split(',')[0]} R² {mean_and_range(runs, 'r2').value:.2f}"
            for scene, runs in best.items()
            if runs
        ),
        verdicts=tuple(_verdict(scene, runs) for scene, runs in best.items() if runs),
        figures=(_figure(finished, scale),),
        tables=(_table(finished),),
    )


def _reaches(result: Result) -> bool:
    return result.estimate("r2").low >= PUBLISHED[result.at["scene"]][1]


def _sentence(scene: str, runs: Sequence[Result]) -> str:
    first, (setting, *_) = runs[0].at, PUBLISHED[scene]
    found = {name: mean_and_range(runs, name) for name in SHOWN}
    return (
        f"{SCENES[scene].capitalize()}: of all controls {CONTROLS[first['control']]} ({first['width']} dimensions) "
        f"aligns best: R² {cell(found['r2'])}, DSC {found['dsc'].value:.3f}, NOS@10 {found['nos_10'].value:.2f}; "
        f"published for {setting}: {PUBLISHED[scene][1]}, {PUBLISHED[scene][2]} and {PUBLISHED[scene][3]}."
    )


def _verdict(scene: str, runs: Sequence[Result]) -> Verdict:
    lowest = min(runs, key=lambda run: run.estimate("r2").low)
    return Verdict.judge(
        f"r2_{scene}",
        lowest.estimate("r2"),
        direction="higher",
        threshold=PUBLISHED[scene][1],
        good="Images that no model was trained on reach the published R²: it takes no learning.",
        bad="The controls do not reach the published R² at every seed.",
    )


def _figure(results: Sequence[Result], scale: Scale) -> dict[str, Any]:
    widths, panels = SCALES[scale].widths, list[dict[str, Any]]()
    for scene, title in SCENES.items():
        series = [
            {
                "name": f"{CONTROLS[control]}, {SHOWN[name]}",
                "x": list(widths),
                "y": [
                    mean_and_range(select(results, scene=scene, control=control, width=w), name).value for w in widths
                ],
            }
            for control in CONTROLS
            for name in ("r2", "r2_raw")
        ]
        published = {"name": "published R²", "x": [widths[0], widths[-1]], "y": [PUBLISHED[scene][1]] * 2, "dash": True}
        panels.append({"title": title, "series": [*series, published]})
    return {
        "kind": "curves",
        "title": "Held-out R² between two views, without any training",
        "log_x": True,
        "x_label": "dimensions",
        "y_label": "held-out R²",
        "panels": panels,
    }


def _table(results: Sequence[Result]) -> dict[str, Any]:
    rows = [
        [
            SCENES[r.at["scene"]],
            CONTROLS[r.at["control"]],
            r.at["width"],
            r.at["seed"],
            *(cell(r.estimate(name)) for name in SHOWN),
            f"{max(r.value(f'p_{name}') for name in SHOWN):.3f}",
        ]
        for r in results
    ]
    columns = ["views", "control", "d", "seed", *SHOWN.values(), "largest p"]
    return {
        "title": "Held out by time block or object; intervals and p-values by the same groups",
        "columns": columns,
        "rows": rows,
    }


EXPERIMENT = Experiment("image-controls", "Real images, nothing learned", CLAIM, trials, conclude)
