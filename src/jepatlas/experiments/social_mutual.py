"""Two agents that learn at once and teach each other: do both come sooner to what they would learn apart?

I-JEPA agents of two views, from the same weights and batches: apart, in turn (each is drawn to the other as it is,
through a map fitted once a turn), and by a loss across (both are drawn together, the map fitted at every step). What is
read is the mean accuracy of both agents' probes.
"""

from __future__ import annotations

from collections.abc import Sequence

from jepatlas.base.config import to_plain
from jepatlas.base.records import Verdict
from jepatlas.experiments.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.social_agents import PLANS
from jepatlas.experiments.social_migration import RACES, WEIGHT, watched
from jepatlas.experiments.social_race import costs_table, curves_figure, faster, reached, runs_table, said
from jepatlas.experiments.social_scenes import WORLDS
from jepatlas.experiments.social_teaching_runs import run_mutual
from jepatlas.experiments.tables import cell, factor_over_seeds, mean_over_seeds, over_seeds

__all__ = ["EXPERIMENT"]

WAYS = {"apart": "apart", "alternating": "in turn", "cross": "loss across"}
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
        Trial({"scene": race.scene, "seed": s}, run_mutual,
              {"scene": race.scene, "world": to_plain(WORLDS[scale]), "threshold": race.threshold, "pairs": race.pairs,
               "recipes": [watched(scale, race, view, s) for view in range(2)], "weight": WEIGHT,
               "memory": race.memory})
        for s in range(seed, seed + PLANS[scale].seeds)
    ]  # fmt: skip


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds where both ways need fewer epochs beyond doubt, in part where one does; where neither does, and one is
    surely slower or does not get there, it does not; nothing follows where agents apart learn nothing."""
    del scale
    finished = [r for r in results if r.status == "finished"]
    taught = ("alternating", "cross")
    sooner = [faster(finished, name, "ratio") for name in taught]
    failed = any(_failed(finished, name) for name in taught)
    return Finding(
        "undecided" if not mean_over_seeds(finished, "gain").low > 0
        else "holds" if all(sooner)
        else "holds in part" if any(sooner)
        else "does not hold" if failed
        else "undecided",
        f"Apart, agents go from {cell(over_seeds(finished, 'untrained'))} before the first step to "
        f"{cell(over_seeds(finished, 'threshold'))}, which is the threshold. "
        + "; ".join(said(finished, name, title) for name, title in WAYS.items())
        + f". The map takes {over_seeds(finished, 'cross_map').value:.2%} of the operations of the loss across.",
        short=", ".join(f"{WAYS[name]} {factor_over_seeds(finished, f'{name}_ratio').value:.2f}× the epochs"
                        for name in taught),
        verdicts=tuple(_verdict(finished, name) for name in taught),
        figures=(curves_figure(finished, WAYS, "Probes' accuracy as two agents learn"),),
        tables=(runs_table(results, WAYS, PUBLISHED), costs_table(finished, WAYS)),
    )  # fmt: skip


def _failed(results: Sequence[Result], name: str) -> bool:
    slower = factor_over_seeds(results, f"{name}_ratio").low > 1
    return slower or reached(results, name) < len(results)


def _verdict(results: Sequence[Result], name: str) -> Verdict:
    return Verdict.judge(
        f"{name}_epochs", factor_over_seeds(results, f"{name}_ratio"), direction="lower", threshold=1.0,
        good="Two agents that teach each other learn sooner.",
        bad="Two agents that teach each other do not surely learn sooner.",
    )  # fmt: skip


EXPERIMENT = Experiment("social-mutual", "Two agents that teach each other", CLAIM, trials, conclude)
