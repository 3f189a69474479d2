"""Do agents of the same world align better than those of two?

Half of the categories are one world, half another. Each seed has four agents, two views of either world. Pairs of the
same and of different worlds consist of the same four agents and are judged by the same states: new objects of all
categories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jepatlas.alignment import PairedLatents
from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Finding, Plain, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import mean_and_interval, plain, select
from jepatlas.experiments.social.agent_pairs import pair_result, pairs_of_views
from jepatlas.experiments.social.decisions import MEASURES, collapsed_seeds, decide, mean_difference, positive_verdicts
from jepatlas.experiments.social.pair_figures import r2_figure
from jepatlas.experiments.social.pair_measures import EFFORT, measure_pair
from jepatlas.experiments.social.scenes import WORLDS
from jepatlas.experiments.social.trained_agents import agent_trial, recipe_of, train_and_store
from jepatlas.recipes.image_sources import ObjectImages
from jepatlas.worlds.objects import RenderedObjects

__all__ = ["HALVES", "halves", "judge", "run_in_half", "trials", "world_pairs"]

HALVES = ("ijepa-first-kinds", "ijepa-other-kinds")


def halves(world: RenderedObjects) -> tuple[RenderedObjects, RenderedObjects]:
    """Two worlds with half of the categories each.

    >>> [half.categories for half in halves(RenderedObjects(("car", "lamp", "mug")))]
    [('car',), ('lamp', 'mug')]
    """
    middle = len(world.categories) // 2
    return replace(world, categories=world.categories[:middle]), replace(world, categories=world.categories[middle:])


def trials(scale: Scale, seeds: range) -> list[Trial]:
    """Agents of either half of the rendered world, which has new objects to judge by."""
    world = WORLDS[scale]
    judged = to_plain(replace(world, first_instance=world.first_instance + world.instances))
    found = []
    for name, half in zip(HALVES, halves(world), strict=True):
        for seed in seeds:
            for view in range(2):
                usual = agent_trial(scale, "rendered", view, seed)
                settings = usual.settings | {"world": to_plain(half), "judged": judged}
                found.append(Trial({**usual.at, "objective": name}, run_in_half, settings))
    return found


def run_in_half(settings: Plain, folder: str) -> Plain:
    """Train in one world, and store latents of another, of which a share is held out from maps."""
    judged = ObjectImages(from_plain(RenderedObjects, settings["judged"]))
    return train_and_store(recipe_of(settings), settings["most"], Path(folder), judged)


def world_pairs(results: Sequence[Result], scale: Scale) -> tuple[list[Result], list[Result]]:
    """Pairs trained in the same world, and pairs trained in different ones."""
    agents = [result for result in results if result.at["objective"] in HALVES]
    same = []
    different = []

    def measure(pair: PairedLatents) -> dict[str, Estimate]:
        return measure_pair(pair, EFFORT[scale])

    for a, b in pairs_of_views(agents):
        pairs = same if a.at["objective"] == b.at["objective"] else different
        pairs.append(pair_result(a, b, measure))
    return same, different


def judge(same: Sequence[Result], different: Sequence[Result]) -> Finding:
    """R², DSC and NOS@10 must significantly be better for the same world, at the same seeds."""
    found = {}
    for name in MEASURES:
        found[f"same_world_{name}"] = mean_difference(same, different, name, among=len(MEASURES))
    counts = [not collapsed_seeds([*same, *different])] * len(found)
    verdicts = positive_verdicts(
        found, "Agents of one world align better.", "Agents of one world do not significantly align better.", counts
    )
    outcome = decide(list(found.values()), counts)
    groups = {"the same world": same, "different worlds": different}
    return Finding(
        outcome,
        f"Agents of one world align better than those of two: {outcome}.",
        verdicts=(*verdicts, _beyond_controls(same)),
        figures=(r2_figure("Held-out R² of agents trained in the same world, or in two", groups),),
        tables=(_table(same, different),),
    )


def _beyond_controls(same: Sequence[Result]) -> Verdict:
    """Whether training added anything. Pairs of one seed are dependent, so one of the worlds is used."""
    return Verdict.judge(
        "same_world_beyond",
        mean_and_interval(select(same, objective=HALVES[0]), "beyond"),
        direction="higher",
        threshold=0.0,
        good="Agents of one world align better than pixels and untrained networks.",
        bad="Agents of one world do not significantly align better than pixels and untrained networks.",
    )


def _table(same: Sequence[Result], different: Sequence[Result]) -> Table:
    columns = {
        **MEASURES,
        "r2_untrained": "R², untrained",
        "r2_pca": "R², PCA",
        "beyond": "R² beyond the best control",
        "p_r2": "p",
        "directions": "directions",
    }
    rows = []
    for title, pairs in (("the same", same), ("different", different)):
        for pair in pairs:
            cells = [plain(pair.value(name)) for name in columns]
            rows.append([title, pair.at["objective"], pair.at["seed"], pair.status, *cells])
    title = "Agents trained on some categories, judged on new objects of all categories"
    return Table(title, ["worlds", "first agent", "seed", "agents", *columns.values()], rows)
