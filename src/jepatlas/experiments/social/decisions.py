"""Decision rules of the study: how numbers over seeds decide a claim, and how collapsed agents are treated.

A claim names numbers that should be above 0, with confidence intervals over seeds (`decide`). Where any of several
numbers may decide, the intervals hold for all of them at once (Bonferroni). Latents that vary along fewer than
`MIN_DIRECTIONS` directions have collapsed. They align easily and say little about learning, so numbers of collapsed
agents are reported but excluded, and what rests on the remaining ones holds in part at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from jepatlas.core.figures import Curves, Figure
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import mean_interval
from jepatlas.experiments.engine.experiment import Finding, Result
from jepatlas.experiments.engine.rules import combined, decide
from jepatlas.experiments.engine.seed_tables import grouped, mean_and_range
from jepatlas.experiments.social.scenes import SCENES
from jepatlas.workflows.vision import MIN_DIRECTIONS

__all__ = [
    "MEASURES",
    "MIN_DIRECTIONS",
    "UNKNOWN",
    "VARIANTS",
    "collapse_note",
    "collapsed_seeds",
    "conservative",
    "decide",
    "decide_by_scene",
    "informative",
    "mark_collapsed",
    "mean_difference",
    "measured_groups",
    "minimum",
    "positive_verdicts",
    "seed_differences",
    "simultaneous",
]

MEASURES = {"r2": "R²", "dsc": "DSC", "nos_10": "NOS@10"}
"""Measures of alignment. For NOS@10, lower is better."""
VARIANTS = {"r2": ("r2",), "dsc": ("dsc", "dsc_there"), "nos_10": ("nos_10", "nos_10_there")}
"""DSC and NOS@10 are taken through the inverse of the map, as published, and through the map itself (`_there`). The
first depends on where the inverse is truncated, so a statement must hold for both."""
UNKNOWN = Estimate(np.nan, -np.inf, np.inf, 0)
"""Stands for runs without a result."""


def seed_differences(better: Sequence[Result], worse: Sequence[Result], key: str) -> np.ndarray:
    """Per seed, by how much a measure is better in `better` than in `worse`; means over pairs of the same seed."""
    sign = -1 if key.startswith("nos") else 1
    first = _mean_by_seed(better, key)
    second = _mean_by_seed(worse, key)
    return np.array([sign * (value - second[seed]) for seed, value in first.items() if seed in second])


def _mean_by_seed(runs: Sequence[Result], key: str) -> dict[int, float]:
    """Mean over the pairs of each seed. A seed with a missing value is left out."""
    means = {}
    for seed in dict.fromkeys(run.at["seed"] for run in runs):
        mean = float(np.mean([run.value(key) for run in runs if run.at["seed"] == seed]))
        if np.isfinite(mean):
            means[seed] = mean
    return means


def simultaneous(differences: Mapping[str, np.ndarray]) -> dict[str, Estimate]:
    """Means over seeds with intervals that hold for all of them at once."""
    return {name: mean_interval(values, comparisons=len(differences)) for name, values in differences.items()}


def mean_difference(better: Sequence[Result], worse: Sequence[Result], measure: str, among: int) -> Estimate:
    """Mean paired difference of a measure over seeds, conservative over its variants."""
    return conservative(
        [mean_interval(seed_differences(better, worse, way), comparisons=among) for way in VARIANTS[measure]]
    )


def conservative(variants: Sequence[Estimate]) -> Estimate:
    """The smallest of several variants of one number, with an interval that covers all of their intervals.

    >>> conservative([Estimate(2.0, 1.0, 3.0, 3), Estimate(1.0, -1.0, 3.5, 3)])
    Estimate(value=1.0, low=-1.0, high=3.5, n=3)
    """
    least = min(variants, key=lambda one: (not np.isnan(one.value), one.value))
    return Estimate(least.value, min(one.low for one in variants), max(one.high for one in variants), least.n)


def minimum(units: Sequence[Estimate]) -> Estimate:
    """The elementwise minimum of one number in several units: above 0 only if it is in every unit."""
    value, low, high = (min(getattr(unit, end) for unit in units) for end in ("value", "low", "high"))
    return Estimate(value, low, high, units[0].n)


def measured_groups(pairs: Sequence[Result], coordinate: str, measure: str) -> tuple[dict[str, list[Result]], int]:
    """The pairs by one coordinate, and the number of groups left out because no pair has the measure."""
    groups = grouped(pairs, coordinate)
    found = {name: runs for (name,), runs in groups.items() if mean_and_range(runs, measure).n}
    return found, len(groups) - len(found)


def collapsed_seeds(runs: Sequence[Result]) -> list[int]:
    """Seeds at which some finished pair has collapsed latents."""
    finished = [run for run in runs if run.status == "finished"]
    return sorted({run.at["seed"] for run in finished if not run.value("directions") >= MIN_DIRECTIONS})


def mark_collapsed(title: str, runs: Sequence[Result]) -> str:
    """A row title that lists the collapsed seeds."""
    seeds = collapsed_seeds(runs)
    return f"{title} (collapsed at {_seeds(seeds)})" if seeds else title


def collapse_note(groups: Mapping[str, Sequence[Result]]) -> str:
    """A sentence, with a leading space, that lists the collapsed groups; empty if there are none."""
    listed = []
    for title, runs in groups.items():
        if seeds := collapsed_seeds(runs):
            listed.append(f"{title} ({_seeds(seeds)})")
    return f" Excluded because latents collapsed: {'; '.join(listed)}." if listed else ""


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def informative(verdict: Verdict, counts: bool) -> Verdict:
    """The verdict itself if it counts, otherwise the same number without a threshold."""
    if counts:
        return verdict
    return replace(verdict, threshold=None, passed=None, advice="Excluded: some of these agents collapsed.")


def positive_verdicts(
    found: Mapping[str, Estimate], good: str, bad: str, counts: Sequence[bool] | None = None
) -> tuple[Verdict, ...]:
    """One verdict per number that should be above 0; those with `counts` False have no threshold."""
    verdicts = []
    for number, (name, estimate) in enumerate(found.items()):
        verdict = Verdict.judge(name, estimate, direction="higher", threshold=0.0, good=good, bad=bad)
        verdicts.append(informative(verdict, counts is None or counts[number]))
    return tuple(verdicts)


def decide_by_scene(results: Sequence[Result], judge: Callable[[Sequence[Result]], Finding]) -> Finding:
    """Judge each scene with a finished trial, and combine: the claim holds if it holds in all of them."""
    found = {}
    for (scene,), runs in grouped(results, "scene").items():
        if any(run.status == "finished" for run in runs):
            found[scene] = judge(runs)
    decided = [scene for scene, finding in found.items() if finding.outcome != "undecided"]
    main = decided[0] if decided else next(iter(found))
    verdicts = []
    figures = []
    tables = []
    sentences = []
    for scene, finding in found.items():
        title = SCENES[scene].title.capitalize()
        sentences.append(f"{title}: {finding.sentence}")
        verdicts += [replace(verdict, name=f"{verdict.name}_{scene}") for verdict in finding.verdicts]
        figures += [_name_scene(scene, title, figure) for figure in finding.figures]
        tables += [replace(table, title=f"{title}. {table.title}") for table in finding.tables]
    return Finding(
        combined([finding.outcome for finding in found.values()]),
        " ".join(sentences),
        short=f"{main}: {found[main].short}",
        verdicts=tuple(verdicts),
        figures=tuple(figures),
        tables=tuple(tables),
    )


def _name_scene(scene: str, title: str, figure: Figure) -> Figure:
    """The scene in the title of a figure and of its panels, which are printed without the figure's title."""
    if isinstance(figure, Curves) and figure.panels is not None:
        panels = [replace(panel, title=f"{scene}: {panel.title}") for panel in figure.panels]
        figure = replace(figure, panels=panels)
    return replace(figure, title=f"{title}. {figure.title}")
