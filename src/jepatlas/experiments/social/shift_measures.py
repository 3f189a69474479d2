"""R² of maps on other states than they were fitted on, and between agents of different widths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.alignment import PairedLatents
from jepatlas.alignment.controls import pca_control
from jepatlas.alignment.maps import RidgeMap
from jepatlas.core.linear import r2
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import mean_interval
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.rules import point_estimates
from jepatlas.experiments.engine.seed_tables import grouped
from jepatlas.experiments.social.agent_pairs import groups_of_pair, scored_rows, split_of
from jepatlas.experiments.social.pair_measures import positive_scale, translate

__all__ = ["fitted_kind", "measure_shift", "measure_widths", "r2_below_usual", "r2_per_doubling"]


def fitted_kind(labels: np.ndarray, all_labels: Sequence[str]) -> np.ndarray:
    """Mask of the rows that maps are fitted on: driving straight, or the first half of the categories.

    >>> fitted_kind(np.array(["mug", "car", "plane"]), ["car", "mug", "plane"]).tolist()
    [False, True, False]
    """
    if "straight" in all_labels:
        return labels == "straight"
    return np.isin(labels, sorted(all_labels)[: len(all_labels) // 2])


def measure_shift(pair: PairedLatents) -> dict[str, Estimate]:
    """R² on states like those fitted on, on other states, and there by a map of their own."""
    assert pair.labels is not None, "scenes have labels"
    here = fitted_kind(pair.labels, np.unique(pair.labels).tolist())
    fit, score = split_of(pair)
    fit_here = fit[here[fit]]
    fit_away = fit[~here[fit]]
    inside = score[here[score]]
    outside = score[~here[score]]
    rng = numpy_generator(0, "shift")
    count = min(len(fit_here), len(fit_away))
    few = np.sort(rng.permutation(fit_here)[:count])
    own = np.sort(rng.permutation(fit_away)[:count])
    found = {
        "inside": _standardised_r2(pair, few, inside),
        "outside": _standardised_r2(pair, few, outside),
        "own": _standardised_r2(pair, own, outside),
        "pairs": count,
    }
    found["price"] = found["own"] - found["outside"]
    return point_estimates(found, len(outside))


def _standardised_r2(pair: PairedLatents, fit: np.ndarray, score: np.ndarray) -> float:
    a, b = pair.a.h, pair.b.h
    fitted = RidgeMap(standardise=True).fit(a[fit], b[fit], groups=groups_of_pair(pair)[fit])
    scale = positive_scale(fitted.map_.y_scale)
    return r2(b[score] / scale, fitted.transform(a[score]) / scale)


def measure_widths(pair: PairedLatents, most: int) -> dict[str, Estimate]:
    """Scores of a rectangular map, and R² between PCA of the same widths."""
    fit = split_of(pair).fit
    rows = scored_rows(pair, most)
    assert pair.a.raw is not None and pair.b.raw is not None
    a = pca_control(pair.a.raw, pair.a.h.shape[1], fit)
    b = pca_control(pair.b.raw, pair.b.h.shape[1], fit)
    control = translate(pair, a, b)
    scores = translate(pair, pair.a.h, pair.b.h).scores(rows, rows)
    scores["r2_pca"] = r2(control.target[rows], control.predicted[rows])
    return point_estimates(scores, len(rows))


def r2_below_usual(pairs: Sequence[Result], usual: int, among: int = 1) -> Estimate:
    """R² between agents of the usual width minus R² between one of them and one of another width."""
    losses = []
    for runs in grouped(pairs, "seed").values():
        same = [run.value("r2") for run in runs if run.at["width"] == run.at["to"] == usual]
        other = [run.value("r2") for run in runs if (run.at["width"] == usual) != (run.at["to"] == usual)]
        if same and other:
            losses.append(np.mean(same) - np.mean(other))
    return _student_of_finite(losses, among)


def r2_per_doubling(pairs: Sequence[Result], among: int = 1) -> Estimate:
    """Fall of R² with each doubling of the ratio of widths: the slope of a line over all pairs of a seed."""
    slopes = []
    for runs in grouped(pairs, "seed").values():
        doublings = np.array([abs(np.log2(run.at["to"] / run.at["width"])) for run in runs])
        scores = np.array([run.value("r2") for run in runs])
        if np.ptp(doublings) > 0 and np.isfinite(scores).all():
            slopes.append(-np.polyfit(doublings, scores, 1)[0])
    return _student_of_finite(slopes, among)


def _student_of_finite(values: Sequence[float], among: int) -> Estimate:
    found = np.array(values, dtype=float)
    return mean_interval(found[np.isfinite(found)], comparisons=among)
