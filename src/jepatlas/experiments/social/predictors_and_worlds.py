"""Two predictions: stronger predictors align agents better, and so does a common world.

Predictors, from weak to strong: linear, the published perceptron, I-JEPA's transformer. The last reads tokens of the
context, the others its pooled latent. Controls are the same for all, so differences in R² are also differences beyond
controls.

Worlds: half of the categories are one world, half another. Each seed has four agents, two views of either world.
Pairs of the same and of different worlds consist of the same four agents and are judged by the same states: new
objects of all categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.alignment import PairedLatents
from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Finding, Result, Scale, Trial, point_estimates
from jepatlas.experiments.engine.seed_tables import grouped, mean_and_interval, plain, select
from jepatlas.experiments.social.agent_pairs import pair_result
from jepatlas.experiments.social.decisions import (
    MEASURES,
    collapsed_seeds,
    decide,
    mean_difference,
    measured_groups,
    positive_verdicts,
    seed_differences,
    simultaneous,
)
from jepatlas.experiments.social.pair_figures import r2_figure
from jepatlas.experiments.social.pair_measures import EFFORT, measure_pair
from jepatlas.experiments.social.scenes import WORLDS
from jepatlas.experiments.social.trained_agents import agent_trial, recipe_of, train_and_store
from jepatlas.objectives.vision import IJEPAConfig, LinearPredictorConfig, NarrowPredictorConfig
from jepatlas.objectives.vision.vision_configs import AnyPredictor
from jepatlas.recipes import VisionRecipe
from jepatlas.recipes.image_sources import ObjectImages
from jepatlas.training import last_metrics
from jepatlas.worlds.objects import RenderedObjects

__all__ = [
    "HALVES",
    "LADDER",
    "halves",
    "judge_predictors",
    "judge_worlds",
    "predictor_pairs",
    "predictor_trials",
    "run_in_half",
    "world_pairs",
    "world_trials",
]

LADDER = {"ijepa-linear": "linear", "ijepa": "perceptron", "ijepa-transformer": "transformer"}
"""From weak to strong; agents with the perceptron are the usual ones."""
HALVES = ("ijepa-first-kinds", "ijepa-other-kinds")
_TRANSFORMERS: dict[Scale, NarrowPredictorConfig] = {
    "tiny": NarrowPredictorConfig(8, 1, 2),
    "small": NarrowPredictorConfig(),
    "paper": NarrowPredictorConfig.published(6, 6),
}


def predictor_trials(scale: Scale, scene: str, seeds: range) -> list[Trial]:
    """Agents whose predictor is not the usual one."""
    predictors: dict[str, AnyPredictor] = {
        "ijepa-linear": LinearPredictorConfig(),
        "ijepa-transformer": _TRANSFORMERS[scale],
    }
    found = []
    for name, predictor in predictors.items():
        for seed in seeds:
            for view in range(2):
                usual = agent_trial(scale, scene, view, seed)
                recipe = from_plain(VisionRecipe, usual.settings["recipe"])
                assert isinstance(recipe.objective, IJEPAConfig)
                recipe = replace(recipe, objective=replace(recipe.objective, predictor=predictor))
                settings = usual.settings | {"recipe": to_plain(recipe)}
                found.append(Trial({**usual.at, "objective": name}, usual.run, settings))
    return found


def predictor_pairs(results: Sequence[Result], scale: Scale) -> list[Result]:
    """Pairs of agents with the same predictor."""
    ladder = [result for result in results if result.at["objective"] in LADDER]
    found = []
    for runs in grouped(ladder, "objective", "seed").values():
        for a, b in zip(select(runs, view=0), select(runs, view=1), strict=True):
            found.append(
                pair_result(a, b, lambda pair, a=a, b=b: measure_pair(pair, EFFORT[scale]) | _target_spread(a, b))
            )
    return found


def _target_spread(a: Result, b: Result) -> dict[str, Estimate]:
    """Standard deviation of the prediction targets in the last step, mean of both agents."""
    spread = float(np.mean([last_metrics(result.folder)["target_spread"] for result in (a, b)]))
    return point_estimates({"spread": spread}, 2)


def judge_predictors(pairs: Sequence[Result]) -> Finding:
    """R² must significantly rise with every step up the ladder."""
    kinds, _ = measured_groups(pairs, "objective", "r2")
    differences, counts = {}, []
    for weak, strong in pairwise(LADDER):
        weaker, stronger = kinds.get(weak, []), kinds.get(strong, [])
        differences[f"{LADDER[strong]}_over_{LADDER[weak]}"] = seed_differences(stronger, weaker, "r2")
        counts.append(not collapsed_seeds([*weaker, *stronger]))
    found = simultaneous(differences)
    titled = {LADDER[name]: kinds[name] for name in LADDER if name in kinds}
    outcome = decide(list(found.values()), counts)
    return Finding(
        outcome,
        f"Stronger predictors align better: {outcome}.",
        verdicts=positive_verdicts(
            found,
            "Agents with the stronger predictor align better.",
            "Agents with the stronger predictor do not significantly align better.",
            counts,
        ),
        figures=(r2_figure("Held-out R² by predictor, from weak to strong", titled),),
        tables=(_predictors_table(pairs),),
    )


def halves(world: RenderedObjects) -> tuple[RenderedObjects, RenderedObjects]:
    """Two worlds with half of the categories each.

    >>> [half.categories for half in halves(RenderedObjects(("car", "lamp", "mug")))]
    [('car',), ('lamp', 'mug')]
    """
    middle = len(world.categories) // 2
    return replace(world, categories=world.categories[:middle]), replace(world, categories=world.categories[middle:])


def world_trials(scale: Scale, seeds: range) -> list[Trial]:
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


def run_in_half(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train in one world, and store latents of another, of which a share is held out from maps."""
    judged = ObjectImages(from_plain(RenderedObjects, settings["judged"]))
    return train_and_store(recipe_of(settings), settings["most"], Path(folder), judged)


def world_pairs(results: Sequence[Result], scale: Scale) -> tuple[list[Result], list[Result]]:
    """Pairs trained in the same world, and pairs trained in different ones."""
    agents = [result for result in results if result.at["objective"] in HALVES]
    same, different = [], []

    def measure(pair: PairedLatents) -> dict[str, Estimate]:
        return measure_pair(pair, EFFORT[scale])

    for a in select(agents, view=0):
        for b in select(agents, view=1, seed=a.at["seed"]):
            pairs = same if a.at["objective"] == b.at["objective"] else different
            pairs.append(pair_result(a, b, measure))
    return same, different


def judge_worlds(same: Sequence[Result], different: Sequence[Result]) -> Finding:
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
        tables=(_worlds_table(same, different),),
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


def _predictors_table(pairs: Sequence[Result]) -> Table:
    columns = {
        "loss": "loss in the last step",
        "spread": "standard deviation of its targets",
        **MEASURES,
        "beyond": "R² beyond the best control",
        "p_r2": "p",
        "directions": "directions",
    }
    rows = []
    for objective, title in LADDER.items():
        for pair in select(pairs, objective=objective):
            rows.append([title, pair.at["seed"], pair.status, *(plain(pair.value(name)) for name in columns)])
    return Table("Predictors", ["predictor", "seed", "agents", *columns.values()], rows)


def _worlds_table(same: Sequence[Result], different: Sequence[Result]) -> Table:
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
