"""Two agents that learn at once and teach each other: do both come sooner to what they would learn apart?

Agents of two views, from the same weights and batches: apart, in turn (each is drawn to the other as it is,
through a map fitted once a turn), and by a loss across (both are drawn together, the map fitted at every step). What is
read is the mean accuracy of both agents' probes.
"""

from __future__ import annotations

from collections.abc import Sequence

from jepatlas.core.config import to_plain
from jepatlas.core.records import Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Outcome, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import geometric_mean_and_interval, mean_and_range
from jepatlas.experiments.social.by_scene import by_scene
from jepatlas.experiments.social.race import LEAST, SOONER, decidable, final_gain, gain_verdict, heard, learned, sooner
from jepatlas.experiments.social.race_shown import curves_figure, race_tables
from jepatlas.experiments.social.race_words import (
    collapse_sentence,
    cost_sentence,
    final_sentence,
    scratch_sentence,
    why_undecidable,
)
from jepatlas.experiments.social.racers import RACES, WEIGHT, racer
from jepatlas.experiments.social.teaching_runs import run_mutual

__all__ = ["EXPERIMENT"]

WAYS = {"apart": "apart", "alternating": "in turn", "cross": "loss across"}
TAUGHT = ("alternating", "cross")
SAID = {"alternating": "in turn", "cross": "by a loss across"}
BESIDE = {"apart": "that of agents that learned apart"}
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
    return [
        Trial(
            {"scene": race.scene, "seed": s},
            run_mutual,
            {
                "scene": race.scene,
                "world": to_plain(race.world),
                "threshold": race.threshold,
                "pairs": race.pairs,
                "recipes": [racer(scale, view, s) for view in range(2)],
                "weight": WEIGHT,
                "memory": race.memory,
            },
        )
        for s in range(seed, seed + race.seeds)
    ]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    return by_scene(results, judge)


def judge(results: Sequence[Result]) -> Finding:
    """Of seeds at which agents apart learned something that a probe reads; from fewer than two nothing follows."""
    finished = [r for r in results if r.status == "finished"]
    left = learned(finished)
    raced = len(left) >= LEAST
    map_share = mean_and_range(left, "cross_map").value
    costs = f" {cost_sentence(left, WAYS)} The map takes {map_share:.2%} of the operations of the loss across."
    return Finding(
        _outcome(left) if decidable(finished) else "undecided",
        f"{scratch_sentence(finished, 'Apart, agents go')}{costs if raced else ''}"
        + "".join(final_sentence(finished, name, f"Taught {SAID[name]},", BESIDE) for name in TAUGHT)
        + collapse_sentence(finished, WAYS),
        short=", ".join(
            f"{WAYS[name]} {geometric_mean_and_interval(left, f'{name}_ratio').value:.2f}× the epochs"
            for name in TAUGHT
        )
        if decidable(finished)
        else why_undecidable(finished),
        verdicts=(
            gain_verdict(finished),
            *(_verdict(left, name) for name in TAUGHT if raced),
            *(final_gain(finished, name, "apart") for name in TAUGHT),
        ),
        figures=(curves_figure(finished, WAYS, "Probes' accuracy as two agents learn"),),
        tables=race_tables(results, WAYS, PUBLISHED),
    )


def _outcome(left: Sequence[Result]) -> Outcome:
    """It holds where both ways need fewer epochs beyond doubt, in part where one does; where neither does and one is
    surely slower, it does not."""
    found = [sooner(left, name, "apart", "ratio", among=len(TAUGHT)) for name in TAUGHT]
    return (
        "holds" if all(found) else "holds in part" if any(found) else "does not hold" if False in found else "undecided"
    )


def _verdict(results: Sequence[Result], name: str) -> Verdict:
    ratio = geometric_mean_and_interval(results, f"{name}_ratio", among=len(TAUGHT))
    return heard(
        results,
        name,
        "apart",
        Verdict.judge(
            f"{name}_epochs",
            ratio,
            direction="lower",
            threshold=SOONER,
            good="Two agents that teach each other learn sooner.",
            bad="Two agents that teach each other do not surely learn sooner.",
        ),
    )


EXPERIMENT = Experiment("social-mutual", "Two agents that teach each other", CLAIM, trials, conclude)
