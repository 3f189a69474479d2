"""How many pairs a map between trained agents needs, and what mismatched pairs cost.

The agents are those of `social-views`, so nothing is trained. Maps are fitted between the principal directions that
hold 99% of the variance of standardised latents. `pair-budget` and `pair-noise` test the same on charts whose map is
known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.alignment.pair_budget import METHODS
from jepatlas.experiments.alignment.pair_noise import PUBLISHED, SHARES
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import (
    curve,
    extremes,
    geometric_mean_and_interval,
    mean_and_interval,
    mean_and_range,
)
from jepatlas.experiments.social.agent_pairs import pair_results
from jepatlas.experiments.social.agent_settings import PLANS
from jepatlas.experiments.social.decisions import (
    UNKNOWN,
    collapse_note,
    collapsed_seeds,
    decide,
    informative,
    measured_groups,
)
from jepatlas.experiments.social.map_quality import NOISE_METHODS, measure_budgets_and_noise
from jepatlas.experiments.social.scenes import SCENES
from jepatlas.experiments.social.trained_agents import agent_trials

__all__ = ["EXPERIMENT", "judge"]

Scenes = Mapping[str, Sequence[Result]]
STUDIED: dict[Scale, tuple[str, ...]] = {
    "tiny": ("rendered",),
    "small": ("rendered", "driving"),
    "paper": ("smallnorb", "nuscenes-rear"),
}
MIN_GROWTH = 10.0
"""κ must grow by this factor."""
RULES = 3
LOWEST_DRAWN = -1.0

CLAIM = Claim(
    statement="Between trained agents, more pairs give a better map; a share of mismatched pairs lowers R² and drives "
    "up κ(W), tenfold and more.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, Table 4 and Figure 5",
    measured="R² .891, .814, .692 and κ(W) 1.68, 14.4, 138 with 0, .1 and .3 mismatched; pairs from 50 to 20,000",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    seeds = range(seed, seed + PLANS[scale].seeds)
    return [trial for scene in STUDIED[scale] for trial in agent_trials(scale, scene, seeds)]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    return judge(pair_results(results, measure_budgets_and_noise))


def judge(pairs: Sequence[Result]) -> Finding:
    """In every scene, R² must significantly grow with pairs and fall with mismatches, and κ grow by MIN_GROWTH.
    Scenes with collapsed agents are excluded."""
    scenes, missing = measured_groups(pairs, "scene", "lost")
    counts = {scene: not collapsed_seeds(runs) for scene, runs in scenes.items()}
    among = max(1, RULES * sum(counts.values()))
    expected = [UNKNOWN] * missing
    counted = [False] * missing
    for scene, runs in scenes.items():
        expected += _rules(runs, among)
        counted += [counts[scene]] * RULES
    met = sum(count and rule.low > 0 for rule, count in zip(expected, counted, strict=True))
    excluded = "" if all(counted) else f"; {list(counts.values()).count(False)} scenes collapsed"
    titled = {SCENES[scene].title: runs for scene, runs in scenes.items()}
    return Finding(
        decide(expected, counted),
        f"{met} of {sum(counted)} rules are met: per scene, R² grows with pairs and falls with mismatches, and κ grows "
        f"{MIN_GROWTH:g}-fold.{collapse_note(titled)}",
        short=f"more pairs, mismatches, κ: {met} of {sum(counted)} rules met{excluded}",
        verdicts=tuple(informative(_verdict(scene, runs, among), counts[scene]) for scene, runs in scenes.items()),
        figures=(_budget_figure(scenes), _noise_figure(scenes)),
        tables=(_budget_table(scenes), _noise_table(scenes)),
    )


def _rules(runs: Sequence[Result], among: int) -> list[Estimate]:
    """What should be above 0: R² gained by pairs, R² lost by mismatches, and log(growth of κ / MIN_GROWTH)."""
    growth = geometric_mean_and_interval(runs, "growth", among)
    with np.errstate(divide="ignore"):  # the lower limit may be 0
        value, low, high = np.log(np.array([growth.value, growth.low, growth.high]) / MIN_GROWTH).tolist()
    gained, lost = (mean_and_interval(runs, name, among) for name in ("gained", "lost"))
    return [gained, lost, Estimate(value, low, high, growth.n)]


def _verdict(scene: str, runs: Sequence[Result], among: int) -> Verdict:
    return Verdict.judge(
        f"growth_{scene}",
        geometric_mean_and_interval(runs, "growth", among),
        direction="higher",
        threshold=MIN_GROWTH,
        good="Mismatched pairs make the map ill-conditioned, as published.",
        bad="Mismatched pairs do not significantly make the map ill-conditioned as published.",
    )


def _counts_of(runs: Sequence[Result]) -> list[int]:
    """The budgets that were measured."""
    names = {verdict["name"] for run in runs for verdict in run.record["verdicts"]}
    return sorted(int(name.rsplit("_", 1)[1]) for name in names if name.startswith("r2_ridge_"))


def _budget_figure(scenes: Scenes) -> Curves:
    panels = []
    for scene, runs in scenes.items():
        counts = _counts_of(runs)
        lines = []
        for name in METHODS:
            lines.append(curve(name, counts, [_drawn(mean_and_range(runs, f"r2_{name}_{n}")) for n in counts]))
        panels.append(CurvePanel(lines, SCENES[scene].title))
    return Curves(
        title="Held-out R² against the number of pairs",
        x_label="pairs",
        log_x=True,
        y_label="held-out R²",
        panels=panels,
        note=f"R² below {LOWEST_DRAWN:g} is drawn as {LOWEST_DRAWN:g}.",
    )


def _drawn(found: Estimate) -> Estimate:
    value, low, high = (max(number, LOWEST_DRAWN) for number in (found.value, found.low, found.high))
    return Estimate(value, low, high, found.n)


def _noise_figure(scenes: Scenes) -> Curves:
    panels = []
    for scene, runs in scenes.items():
        lines = []
        for name in NOISE_METHODS:
            points = [mean_and_range(runs, f"r2_noise_{name}_{share:g}") for share in SHARES]
            lines.append(curve(name, SHARES, points))
        lines.append(Curve("published", list(PUBLISHED), [score for score, _ in PUBLISHED.values()], dash=True))
        panels.append(CurvePanel(lines, SCENES[scene].title))
    return Curves(
        title="Held-out R² against mismatched pairs",
        x_label="share mismatched",
        y_label="held-out R²",
        panels=panels,
    )


def _budget_table(scenes: Scenes) -> Table:
    rows = []
    for scene, runs in scenes.items():
        for n in _counts_of(runs):
            scores = [extremes(mean_and_range(runs, f"r2_{name}_{n}")) for name in METHODS]
            kappa = f"{_median(runs, f'kappa_least squares_{n}'):.3g}"
            directions = extremes(mean_and_range(runs, "directions"), 1)
            rows.append([SCENES[scene].title, f"{n:,}", *scores, kappa, directions])
    columns = ["scene", "pairs", *(f"R², {name}" for name in METHODS), "κ(W), least squares (median)", "directions"]
    return Table("Pairs: held-out R², means over seeds (lowest to highest)", columns, rows)


def _noise_table(scenes: Scenes) -> Table:
    rows = []
    for scene, runs in scenes.items():
        for share in SHARES:
            scores = [extremes(mean_and_range(runs, f"r2_noise_{name}_{share:g}")) for name in NOISE_METHODS]
            kappas = [f"{_median(runs, f'kappa_noise_{name}_{share:g}'):.3g}" for name in NOISE_METHODS]
            published = " ".join(map(str, PUBLISHED.get(share, ("–",))))
            directions = extremes(mean_and_range(runs, "directions"), 1)
            rows.append([SCENES[scene].title, f"{share:g}", *scores, *kappas, published, directions])
    columns = [
        "scene",
        "mismatched",
        *(f"R², {name}" for name in NOISE_METHODS),
        *(f"κ(W), {name}" for name in NOISE_METHODS),
        "published R², κ",
        "directions",
    ]
    return Table("Mismatched pairs: held-out R², means over seeds (lowest to highest)", columns, rows)


def _median(runs: Sequence[Result], name: str) -> float:
    return float(np.median([run.value(name) for run in runs]))


EXPERIMENT = Experiment("social-pairs", "Few and mismatched pairs of trained agents", CLAIM, trials, conclude)
