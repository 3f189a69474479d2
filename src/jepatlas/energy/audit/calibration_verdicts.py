"""Calibration against the exact energies, over reachable pairs: rank correlation and scale.

    ratio = E(x, y) / truth(x, y)        error = exp(median |log ratio|) − 1

A head can have the right order and a wrong scale, so the rank correlation, the median ratio and the 5% and 95%
quantiles of the ratios are reported separately. Intervals are bootstrapped over states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import bootstrap
from jepatlas.energy.audit.sample import Sample
from jepatlas.energy.audit.weighted_statistics import WeightedQuantiles, WeightedRanks, weighted_spearman

__all__ = ["CalibrationCurve", "calibration_curve", "calibration_verdicts"]

SPEARMAN_NEEDED = 0.95
ERROR_ALLOWED = 0.1
FEWEST_PAIRS = 10
REPLICATES = 200
BINS = 20
QUANTILES = {"median_ratio": 0.5, "ratio_5": 0.05, "ratio_95": 0.95}


@dataclass(frozen=True)
class CalibrationCurve:
    """Energies against the truth, in bins of equally many reachable pairs, (k,) each."""

    truth: np.ndarray  # median truth of the bin
    median: np.ndarray  # median energy of the bin
    low: np.ndarray  # 5% quantile
    high: np.ndarray  # 95% quantile


def calibration_verdicts(sample: Sample, truth: np.ndarray) -> tuple[Verdict, ...]:
    """`spearman`, `calibration_error`, `median_ratio`, `ratio_5` and `ratio_95`; empty with too few reachable pairs."""
    mask = _reachable(sample, truth)
    if mask.sum() < FEWEST_PAIRS:
        return ()
    with np.errstate(invalid="ignore"):  # infinite energies can give infinite ends of the interval
        found = bootstrap(_statistic(sample, truth, mask), sample.n, sample.rng("calibration"), replicates=REPLICATES)
    return _judge(found, _worst_pair(sample, truth, mask))


def calibration_curve(sample: Sample, truth: np.ndarray) -> CalibrationCurve | None:
    """The calibration curve; None with too few reachable pairs."""
    mask = _reachable(sample, truth)
    if mask.sum() < FEWEST_PAIRS:
        return None
    exact, energies = truth[mask], sample.energies[mask]
    edges = np.unique(np.quantile(exact, np.linspace(0, 1, BINS + 1)))  # few distinct values give few bins
    bin_of = np.clip(np.searchsorted(edges, exact, side="right") - 1, 0, max(len(edges) - 2, 0))
    bins = [bin_of == number for number in np.unique(bin_of)]
    levels = [0.5, 0.05, 0.95]
    quantiles = [WeightedQuantiles(energies[rows])(np.ones(rows.sum()), levels) for rows in bins]
    return CalibrationCurve(np.array([np.median(exact[rows]) for rows in bins]), *np.array(quantiles).T)


def _reachable(sample: Sample, truth: np.ndarray) -> np.ndarray:
    return sample.others & np.isfinite(truth) & (truth > 0)


def _statistic(sample: Sample, truth: np.ndarray, mask: np.ndarray) -> Callable[[np.ndarray], dict[str, float]]:
    exact = truth[mask]
    energies = np.maximum(sample.energies[mask], 0.0)
    ratios = energies / exact
    with np.errstate(divide="ignore"):
        log_errors = WeightedQuantiles(np.abs(np.log(ratios)))
    true_ranks, ranks = WeightedRanks(exact), WeightedRanks(energies)
    quantiles = WeightedQuantiles(ratios)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        pairs = np.outer(weights, weights)[mask]
        if not pairs.any():  # a resample of a single state has no pairs
            pairs = np.ones(len(pairs))
        ratio_quantiles = quantiles(pairs, list(QUANTILES.values()))
        return {
            "spearman": weighted_spearman(true_ranks, ranks, pairs),
            **dict(zip(QUANTILES, ratio_quantiles, strict=True)),
            "calibration_error": float(np.expm1(min(log_errors(pairs, [0.5])[0], 700.0))),
        }

    return statistic


def _judge(found: dict[str, Estimate], worst: str) -> tuple[Verdict, ...]:
    ratio = found["median_ratio"].value
    spread = (
        f"90% of the ratios to the truth are between {found['ratio_5'].value:.3f} and {found['ratio_95'].value:.3f}. "
        f"{worst}"
    )
    return (
        Verdict.judge(
            "spearman",
            found["spearman"],
            direction="higher",
            threshold=SPEARMAN_NEEDED,
            null=0.0,
            good="The energies have the order of the truth.",
            bad=f"The energies do not have the order of the truth. {worst}",
        ),
        Verdict.judge(
            "calibration_error",
            found["calibration_error"],
            direction="lower",
            threshold=ERROR_ALLOWED,
            null=0.0,
            good=f"The energies have the scale of the truth. {spread}",
            bad=f"The median ratio of energy to truth is {ratio:.3f}. {spread} Calibrate the energy on observed steps, "
            "or train longer. Compare discounted values with a discounted truth.",
        ),
        *(Verdict.judge(name, found[name], direction="higher", null=1.0, good=spread) for name in QUANTILES),
    )


def _worst_pair(sample: Sample, truth: np.ndarray, mask: np.ndarray) -> str:
    exact = np.where(mask, truth, 1.0)
    with np.errstate(divide="ignore"):
        errors = np.where(mask, np.abs(np.log(np.maximum(sample.energies, 0.0) / exact)), -1.0)
    flat = int(errors.argmax())
    return f"The worst pair is {sample.pair(flat)}: {sample.energies.flat[flat]:.4g}, truth {exact.flat[flat]:.4g}."
