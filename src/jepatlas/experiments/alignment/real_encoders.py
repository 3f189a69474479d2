"""Pretrained encoders that never met, on real images and texts: maps between them, beside controls.

EfficientNet-Lite 0, 1 and 2 encode Fashion-MNIST, objects (ETH-80) and a drive; three sentence encoders encode
sentences of Python's documentation. The leading principal coordinates of one encoder are predicted by a ridge map from
those of another one, of the other one with random weights, or of the raw input (pixels, or counts of words).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jepatlas.core.figures import Bars, Table
from jepatlas.core.records import Verdict
from jepatlas.experiments.alignment.encoder_trials import SOURCES, run
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Criterion, outcome_of_criteria
from jepatlas.experiments.engine.seed_tables import bars, cell, finished_only, grouped, mean_and_range

__all__ = ["EXPERIMENT"]

LITE = [f"efficientnet-lite{number}" for number in range(3)]
IMAGE_PAIRS = [(LITE[0], LITE[1]), (LITE[0], LITE[2]), (LITE[1], LITE[2])]
TEXT_PAIRS = [("paraphrase-MiniLM-L3", "all-MiniLM-L6"), ("wordllama", "all-MiniLM-L6")]
SCENES = {"fashion-mnist": IMAGE_PAIRS, "eth80": IMAGE_PAIRS, "driving": IMAGE_PAIRS, "texts": TEXT_PAIRS}
SHORT = {name: name.removeprefix("efficientnet-") for name in LITE} | {
    "paraphrase-MiniLM-L3": "MiniLM-L3",
    "all-MiniLM-L6": "MiniLM-L6",
}
NAMES = {"trained": "pretrained", "untrained": "random weights", "raw": "PCA of the input"}

CLAIM = Claim(
    statement="Encoders that were trained independently on the same kind of data are related by a linear map, which "
    "training creates: random weights and the raw input do not give it.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, sections 3 and 4",
    measured="R² of .84 to .89 between agents trained there, without controls; encoders trained by others are not "
    "compared",
)


@dataclass(frozen=True)
class Plan:
    scenes: tuple[str, ...]
    rows: int
    size: int
    width: int
    seeds: int
    permutations: int
    replicates: int


SCALES = {
    "tiny": Plan(("fashion-mnist", "texts"), 48, 32, 4, seeds=1, permutations=9, replicates=10),
    "small": Plan(tuple(SCENES), 1000, 128, 128, seeds=3, permutations=19, replicates=50),
    "paper": Plan(tuple(SCENES), 10_000, 224, 128, seeds=5, permutations=199, replicates=200),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    settings = {
        "rows": plan.rows,
        "size": plan.size,
        "width": plan.width,
        "permutations": plan.permutations,
        "replicates": plan.replicates,
    }
    found = []
    for scene in plan.scenes:
        for first, second in SCENES[scene][: 1 if scale == "tiny" else None]:
            for number in range(seed, seed + plan.seeds):
                at = {"scene": scene, "first": first, "second": second, "seed": number}
                found.append(Trial(at, run, at | settings))
    return found


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """The claim holds for a scene if, at every seed, each R² is above chance and above both controls' intervals."""
    ended = finished_only(results)
    scenes = grouped(ended, "scene")
    criteria = []
    for (scene,), runs in scenes.items():
        for ending, name in (("_untrained", "random weights"), ("_raw", "PCA of the input")):
            met = [one.estimate("r2").low > one.estimate(f"r2{ending}").high for one in runs]
            criteria.append(Criterion.for_all(f"{scene}: R² above that of {name}", met))
        criteria.append(
            Criterion.for_all(f"{scene}: R² above chance (p ≤ 0.05)", [one.value("p_r2") <= 0.05 for one in runs])
        )
    parts = []
    for (scene,), runs in scenes.items():
        values = [mean_and_range(runs, f"r2{ending}").value for ending in SOURCES.values()]
        parts.append(f"{scene} {values[0]:.2f} ({values[1]:.2f}, {values[2]:.2f})")
    return Finding(
        outcome_of_criteria(criteria),
        f"R² pretrained (random weights, PCA of the input): {', '.join(parts)}.",
        criteria=tuple(criteria),
        verdicts=tuple(_verdict(scene, runs) for (scene,), runs in scenes.items()),
        figures=tuple(_figure(scene, runs) for (scene,), runs in scenes.items()),
        tables=(_table(ended),),
    )


def _verdict(scene: str, runs: Sequence[Result]) -> Verdict:
    lowest = min(runs, key=lambda one: one.estimate("r2").low)
    control = max(one.estimate(f"r2{ending}").high for one in runs for ending in ("_untrained", "_raw"))
    return Verdict.judge(
        f"r2_{scene.replace('-', '_')}",
        lowest.estimate("r2"),
        direction="higher",
        threshold=control,
        good="Pretrained encoders predict each other better than any control.",
        bad="A control predicts as well as the pretrained encoder at some seed.",
    )


def _pair_name(first: str, second: str) -> str:
    return f"{SHORT.get(first, first)} → {SHORT.get(second, second)}"


def _figure(scene: str, results: Sequence[Result]) -> Bars:
    pairs = grouped(results, "first", "second")
    series = [
        bars(NAMES[source], [mean_and_range(runs, f"r2{ending}") for runs in pairs.values()])
        for source, ending in SOURCES.items()
    ]
    names = [_pair_name(first, second) for first, second in pairs]
    return Bars(title=scene, y_label="held-out R²", names=names, series=series)


def _table(results: Sequence[Result]) -> Table:
    """Means over seeds with the lowest and highest seed."""
    rows = []
    for (scene, first, second), runs in grouped(results, "scene", "first", "second").items():
        cells = [cell(mean_and_range(runs, f"r2{ending}")) for ending in SOURCES.values()]
        cells += [cell(mean_and_range(runs, f"recall{ending}")) for ending in SOURCES.values()]
        rows.append([scene, _pair_name(first, second), *cells, f"{mean_and_range(runs, 'p_r2').high:.2f}"])
    columns = [f"{what}, {name}" for what in ("R²", "neighbours found") for name in NAMES.values()]
    return Table("Held out; mean over seeds (lowest, highest)", ["scene", "pair", *columns, "largest p"], rows)


EXPERIMENT = Experiment("real-encoders", "Pretrained encoders that never met", CLAIM, trials, conclude)
