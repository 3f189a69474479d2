"""Do two agents that teach each other learn sooner than apart?

Agents of two views, with the same initial weights and batches: apart, in turn (each is drawn to the other's current
latents through a map fitted once a turn), and by a loss across (both are drawn together, and the map is fitted at
every step). The accuracy is the mean of both agents' probes.
"""

from __future__ import annotations

from collections.abc import Sequence

from jepatlas.core.records import Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Outcome
from jepatlas.experiments.engine.seed_tables import cell, geometric_mean_and_interval
from jepatlas.experiments.social.decisions import decide_by_scene
from jepatlas.experiments.social.race_rules import Decision, RaceRule, cost_verdict, judge_race, significantly_cheaper
from jepatlas.experiments.social.race_trials import mutual_trials

__all__ = ["EXPERIMENT"]

WAYS = {"apart": "apart", "alternating": "in turn", "cross": "loss across"}
TAUGHT = ("alternating", "cross")
PUBLISHED = {"apart": ("120", "1.00"), "alternating": ("80", "1.05"), "cross": ("55", "1.12")}

CLAIM = Claim(
    statement="Two agents that teach each other on shared states, in turn or by a loss across, need fewer epochs to a "
    "probe's accuracy than two that learn apart.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, section 3.7, equation 9 "
    "and Table 9",
    measured="85% after 80 epochs in turn (1.05× FLOPs) and 55 by a loss across (1.12×), not 120",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    return mutual_trials(scale, seed)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    return decide_by_scene(results, lambda runs: judge_race(runs, RULE))


def _decide(counted: Sequence[Result]) -> Decision:
    """Holds if both ways significantly need fewer epochs, in part if one does, and does not hold if neither does and
    one significantly needs more."""
    cheaper = [significantly_cheaper(counted, name, "apart", "ratio", among=len(TAUGHT)) for name in TAUGHT]
    outcome: Outcome = "does not hold" if False in cheaper else "undecided"
    if any(cheaper):
        outcome = "holds" if all(cheaper) else "holds in part"
    ratios = {name: geometric_mean_and_interval(counted, f"{name}_ratio") for name in TAUGHT}
    listed = ", ".join(f"{WAYS[name]} {cell(ratio, 2)}" for name, ratio in ratios.items())
    return Decision(
        outcome,
        f"Epochs relative to training apart: {listed}.",
        ", ".join(f"{WAYS[name]} {ratio.value:.2f}× the epochs" for name, ratio in ratios.items()),
    )


def _costs(results: Sequence[Result]) -> list[Verdict]:
    verdicts = []
    for name in TAUGHT:
        ratio = geometric_mean_and_interval(results, f"{name}_ratio", among=len(TAUGHT))
        verdicts.append(cost_verdict(results, name, "apart", (f"{name}_epochs", ratio)))
    return verdicts


RULE = RaceRule(
    WAYS,
    PUBLISHED,
    "Probe accuracy of two agents during training",
    _decide,
    _costs,
    compared=[(name, "apart") for name in TAUGHT],
)
EXPERIMENT = Experiment("social-mutual", "Two agents that teach each other", CLAIM, trials, conclude)
