"""Energies beside the exact truth, over reachable pairs only: are they in its order, and on its scale?

    ratio = E(x, y) / truth(x, y)        error = exp(median |log ratio|) − 1

A head may have the order right and be inflated throughout: so ranks, the median ratio and the range that holds nine
tenths of the ratios are given apart. Intervals are over states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import bootstrap
from jepatlas.energy.audit.sample import Sample
from jepatlas.energy.audit.weighted import WeightedQuantiles, WeightedRanks, weighted_spearman

__all__ = ["CalibrationCurve", "calibration", "calibration_curve"]

SPEARMAN_NEEDED = 0.95
ERROR_ALLOWED = 0.1
FEWEST_PAIRS = 10
REPLICATES = 200
BINS = 20


@dataclass(frozen=True)
class CalibrationCurve:
    """Energies over the truth, in bins of equally many reachable pairs, (k,) each."""

    truth: np.ndarray  # the median of the bin
    median: np.ndarray
    low: np.ndarray  # 5% of the energies in it
    high: np.ndarray  # 95%


def calibration(sample: Sample, truth: np.ndarray) -> tuple[Verdict, ...]:
    """`spearman`, `median_ratio`, `ratio_5`, `ratio_95` and `calibration_error`; none where hardly any is reachable."""
    mask = _reachable(sample, truth)
    if mask.sum() < FEWEST_PAIRS:
        return ()
    with np.errstate(invalid="ignore"):  # where energies are infinite, so may be the ends of the interval
        found = bootstrap(_statistic(sample, truth, mask), sample.n, sample.rng("calibration"), replicates=REPLICATES)
    return _verdicts(_worst(sample, truth, mask), found)


def calibration_curve(sample: Sample, truth: np.ndarray) -> CalibrationCurve | None:
    """None where hardly anything is reachable."""
    mask = _reachable(sample, truth)
    if mask.sum() < FEWEST_PAIRS:
        return None
    exact, energies = truth[mask], sample.energies[mask]
    edges = np.unique(np.quantile(exact, np.linspace(0, 1, BINS + 1)))  # few levels give few bins
    which = np.clip(np.searchsorted(edges, exact, side="right") - 1, 0, max(len(edges) - 2, 0))
    bins = [which == number for number in np.unique(which)]
    spread = [WeightedQuantiles(energies[rows])(np.ones(rows.sum()), [0.5, 0.05, 0.95]) for rows in bins]
    return CalibrationCurve(np.array([np.median(exact[rows]) for rows in bins]), *np.array(spread).T)


def _reachable(sample: Sample, truth: np.ndarray) -> np.ndarray:
    return sample.others & np.isfinite(truth) & (truth > 0)


def _statistic(sample: Sample, truth: np.ndarray, mask: np.ndarray) -> Callable[[np.ndarray], dict[str, float]]:
    exact, energies = truth[mask], np.maximum(sample.energies[mask], 0.0)
    ratios = energies / exact
    with np.errstate(divide="ignore"):
        off = WeightedQuantiles(np.abs(np.log(ratios)))
    ranks, quantiles = (WeightedRanks(exact), WeightedRanks(energies)), WeightedQuantiles(ratios)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        pairs = np.outer(weights, weights)[mask]
        pairs = pairs if pairs.any() else np.ones(len(pairs))  # a draw of one state only has no pairs
        names = ("median_ratio", "ratio_5", "ratio_95")
        return {
            "spearman": weighted_spearman(*ranks, pairs),
            **dict(zip(names, quantiles(pairs, [0.5, 0.05, 0.95]), strict=True)),
            "calibration_error": float(np.expm1(min(off(pairs, [0.5])[0], 700.0))),
        }

    return statistic


def _verdicts(worst: str, found: dict[str, Estimate]) -> tuple[Verdict, ...]:
    ratio = found["median_ratio"].value
    spread = f"Nine tenths of ratios are from {found['ratio_5'].value:.3f} to {found['ratio_95'].value:.3f}. {worst}"
    return (
        Verdict.judge(
            "spearman",
            found["spearman"],
            direction="higher",
            threshold=SPEARMAN_NEEDED,
            null=0.0,
            good="What is farther has more energy.",
            bad=f"The order of energies is not that of the truth. {worst}",
        ),
        Verdict.judge(
            "calibration_error",
            found["calibration_error"],
            direction="lower",
            threshold=ERROR_ALLOWED,
            null=0.0,
            good=f"Energies are on the scale of the truth. {spread}",
            bad=f"Energies are {ratio:.3f} times the truth in the median. {spread} Bring them to the scale of "
            "observed steps, or train for longer; discounted values are held against truth that is discounted, too.",
        ),
        *(
            Verdict.judge(name, found[name], direction="higher", null=1.0, good=spread)
            for name in ("median_ratio", "ratio_5", "ratio_95")
        ),
    )


def _worst(sample: Sample, truth: np.ndarray, mask: np.ndarray) -> str:
    exact = np.where(mask, truth, 1.0)
    with np.errstate(divide="ignore"):
        off = np.where(mask, np.abs(np.log(np.maximum(sample.energies, 0.0) / exact)), -1.0)
    flat = int(off.argmax())
    return f"Worst {sample.pair(flat)}: {sample.energies.flat[flat]:.4g}, in truth {exact.flat[flat]:.4g}."
