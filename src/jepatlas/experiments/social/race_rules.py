"""Rules of the claims on races: which seeds decide, which way is cheaper, and what the finding shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import mean_interval
from jepatlas.experiments.engine.experiment import Finding, Result
from jepatlas.experiments.engine.rules import Outcome
from jepatlas.experiments.engine.seed_tables import geometric_mean_and_interval, mean_and_interval
from jepatlas.experiments.social.decisions import MIN_DIRECTIONS, informative
from jepatlas.experiments.social.race_figures import accuracy_figure, race_tables
from jepatlas.experiments.social.race_runs import MIN_SEEDS, learned, reached

__all__ = ["Decision", "RaceRule", "collapsed_seeds_of", "cost_verdict", "judge_race", "significantly_cheaper"]

BELOW_ONE = float(np.nextafter(1.0, 0.0))
"""Threshold of a cost ratio: an equal cost is not a saving."""
MIN_GAIN = 1e-6
"""Smallest difference in accuracy that counts as a gain."""


@dataclass(frozen=True)
class Decision:
    """What the seeds that count show."""

    outcome: Outcome
    sentence: str
    short: str


@dataclass(frozen=True)
class RaceRule:
    """How a claim on a race is decided and shown."""

    ways: Mapping[str, str]
    """Titles of the ways to train; the first is training alone."""
    published: Mapping[str, tuple[str, str]]
    """Published epochs and operations."""
    title: str
    """Title of the figure."""
    decide: Callable[[Sequence[Result]], Decision]
    """Decision from the seeds that count."""
    costs: Callable[[Sequence[Result]], Sequence[Verdict]]
    """Verdicts on costs from the seeds that count."""
    compared: Sequence[tuple[str, str]]
    """Pairs of ways whose final accuracies are compared."""


def judge_race(results: Sequence[Result], rule: RaceRule) -> Finding:
    """The finding on one scene; undecided if too few seeds count or if training alone does not raise the probe."""
    ended = [result for result in results if result.status == "finished"]
    counted = learned(ended)
    gain = _gain_verdict(ended)
    enough = len(counted) >= MIN_SEEDS
    if enough and gain.passed:
        decision = rule.decide(counted)
    else:
        short = "training alone does not significantly raise the probe"
        if gain.passed:
            short = f"fewer than {MIN_SEEDS} seeds reached it alone"
        decision = Decision("undecided", f"{short.capitalize()}.", short)
    costs = rule.costs(counted) if enough else ()
    return Finding(
        decision.outcome,
        decision.sentence,
        short=decision.short,
        verdicts=(gain, *costs, *(_final_gain(ended, *ways) for ways in rule.compared)),
        figures=(accuracy_figure(ended, rule.ways, rule.title),),
        tables=race_tables(results, rule.ways, rule.published),
    )


def _gain_verdict(results: Sequence[Result]) -> Verdict:
    """Does training alone raise the probe? Averaged over all seeds: those that learned were selected for it."""
    return Verdict.judge(
        "gain",
        mean_and_interval(results, "gain"),
        direction="higher",
        threshold=MIN_GAIN,
        good="Training alone raises the probe's accuracy.",
        bad="Training alone does not significantly raise the probe's accuracy, so nothing can be reached sooner.",
    )


def significantly_cheaper(
    results: Sequence[Result], name: str, first: str, measure: str, among: int = 1
) -> bool | None:
    """Whether a way significantly needs less than the first one, and reached the threshold with every seed.

    False if it significantly needs more. None if the seeds do not decide, or if latents of either way collapsed.
    """
    if collapsed_seeds_of(results, name) or collapsed_seeds_of(results, first):
        return None
    found = geometric_mean_and_interval(results, f"{name}_{measure}", among)
    if found.high < 1:
        return True if reached(results, name) == len(results) else None
    return False if found.low > 1 else None


def cost_verdict(
    results: Sequence[Result], name: str, first: str, cost: tuple[str, Estimate], *, null: float | None = None
) -> Verdict:
    """A named cost ratio of one way, which should be below 1.

    It fails if the threshold was not reached with every seed, and has no threshold if latents of either way collapsed.
    """
    verdict_name, ratio = cost
    verdict = Verdict.judge(
        verdict_name,
        ratio,
        direction="lower",
        threshold=BELOW_ONE,
        null=null,
        good="Teaching saves cost against training alone.",
        bad="Teaching does not significantly save cost against training alone.",
    )
    if verdict.passed and reached(results, name) < len(results):
        advice = "The threshold was not reached with every seed, so the cost is unknown."
        verdict = replace(verdict, passed=False, advice=advice)
    collapsed = collapsed_seeds_of(results, name) or collapsed_seeds_of(results, first)
    return informative(verdict, not collapsed)


def collapsed_seeds_of(results: Sequence[Result], name: str) -> list[int]:
    """Seeds at which the final latents of a way have collapsed."""
    return [result.at["seed"] for result in results if result.value(f"{name}_directions") < MIN_DIRECTIONS]


def _final_gain(results: Sequence[Result], name: str, other: str) -> Verdict:
    """Final accuracy of one way minus that of another, paired by seed. It has no threshold and decides no claim."""
    differences = np.array([result.value(f"{name}_final") - result.value(f"{other}_final") for result in results])
    found = mean_interval(differences[np.isfinite(differences)])
    return Verdict.judge(
        f"{name}_over_{other}", found, direction="higher", good="Final accuracy minus that of the other way."
    )
