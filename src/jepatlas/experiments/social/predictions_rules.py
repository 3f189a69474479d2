"""A prediction of Social-JEPA's theory as it is judged: by differences at the same seeds, never by their size.

Each prediction names numbers that it says are above 0. It holds where Student's 95% interval of every one's mean over
seeds is, and does not where none is and one is surely below 0. Where latents vary along less than 2 directions they
collapsed, and what is gained by that is no evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jepatlas.base.records import Estimate, Verdict
from jepatlas.experiments.experiment import Outcome, Result
from jepatlas.experiments.tables import cell

__all__ = ["ENOUGH", "MEASURES", "Prediction", "gaps", "lively", "plain", "settled", "shown", "verdicts"]

ENOUGH = 2.0  # directions
MEASURES = {"r2": "R²", "dsc": "DSC", "nos_10": "NOS@10"}
"""What alignment is measured by; the last is better when it is lower."""


@dataclass(frozen=True)
class Prediction:
    """What became of one prediction."""

    title: str
    outcome: Outcome
    sentence: str
    verdicts: tuple[Verdict, ...]
    figures: tuple[Mapping[str, Any], ...]
    tables: tuple[Mapping[str, Any], ...]


def settled(predicted: Sequence[Estimate], alive: bool = True) -> Outcome:
    """What follows from numbers that should be above 0; nothing is gained by a collapse.

    >>> sure, not_sure, wrong = (Estimate(v, v - 1, v + 1, 3) for v in (2.0, 0.5, -2.0))
    >>> settled([sure, sure]), settled([sure, wrong]), settled([not_sure, wrong]), settled([not_sure])
    ('holds', 'holds in part', 'does not hold', 'undecided')
    """
    above, below = ([found.low > 0 for found in predicted], [found.high < 0 for found in predicted])
    if any(above):
        return ("holds" if all(above) else "holds in part") if alive else "undecided"
    return "does not hold" if any(below) else "undecided"


def gaps(better: Sequence[Result], worse: Sequence[Result], key: str) -> np.ndarray:
    """By how much a measure is better in the mean of some pairs than of others, at each seed that both have."""
    sides = [_by_seed(runs, key) for runs in (better, worse)]
    sign = -1 if key.startswith("nos") else 1
    return np.array([sign * (value - sides[1][seed]) for seed, value in sides[0].items() if seed in sides[1]])


def _by_seed(runs: Sequence[Result], key: str) -> dict[int, float]:
    """Seeds of which any pair came to no number are left out: the others would not be the same pairs."""
    seeds = dict.fromkeys(run.at["seed"] for run in runs)
    found = {seed: np.mean([run.value(key) for run in runs if run.at["seed"] == seed]) for seed in seeds}
    return {seed: float(value) for seed, value in found.items() if np.isfinite(value)}


def lively(runs: Sequence[Result]) -> bool:
    """Whether the latents of all agents vary; of pairs that came to no number, nothing is known."""
    return all(run.value("directions") >= ENOUGH for run in runs if run.status == "finished")


def verdicts(found: Mapping[str, Estimate], good: str, bad: str) -> tuple[Verdict, ...]:
    """One for each number that should be above 0."""
    return tuple(Verdict.judge(name, estimate, direction="higher", threshold=0.0, good=good, bad=bad)
                 for name, estimate in found.items())  # fmt: skip


def shown(values: np.ndarray, digits: int = 3) -> str:
    """The mean over seeds with the lowest and the highest."""
    if not len(values):
        return "–"
    return cell(Estimate(float(values.mean()), float(values.min()), float(values.max()), len(values)), digits)


def plain(value: float, shape: str = ".3f") -> str:
    return "–" if np.isnan(value) else f"{value:{shape}}"
