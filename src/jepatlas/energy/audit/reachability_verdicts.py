"""Detection of unreachable pairs: the AUC of E as a score for "unreachable", given the exact energies.

    AUC = P(E of an unreachable pair > E of a reachable one) + ½ P(equal)

Over all ordered pairs no symmetric score can exceed  1 − ½W² / ((2U + W)(2B + W)),  where of the unordered pairs W are
one-way, U are unreachable in both directions and B reachable in both. On the one-way pairs alone the AUC of a
symmetric score is exactly ½, because their reachable and unreachable directions have equal scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import bootstrap
from jepatlas.energy.audit.axioms import asymmetry_index
from jepatlas.energy.audit.sample import Sample
from jepatlas.energy.audit.weighted_statistics import WeightedAuc

__all__ = ["Roc", "one_way_pairs", "reachability_verdicts", "roc_curves", "symmetric_ceiling"]

AUC_NEEDED = 0.95
REPLICATES = 200
CHANCE = 0.5  # value of a resample without one of the two classes


@dataclass(frozen=True)
class Roc:
    """ROC curve from (0, 0) to (1, 1); a positive is an unreachable pair."""

    false_positive_rate: np.ndarray
    true_positive_rate: np.ndarray


def one_way_pairs(truth: np.ndarray) -> np.ndarray:
    """Mask of the pairs that are reachable from row to column but not back, (n, n)."""
    return np.isfinite(truth) & np.isinf(truth.T)


def symmetric_ceiling(truth: np.ndarray) -> float:
    """The highest AUC of a symmetric score over all pairs; NaN if all pairs or none are reachable.

    >>> symmetric_ceiling(np.array([[0, 1], [np.inf, 0]]))
    0.5
    """
    others = ~np.eye(len(truth), dtype=bool)
    unreachable = (np.isinf(truth) & others).sum()
    reachable = others.sum() - unreachable
    one_way = one_way_pairs(truth).sum()
    if unreachable * reachable == 0:
        return float("nan")
    return float(1 - one_way**2 / (2 * unreachable * reachable))


def reachability_verdicts(sample: Sample, truth: np.ndarray) -> tuple[Verdict, ...]:
    """AUC verdicts; empty if all pairs are reachable.

    `reachability_auc` is over all pairs, `one_way_auc` over both directions of the one-way pairs, and `one_way_order`
    is the share of one-way pairs with the larger energy in the unreachable direction.
    """
    if not np.isinf(truth[sample.others]).any():
        return ()
    one_way = one_way_pairs(truth)
    masks = {"reachability_auc": sample.others, "one_way_auc": one_way | one_way.T}
    aucs = {name: _auc(sample, truth, mask) for name, mask in masks.items()}
    reachable, unreachable = sample.energies[one_way], sample.energies.T[one_way]
    order = np.where(reachable == unreachable, 0.5, unreachable > reachable)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        pairs = np.outer(weights, weights)
        values = {name: auc(pairs[masks[name]]) for name, auc in aucs.items()}
        one_way_weights = pairs[one_way]
        has_pairs = one_way_weights.any()
        values["one_way_order"] = float(np.average(order, weights=one_way_weights)) if has_pairs else math.nan
        return {name: CHANCE if math.isnan(value) else value for name, value in values.items()}

    found = bootstrap(statistic, sample.n, sample.rng("reachability"), replicates=REPLICATES)
    verdicts = (_all_pairs_verdict(sample, truth, found["reachability_auc"]),)
    return (*verdicts, *_one_way_verdicts(sample, found, one_way)) if one_way.any() else verdicts


def roc_curves(sample: Sample, truth: np.ndarray) -> tuple[Roc | None, Roc | None]:
    """The ROC curves over all pairs and over the one-way pairs; None where a class is empty."""
    one_way = one_way_pairs(truth)
    return _roc(sample, truth, sample.others), _roc(sample, truth, one_way | one_way.T)


def _roc(sample: Sample, truth: np.ndarray, mask: np.ndarray) -> Roc | None:
    positives, negatives = _auc(sample, truth, mask).counts(np.ones(int(mask.sum())))
    if not positives.sum() or not negatives.sum():
        return None
    rates = [np.r_[0, np.cumsum(counts[::-1])] / counts.sum() for counts in (negatives, positives)]
    return Roc(*rates)


def _auc(sample: Sample, truth: np.ndarray, mask: np.ndarray) -> WeightedAuc:
    return WeightedAuc(sample.energies[mask], np.isinf(truth[mask]))


def _all_pairs_verdict(sample: Sample, truth: np.ndarray, estimate: Estimate) -> Verdict:
    ceiling = symmetric_ceiling(truth)
    unreachable = np.isinf(truth) & sample.others
    flat = int(np.where(unreachable, sample.energies, np.inf).argmin())
    bound = f"No symmetric score can exceed {ceiling:.3f} here."
    return Verdict.judge(
        "reachability_auc",
        estimate,
        direction="higher",
        threshold=AUC_NEEDED,
        null=ceiling,
        good=f"The energy separates unreachable from reachable pairs. {bound}",
        bad=f"The smallest energy of an unreachable pair is {sample.energies.flat[flat]:.4g}, {sample.pair(flat)}. "
        f"{bound} Do not interpret a large energy as unreachable.",
    )


def _one_way_verdicts(sample: Sample, found: dict[str, Estimate], one_way: np.ndarray) -> list[Verdict]:
    with np.errstate(invalid="ignore"):
        margin = np.where(one_way, np.nan_to_num(sample.energies.T - sample.energies), np.inf)
    row, column = divmod(int(margin.argmin()), sample.n)
    good = f"The energy has the right direction on {int(one_way.sum())} one-way pairs."
    if asymmetry_index(sample.energies).max() <= sample.tolerance:
        remedy = "The energy is symmetric, so its value here is 0.5 however it is trained: use a quasimetric head."
    else:
        remedy = "Train longer, or on more steps that start where there is no path back."
    bad = (
        f"The worst one-way pair is {sample.pair(row * sample.n + column)}: {sample.energies[row, column]:.4g} in the "
        f"reachable direction, {sample.energies[column, row]:.4g} in the unreachable one. {remedy}"
    )
    return [
        Verdict.judge(name, found[name], direction="higher", threshold=AUC_NEEDED, null=0.5, good=good, bad=bad)
        for name in ("one_way_auc", "one_way_order")
    ]
