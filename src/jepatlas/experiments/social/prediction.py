"""What became of one prediction of Social-JEPA's theory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jepatlas.base.records import Estimate, Verdict
from jepatlas.experiments.experiment import Outcome

__all__ = ["COLLAPSED", "Prediction", "verdicts"]

COLLAPSED = " Latents of some agents vary along less than 2 directions: they collapsed."


@dataclass(frozen=True)
class Prediction:
    title: str
    outcome: Outcome
    sentence: str
    verdicts: tuple[Verdict, ...]
    figures: tuple[Mapping[str, Any], ...]
    tables: tuple[Mapping[str, Any], ...]


def verdicts(found: Mapping[str, Estimate], good: str, bad: str) -> tuple[Verdict, ...]:
    """One for each number that should be above 0."""
    return tuple(Verdict.judge(name, estimate, direction="higher", threshold=0.0, good=good, bad=bad)
                 for name, estimate in found.items())  # fmt: skip
