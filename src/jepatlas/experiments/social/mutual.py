"""Do two agents that teach each other learn sooner than apart?

Agents of two views, with the same initial weights and batches: apart, in turn (each is drawn to the other's current
latents through a map fitted once a turn), and by a loss across (both are drawn together, and the map is fitted at
every step). The accuracy is the mean of both agents' probes."""

from __future__ import annotations

from collections.abc import Sequence

from jepatlas.core.records import Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Outcome, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, geometric_mean_and_interval
from jepatlas.experiments.social.decisions import decide_by_scene
from jepatlas.experiments.social.race import (
    MIN_SEEDS,
    cost_verdict,
    decidable,
    final_gain,
    gain_verdict,
    learned,
    significantly_cheaper,
    why_undecidable,
)
from jepatlas.experiments.social.race_figures import accuracy_figure, race_tables
from jepatlas.experiments.social.race_trials import RACES, mutual_settings, run_mutual

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
    race = RACES[scale]
    found = []
    for number in range(seed, seed + race.seeds):
        place = {"scene": race.scene, "seed": number}
        found.append(Trial(place, run_mutual, mutual_settings(scale, number)))
    return found


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    return decide_by_scene(results, judge)


def judge(results: Sequence[Result]) -> Finding:
    """Over the seeds that count: holds if both ways significantly need fewer epochs, in part if one does, and does
    not hold if neither does and one significantly needs more."""
    finished = [result for result in results if result.status == "finished"]
    counted = learned(finished)
    if decidable(finished):
        outcome = _outcome(counted)
        ratios = {name: geometric_mean_and_interval(counted, f"{name}_ratio") for name in TAUGHT}
        listed = ", ".join(f"{WAYS[name]} {cell(ratio, 2)}" for name, ratio in ratios.items())
        sentence = f"Epochs relative to training apart: {listed}."
        short = ", ".join(f"{WAYS[name]} {ratio.value:.2f}× the epochs" for name, ratio in ratios.items())
    else:
        outcome = "undecided"
        short = why_undecidable(finished)
        sentence = f"{short.capitalize()}."
    return Finding(
        outcome,
        sentence,
        short=short,
        verdicts=(
            gain_verdict(finished),
            *(_cost_verdict(counted, name) for name in TAUGHT if len(counted) >= MIN_SEEDS),
            *(final_gain(finished, name, "apart") for name in TAUGHT),
        ),
        figures=(accuracy_figure(finished, WAYS, "Probe accuracy of two agents during training"),),
        tables=race_tables(results, WAYS, PUBLISHED),
    )


def _outcome(counted: Sequence[Result]) -> Outcome:
    cheaper = [significantly_cheaper(counted, name, "apart", "ratio", among=len(TAUGHT)) for name in TAUGHT]
    if any(cheaper):
        return "holds" if all(cheaper) else "holds in part"
    return "does not hold" if False in cheaper else "undecided"


def _cost_verdict(results: Sequence[Result], name: str) -> Verdict:
    ratio = geometric_mean_and_interval(results, f"{name}_ratio", among=len(TAUGHT))
    return cost_verdict(results, name, "apart", (f"{name}_epochs", ratio))


EXPERIMENT = Experiment("social-mutual", "Two agents that teach each other", CLAIM, trials, conclude)
