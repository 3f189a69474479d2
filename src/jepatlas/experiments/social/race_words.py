"""What is said of a race of ways to train: where it began, what it cost, how it ended, and what collapsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import (
    cell,
    extremes,
    geometric_mean_and_interval,
    mean_and_interval,
    mean_and_range,
)
from jepatlas.experiments.social.collapse import ENOUGH
from jepatlas.experiments.social.race import LEAST, collapsed, final_gain, gain_verdict, learned, reached

__all__ = [
    "collapse_sentence",
    "cost_sentence",
    "factor_text",
    "final_sentence",
    "scratch_sentence",
    "why_undecidable",
]

WIDE = 1000  # an interval whose ends differ by so many times excludes nothing


def scratch_sentence(results: Sequence[Result], who: str) -> str:
    """From where to where training from scratch goes, and what does not follow where that is not upwards."""
    seeds, left, gain = len(results), len(learned(results)), mean_and_interval(results, "gain")
    none = (
        f" At {seeds - left} of {seeds} seeds that is no higher than it began, than the commonest class or than "
        "the threshold: nothing was learned that could be reached sooner, and such seeds are left "
        "out."
    )
    few = f" With fewer than {LEAST} seeds left, nothing follows."
    doubt = f" In the mean over all seeds the probe is not surely raised (by {cell(gain)}, 95%), so nothing follows."
    start, end, goal = (extremes(mean_and_range(results, name)) for name in ("untrained", "alone", "threshold"))
    return (
        f"{who} from {start} before the first step to {end}, where the threshold is {goal} and the commonest class "
        f"alone gives {mean_and_range(results, 'majority').value:.3f}.{none if left < seeds else ''}"
        f"{few if left < LEAST else '' if gain_verdict(results).passed else doubt}"
    )


def cost_sentence(results: Sequence[Result], ways: Mapping[str, str]) -> str:
    """Of each way, epochs, operations with and without what was paid before, and how many seeds got there."""
    return (
        f"Geometric means over {len(results)} seeds [95% intervals]: "
        + "; ".join(_costs_of(results, name, title) for name, title in ways.items())
        + "."
    )


def _costs_of(results: Sequence[Result], name: str, title: str) -> str:
    epochs, times, everything = (
        geometric_mean_and_interval(results, f"{name}_{key}") for key in ("epochs", "times", "all")
    )
    free = mean_and_range(results, f"{name}_before").value == 0
    paid = "" if free else f", {everything.value:.2f} × with the teacher's"
    return (
        f"{title} {factor_text(epochs, '.1f')} epochs and {factor_text(times)} × the operations{paid} "
        f"(reached at {reached(results, name)})"
    )


def factor_text(found: Estimate, shape: str = ".2f") -> str:
    """A geometric mean with its interval, as tables have it; without one that excludes nothing."""
    if np.isnan(found.value):
        return "–"
    if found.high > WIDE * found.low:
        return f"{found.value:{shape}} [any]"
    value, low, high = (f"{number:{shape}}" for number in (found.value, found.low, found.high))
    return f"{value} [{low}, {high}]"


def final_sentence(results: Sequence[Result], name: str, who: str, others: Mapping[str, str]) -> str:
    """The same in words, with a space before it."""
    gains = {title: final_gain(results, name, other) for other, title in others.items()}
    gaps = (f"{gap.value:.3f} [{gap.low:.3f}, {gap.high:.3f}] above {title}" for title, gap in gains.items())
    return f" {who} accuracy at the end is {' and '.join(gaps)} (means over seeds, 95%)."


def collapse_sentence(results: Sequence[Result], ways: Mapping[str, str]) -> str:
    """Which ways collapsed, with a space before it; nothing where none did."""
    flat = {title: collapsed(results, name) for name, title in ways.items()}
    named = "; ".join(f"{title} (seed {', '.join(map(str, seeds))})" for title, seeds in flat.items() if seeds)
    return (
        (
            f" Collapsed in the end, with latents that vary along less than {ENOUGH:g} directions, and therefore no "
            f"evidence for or against: {named}."
        )
        if named
        else ""
    )


def why_undecidable(results: Sequence[Result]) -> str:
    """In a few words, why nothing can follow."""
    raises = bool(gain_verdict(results).passed)
    return f"fewer than {LEAST} seeds reached it alone" if raises else "training alone does not surely raise the probe"
