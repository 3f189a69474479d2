"""How many pairs a map between trained agents needs, and what mismatched ones cost it.

The agents are those of `social-views`: nothing is trained for this. `pair-budget` and `pair-noise` ask the same of
charts whose map is known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.alignment.pair_noise import SHARES
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import (
    cell,
    geometric_mean_and_interval,
    grouped,
    mean_and_interval,
    mean_and_range,
)
from jepatlas.experiments.social.agents import PLANS, agents
from jepatlas.experiments.social.collapse import UNKNOWN, collapsed_at, named, unheard, weighed
from jepatlas.experiments.social.meetings import meetings
from jepatlas.experiments.social.pairs_shown import (
    budget_figure,
    budget_table,
    counts_of,
    noise_figure,
    noise_table,
)
from jepatlas.experiments.social.scenes import SCENES
from jepatlas.experiments.social.stress import METHODS, stressed

__all__ = ["EXPERIMENT", "judge"]

STUDIED: dict[Scale, tuple[str, ...]] = {
    "tiny": ("rendered",),
    "small": ("rendered", "driving"),
    "paper": ("smallnorb", "nuscenes-rear"),
}
GROWTH, RULES = 10.0, 3

CLAIM = Claim(
    statement="Between trained agents, more pairs give a better map; a share of mismatched pairs lowers R² and drives "
    "up κ(W), tenfold and more.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, Table 4 and Figure 5",
    measured="R² .891, .814, .692 and κ(W) 1.68, 14.4, 138 with 0, .1 and .3 mismatched; pairs from 50 to 20,000",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    seeds = range(seed, seed + PLANS[scale].seeds)
    return [trial for scene in STUDIED[scale] for trial in agents(scale, scene, seeds)]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    return judge(meetings(results, stressed))


def judge(pairs: Sequence[Result]) -> Finding:
    """R² must surely grow with pairs and surely fall with mismatches, and κ grow tenfold, in every scene. Scenes whose
    agents collapsed do not count."""
    scenes = {scene: runs for (scene,), runs in grouped(pairs, "scene").items() if mean_and_range(runs, "lost").n}
    counts = {scene: not collapsed_at(runs) for scene, runs in scenes.items()}
    among = max(1, RULES * sum(counts.values()))
    rules = [(rule, counts[scene]) for scene, runs in scenes.items() for rule in _rules(runs, among)]
    rules += [(UNKNOWN, False) for (scene,), _ in grouped(pairs, "scene").items() if scene not in scenes]
    met, heard = [counted for rule, counted in rules if rule.low > 0], [counted for _, counted in rules]
    return Finding(
        weighed([rule for rule, _ in rules], heard),
        " ".join(_sentence(scene, runs, among) for scene, runs in scenes.items())
        + f" Gains and losses count where the interval of their mean over seeds lies above 0, and κ where that of its "
        f"growth lies above {GROWTH:g}, at 95% for all rules that count at once."
        f"{named({SCENES[scene].title: runs for scene, runs in scenes.items()})} Of "
        f"{len(rules)} rules {len(met)} are met, {sum(met)} of them in scenes that count.",
        short=f"more pairs, mismatches, κ: {sum(met)} of {sum(heard)} rules met"
        + ("" if all(heard) else f"; {list(counts.values()).count(False)} scenes collapsed"),
        verdicts=tuple(unheard(_verdict(scene, runs, among), counts[scene]) for scene, runs in scenes.items()),
        figures=tuple(figure(scenes) for figure in (budget_figure, noise_figure)),
        tables=(budget_table(scenes), noise_table(scenes)),
    )


def _rules(runs: Sequence[Result], among: int) -> tuple[Estimate, Estimate, Estimate]:
    """What should be above 0: R² gained by pairs, R² lost by mismatches, the logarithm of κ's growth over GROWTH."""
    growth = geometric_mean_and_interval(runs, "growth", among)
    with np.errstate(divide="ignore"):  # of an interval that reaches down to 0
        value, low, high = np.log(np.array([growth.value, growth.low, growth.high]) / GROWTH).tolist()
    gained, lost = (mean_and_interval(runs, name, among) for name in ("gained", "lost"))
    return gained, lost, Estimate(value, low, high, growth.n)


def _sentence(scene: str, runs: Sequence[Result], among: int) -> str:
    counts, clean = counts_of(runs), mean_and_range(runs, "r2_noise_least squares_0").value
    gained, lost = (mean_and_interval(runs, name, among) for name in ("gained", "lost"))
    kept = mean_and_range(runs, f"r2_noise_robust_{SHARES[-1]:g}")
    best = max(METHODS, key=lambda name: mean_and_range(runs, f"r2_{name}_{counts[0]}").value)
    return (
        f"{SCENES[scene].title.capitalize()}: from {counts[0]} to {counts[-1]:,} pairs R² of ridge grows by "
        f"{cell(gained)}; with {counts[0]}, {best} is best. With {SHARES[-1]:g} mismatched, R² of "
        f"least squares falls from {clean:.3f} by {cell(lost)}, and κ(W) is multiplied by "
        f"{cell(geometric_mean_and_interval(runs, 'growth', among), 2)}; the robust fit comes to {kept.value:.3f}."
    )


def _verdict(scene: str, runs: Sequence[Result], among: int) -> Verdict:
    return Verdict.judge(
        f"growth_{scene}",
        geometric_mean_and_interval(runs, "growth", among),
        direction="higher",
        threshold=GROWTH,
        good="Mismatched pairs make the map ill-conditioned, as published.",
        bad="Mismatched pairs do not surely make the map ill-conditioned as published.",
    )


EXPERIMENT = Experiment("social-pairs", "Few and mismatched pairs of trained agents", CLAIM, trials, conclude)
