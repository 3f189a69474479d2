"""One of several predictions of a claim, with its own outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jepatlas.core.figures import Figure, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Outcome
from jepatlas.experiments.social.decisions import informative

__all__ = ["Prediction", "prediction_verdicts"]


@dataclass(frozen=True)
class Prediction:
    """The finding on one prediction."""

    title: str
    outcome: Outcome
    verdicts: tuple[Verdict, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()


def prediction_verdicts(
    found: Mapping[str, Estimate], good: str, bad: str, counts: Sequence[bool] | None = None
) -> tuple[Verdict, ...]:
    """One verdict per number that should be above 0; those with `counts` False only inform."""
    verdicts = []
    for number, (name, estimate) in enumerate(found.items()):
        verdict = Verdict.judge(name, estimate, direction="higher", threshold=0.0, good=good, bad=bad)
        verdicts.append(informative(verdict, counts is None or counts[number]))
    return tuple(verdicts)
