"""What became of one prediction of Social-JEPA's theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Outcome
from jepatlas.experiments.social.collapse import ENOUGH, unheard

__all__ = ["COLLAPSED", "Prediction", "verdicts"]

COLLAPSED = f" Latents of some agents vary along less than {ENOUGH:g} directions: they collapsed."


@dataclass(frozen=True)
class Prediction:
    title: str
    outcome: Outcome
    sentence: str
    verdicts: tuple[Verdict, ...]
    figures: tuple[Mapping[str, Any], ...]
    tables: tuple[Mapping[str, Any], ...]


def verdicts(
    found: Mapping[str, Estimate], good: str, bad: str, counts: Sequence[bool] | None = None
) -> tuple[Verdict, ...]:
    """One for each number that should be above 0; those that do not count only inform."""
    judged = [
        Verdict.judge(name, estimate, direction="higher", threshold=0.0, good=good, bad=bad)
        for name, estimate in found.items()
    ]
    return tuple(judged) if counts is None else tuple(map(unheard, judged, counts))
