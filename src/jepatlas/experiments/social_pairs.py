"""How many pairs a map between trained agents needs, and what mismatched ones cost it.

The agents are those of `social-views`: nothing is trained for this. `pair-budget` and `pair-noise` ask the same of
charts whose map is known.
"""

from __future__ import annotations

from collections.abc import Sequence

from jepatlas.base.records import Verdict
from jepatlas.experiments.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.pair_noise import SHARES
from jepatlas.experiments.social_agents import PLANS, agents
from jepatlas.experiments.social_meetings import meetings
from jepatlas.experiments.social_pairs_shown import (
    budget_figure,
    budget_table,
    counts_of,
    noise_figure,
    noise_table,
)
from jepatlas.experiments.social_scenes import SCENES
from jepatlas.experiments.social_stress import METHODS, stressed
from jepatlas.experiments.tables import cell, grouped, mean_over_seeds, over_seeds

__all__ = ["EXPERIMENT", "judge"]

STUDIED: dict[Scale, tuple[str, ...]] = {
    "tiny": ("rendered",),
    "small": ("rendered", "driving"),
    "paper": ("smallnorb", "nuscenes-rear"),
}
GROWTH = 10.0

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
    """R² must surely grow with pairs and surely fall with mismatches, and κ grow tenfold, in every scene."""
    scenes = {scene: runs for (scene,), runs in grouped(pairs, "scene").items() if over_seeds(runs, "lost").n}
    rules = {scene: (mean_over_seeds(runs, "gained").low > 0, mean_over_seeds(runs, "lost").low > 0,
                     over_seeds(runs, "growth").low >= GROWTH) for scene, runs in scenes.items()}  # fmt: skip
    met = [rule for found in rules.values() for rule in found]
    return Finding(
        "undecided" if not met else "holds" if all(met) else "holds in part" if any(met) else "does not hold",
        " ".join(_sentence(scene, runs) for scene, runs in scenes.items())
        + f" Gains and losses count where the 95% interval of their mean over seeds excludes 0, and κ where it grows "
        f"{GROWTH:g} times at every seed.",
        short=f"more pairs, mismatches, κ: {sum(met)} of {len(met)} rules met",
        verdicts=tuple(_verdict(scene, runs) for scene, runs in scenes.items()),
        figures=tuple(figure(scenes) for figure in (budget_figure, noise_figure)),
        tables=(budget_table(scenes), noise_table(scenes)),
    )


def _sentence(scene: str, runs: Sequence[Result]) -> str:
    counts, clean = counts_of(runs), over_seeds(runs, "r2_noise_least squares_0").value
    kept = over_seeds(runs, f"r2_noise_robust_{SHARES[-1]:g}")
    best = max(METHODS, key=lambda name: over_seeds(runs, f"r2_{name}_{counts[0]}").value)
    return (
        f"{SCENES[scene].title.capitalize()}: from {counts[0]} to {counts[-1]:,} pairs R² of ridge grows by "
        f"{cell(over_seeds(runs, 'gained'))}; with {counts[0]}, {best} is best. With {SHARES[-1]:g} mismatched, R² of "
        f"least squares falls from {clean:.3f} by {cell(over_seeds(runs, 'lost'))}, and κ(W) is multiplied by "
        f"{cell(over_seeds(runs, 'growth'), 2)}; the robust fit comes to {kept.value:.3f}."
    )


def _verdict(scene: str, runs: Sequence[Result]) -> Verdict:
    return Verdict.judge(
        f"growth_{scene}", over_seeds(runs, "growth"), direction="higher", threshold=GROWTH,
        good="Mismatched pairs make the map ill-conditioned, as published.",
        bad="Mismatched pairs shrink the map, but do not make it ill-conditioned as published.",
    )  # fmt: skip


EXPERIMENT = Experiment("social-pairs", "Few and mismatched pairs of trained agents", CLAIM, trials, conclude)
