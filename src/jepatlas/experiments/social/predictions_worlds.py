"""Do agents align better that learned in the same world? Half of the kinds of objects are one world, half another.

Of each seed there are four agents: two views, each learned in either world. Pairs of the same world and of different
ones are made of the same four, and are judged by the same states: new objects of all kinds, which none has seen. So
PCA, untrained networks and what the second view tells by itself are the same for both; only the company differs.
(`social-shift` fits a map on some kinds and asks it about others, between agents that saw all of them.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jepatlas.core.config import to_plain
from jepatlas.core.records import Verdict
from jepatlas.experiments.engine.experiment import Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, extremes, mean_and_interval, mean_and_range, select
from jepatlas.experiments.social.agents import agent
from jepatlas.experiments.social.collapse import collapsed_at, weighed
from jepatlas.experiments.social.measures import EFFORT, measured
from jepatlas.experiments.social.meetings import paired
from jepatlas.experiments.social.predictions_outcome import COLLAPSED, Prediction, verdicts
from jepatlas.experiments.social.predictions_runs import run_elsewhere
from jepatlas.experiments.social.predictions_shown import worlds_figure, worlds_table
from jepatlas.experiments.social.rules import MEASURES, gap
from jepatlas.experiments.social.scenes import WORLDS
from jepatlas.worlds.objects import RenderedObjects

__all__ = ["HALVES", "halves", "judge", "meet_worlds", "trials"]

HALVES = ("ijepa-first-kinds", "ijepa-other-kinds")


def halves(world: RenderedObjects) -> tuple[RenderedObjects, RenderedObjects]:
    """
    >>> [half.categories for half in halves(RenderedObjects(("car", "lamp", "mug")))]
    [('car',), ('lamp', 'mug')]
    """
    middle = len(world.categories) // 2
    return replace(world, categories=world.categories[:middle]), replace(world, categories=world.categories[middle:])


def trials(scale: Scale, seeds: range) -> list[Trial]:
    """Always of rendered objects: of these there are new ones to judge by."""
    world = WORLDS[scale]
    judged = to_plain(replace(world, first_instance=world.first_instance + world.instances))
    found = []
    for name, half in zip(HALVES, halves(world), strict=True):
        for usual in (agent(scale, "rendered", view, seed) for seed in seeds for view in range(2)):
            settings = usual.settings | {"world": to_plain(half), "judged": judged}
            found.append(Trial({**usual.at, "objective": name}, run_elsewhere, settings))
    return found


def meet_worlds(results: Sequence[Result], scale: Scale) -> tuple[list[Result], list[Result]]:
    """Pairs that learned in the same world, and pairs that learned in different ones."""
    sides = [
        [result for result in results if result.at["objective"] in HALVES and result.at["view"] == view]
        for view in range(2)
    ]
    pairs = [(a, b) for a in sides[0] for b in sides[1] if a.at["seed"] == b.at["seed"]]
    same, apart = (
        [
            paired(a, b, lambda met: measured(met, EFFORT[scale]))
            for a, b in pairs
            if (a.at["objective"] == b.at["objective"]) is alike
        ]
        for alike in (True, False)
    )
    return same, apart


def judge(same: Sequence[Result], apart: Sequence[Result]) -> Prediction:
    """R², DSC and NOS@10 must surely be better for the same world, at the same seeds."""
    found = {f"same_world_{name}": gap(same, apart, name, among=len(MEASURES)) for name in MEASURES}
    alive = not collapsed_at([*same, *apart])
    counts = [alive] * len(found)
    return Prediction(
        "agents of one world align better than those of two",
        weighed(list(found.values()), counts),
        f"Agents that learned in the same world: {_scores(same)}; in different ones: {_scores(apart)}. The same world "
        "is better by "
        + ", ".join(f"{cell(found[f'same_world_{name}'])} in {title}" for name, title in MEASURES.items())
        + f". Untrained they have R² {mean_and_range(same, 'r2_untrained').value:.3f}, and PCA of the same width "
        f"{mean_and_range(same, 'r2_pca').value:.3f}."
        f"{'' if alive else COLLAPSED}",
        (
            *verdicts(
                found, "Agents of one world align better.", "Agents of one world do not surely align better.", counts
            ),
            _beyond(same),
        ),
        (worlds_figure(same, apart),),
        (worlds_table(same, apart),),
    )


def _scores(runs: Sequence[Result]) -> str:
    return ", ".join(f"{title} {extremes(mean_and_range(runs, name))}" for name, title in MEASURES.items())


def _beyond(same: Sequence[Result]) -> Verdict:
    """Beside the prediction: whether there is anything that learning added. Pairs of one seed are not independent, so
    one of the worlds is asked."""
    found = mean_and_interval(select(same, objective=HALVES[0]), "beyond")
    return Verdict.judge(
        "same_world_beyond",
        found,
        direction="higher",
        threshold=0.0,
        good="Agents of one world align beyond what pixels and untrained networks do.",
        bad="What agents of one world align, pixels or untrained networks align, too, or the seeds do not tell.",
    )
