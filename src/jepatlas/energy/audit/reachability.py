"""Does an energy know where there is no way? AUC of E as a score for "unreachable", where truth says which pairs are.

    AUC = P(E of an unreachable pair > E of a reachable one) + ½ P(equal)

Over all ordered pairs no symmetric score can exceed  1 − ½W² / ((2U + W)(2B + W)),  where of the unordered pairs W are
one-way, U unreachable both ways and B reachable both ways: on the two directions of one-way pairs alone its AUC is
exactly ½, for there unreachable and reachable ones have the same scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import bootstrap
from jepatlas.energy.audit.asymmetry import asymmetry_index
from jepatlas.energy.audit.sample import Sample
from jepatlas.energy.audit.weighted import WeightedAuc

__all__ = ["AUC_NEEDED", "Roc", "one_way_pairs", "reachability", "roc_curves", "symmetric_ceiling"]

AUC_NEEDED = 0.95
REPLICATES = 200
KNOWS_NOTHING = 0.5  # of a draw without any such pair


@dataclass(frozen=True)
class Roc:
    """Unreachable pairs found, against reachable ones taken for unreachable, from (0, 0) to (1, 1)."""

    false_alarms: np.ndarray
    found: np.ndarray


def one_way_pairs(truth: np.ndarray) -> np.ndarray:
    """Where there is a way from row to column and none back, (n, n)."""
    return np.isfinite(truth) & np.isinf(truth.T)


def symmetric_ceiling(truth: np.ndarray) -> float:
    """The highest AUC over all pairs that a symmetric score can have; NaN where all pairs, or none, are reachable.

    >>> symmetric_ceiling(np.array([[0, 1], [np.inf, 0]]))
    0.5
    """
    others = ~np.eye(len(truth), dtype=bool)
    unreachable, one_way = (np.isinf(truth) & others).sum(), one_way_pairs(truth).sum()
    reachable = others.sum() - unreachable
    return float(1 - one_way**2 / (2 * unreachable * reachable)) if unreachable * reachable else float("nan")


def reachability(sample: Sample, truth: np.ndarray) -> tuple[Verdict, ...]:
    """`reachability_auc` over all pairs, `one_way_auc` over both directions of the one-way pairs, and `one_way_order`,
    the share of them that need more energy where there is no way; none where all is reachable.
    """
    if not np.isinf(truth[sample.others]).any():
        return ()
    one_way = one_way_pairs(truth)
    aucs = {"reachability_auc": sample.others, "one_way_auc": one_way | one_way.T}
    scored = {name: (mask, _auc(sample, truth, mask)) for name, mask in aucs.items()}
    there, back = sample.energies[one_way], sample.energies.T[one_way]
    order = np.where(there == back, 0.5, back > there)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        pairs = np.outer(weights, weights)
        found = {name: auc(pairs[mask]) for name, (mask, auc) in scored.items()}
        alone = pairs[one_way]
        found["one_way_order"] = float(np.average(order, weights=alone)) if alone.any() else math.nan
        return {name: KNOWS_NOTHING if math.isnan(value) else value for name, value in found.items()}

    found = bootstrap(statistic, sample.n, sample.rng("reachability"), replicates=REPLICATES)
    all_pairs = _all_pairs(sample, truth, found["reachability_auc"])
    return (all_pairs, *_one_way(sample, found, one_way)) if one_way.any() else (all_pairs,)


def roc_curves(sample: Sample, truth: np.ndarray) -> tuple[Roc | None, Roc | None]:
    """Over all pairs, and over the one-way pairs; None where truth has none."""
    one_way = one_way_pairs(truth)
    return _roc(sample, truth, sample.others), _roc(sample, truth, one_way | one_way.T)


def _roc(sample: Sample, truth: np.ndarray, mask: np.ndarray) -> Roc | None:
    hits, misses = _auc(sample, truth, mask).counts(np.ones(int(mask.sum())))
    if not hits.sum() or not misses.sum():
        return None
    rates = (np.r_[0, np.cumsum(part[::-1])] / part.sum() for part in (misses, hits))
    return Roc(*rates)


def _auc(sample: Sample, truth: np.ndarray, mask: np.ndarray) -> WeightedAuc:
    return WeightedAuc(sample.energies[mask], np.isinf(truth[mask]))


def _all_pairs(sample: Sample, truth: np.ndarray, found: Estimate) -> Verdict:
    ceiling, unreachable = symmetric_ceiling(truth), np.isinf(truth) & sample.others
    flat = int(np.where(unreachable, sample.energies, np.inf).argmin())
    worst = f"The least energy without a way is {sample.energies.flat[flat]:.4g}, {sample.pair(flat)}"
    beside = f"no symmetric score can exceed {ceiling:.3f} here"
    return Verdict.judge(
        "reachability_auc",
        found,
        direction="higher",
        threshold=AUC_NEEDED,
        null=ceiling,
        good=f"Pairs without a way stand out; {beside}.",
        bad=f"{worst}; {beside}. Do not read a large energy as unreachable.",
    )


def _one_way(sample: Sample, found: dict[str, Estimate], one_way: np.ndarray) -> list[Verdict]:
    with np.errstate(invalid="ignore"):
        margin = np.where(one_way, np.nan_to_num(sample.energies.T - sample.energies), np.inf)
    row, column = divmod(int(margin.argmin()), sample.n)
    worst = (
        f"There is a way {sample.pair(row * sample.n + column)}, at {sample.energies[row, column]:.4g}, and none back, "
        f"but back it is {sample.energies[column, row]:.4g}. {_cure(sample)}"
    )
    good = f"It knows that there is no way back, on {int(one_way.sum())} one-way pairs."
    return [
        Verdict.judge(name, found[name], direction="higher", threshold=AUC_NEEDED, null=0.5, good=good, bad=worst)
        for name in ("one_way_auc", "one_way_order")
    ]


def _cure(sample: Sample) -> str:
    """What helps one that cannot know, and one that has not learned it."""
    if asymmetry_index(sample.energies).max() <= sample.tolerance:
        return "It is symmetric, and so has 0.5 here, however well it is trained: use a quasimetric head."
    return (
        "It is not symmetric, so it could know: train it for longer, or on more steps from where there is no way back."
    )
