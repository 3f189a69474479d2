"""What other widths cost a map, at the same seeds: against the usual width, and the more the further apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.alignment.controls import pca_control
from jepatlas.core.linear import r2
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import mean_interval
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import grouped
from jepatlas.experiments.social.charts import Met
from jepatlas.experiments.social.measures import translate

__all__ = ["lower", "steeper", "width_verdict", "widths"]


def widths(met: Met, rows: int) -> dict[str, Estimate]:
    """Scores of a rectangular map, and R² of PCA of the same widths."""
    a, b, fit = met.a["h"], met.b["h"], met.split.fit
    found = translate(met, a, b, rows)
    every = np.arange(len(found.target))
    wide = [pca_control(side["raw"], side["h"].shape[1], fit) for side in (met.a, met.b)]
    control = translate(met, wide[0], wide[1], rows)
    scores = found.scores(every, every) | {"r2_pca": r2(control.target, control.predicted)}
    return {name: Estimate(value, value, value, len(every)) for name, value in scores.items()}


def lower(pairs: Sequence[Result], usual: int, among: int = 1) -> Estimate:
    """How much lower R² is where one of the widths is another one."""
    gaps = []
    for runs in grouped(pairs, "seed").values():
        same = [run.value("r2") for run in runs if run.at["width"] == run.at["to"] == usual]
        other = [run.value("r2") for run in runs if (run.at["width"] == usual) != (run.at["to"] == usual)]
        gaps.append(np.mean(same) - np.mean(other) if same and other else np.nan)
    return _known(gaps, among)


def steeper(pairs: Sequence[Result], among: int = 1) -> Estimate:
    """By how much R² falls with each doubling of the ratio of widths: a line over all pairs of a seed."""
    falls = []
    for runs in grouped(pairs, "seed").values():
        apart = np.array([abs(np.log2(run.at["to"] / run.at["width"])) for run in runs])
        scores = np.array([run.value("r2") for run in runs])
        falls.append(-np.polyfit(apart, scores, 1)[0] if np.ptp(apart) > 0 and np.isfinite(scores).all() else np.nan)
    return _known(falls, among)


def _known(values: Sequence[float], among: int) -> Estimate:
    found = np.array(values)
    return mean_interval(found[np.isfinite(found)], comparisons=among)


def width_verdict(name: str, found: Estimate) -> Verdict:
    return Verdict.judge(
        f"r2_lost_{name}",
        found,
        direction="higher",
        threshold=0.0,
        good="R² is surely lower between agents of other widths, or the further apart these are.",
        bad="R² is not surely lower between agents of other widths, or the further apart these are.",
    )
