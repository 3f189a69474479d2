"""Do stronger predictors align agents better?

Predictors, from weak to strong: linear, the published perceptron, I-JEPA's transformer. The last reads tokens of the
context, the others its pooled latent. Controls are the same for all, so differences in R² are also differences beyond
controls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import Table
from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import point_estimates
from jepatlas.experiments.engine.run_tables import numbers, run_table
from jepatlas.experiments.engine.seed_tables import grouped, select
from jepatlas.experiments.social.agent_pairs import pair_result
from jepatlas.experiments.social.decisions import (
    MEASURES,
    collapsed_seeds,
    decide,
    measured_groups,
    positive_verdicts,
    seed_differences,
    simultaneous,
)
from jepatlas.experiments.social.pair_figures import r2_figure
from jepatlas.experiments.social.pair_measures import EFFORT, measure_pair
from jepatlas.experiments.social.trained_agents import agent_trial
from jepatlas.objectives.vision import IJEPAConfig, LinearPredictorConfig, NarrowPredictorConfig
from jepatlas.objectives.vision.prediction_configs import AnyPredictor
from jepatlas.recipes import VisionRecipe
from jepatlas.training import last_metrics

__all__ = ["LADDER", "judge", "predictor_pairs", "trials"]

LADDER = {"ijepa-linear": "linear", "ijepa": "perceptron", "ijepa-transformer": "transformer"}
"""From weak to strong; agents with the perceptron are the usual ones."""
_TRANSFORMERS: dict[Scale, NarrowPredictorConfig] = {
    "tiny": NarrowPredictorConfig(8, 1, 2),
    "small": NarrowPredictorConfig(),
    "paper": NarrowPredictorConfig.published(6, 6),
}


def trials(scale: Scale, scene: str, seeds: range) -> list[Trial]:
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


def judge(pairs: Sequence[Result]) -> Finding:
    """R² must significantly rise with every step up the ladder."""
    kinds, _ = measured_groups(pairs, "objective", "r2")
    differences = {}
    counts = []
    for weak, strong in pairwise(LADDER):
        weaker = kinds.get(weak, [])
        stronger = kinds.get(strong, [])
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
        tables=(_table(pairs),),
    )


def _table(pairs: Sequence[Result]) -> Table:
    measured = {
        "loss": "loss in the last step",
        "spread": "standard deviation of its targets",
        **MEASURES,
        "beyond": "R² beyond the best control",
        "p_r2": "p",
        "directions": "directions",
    }
    ordered = [pair for objective in LADDER for pair in select(pairs, objective=objective)]
    places = {"predictor": lambda pair: LADDER[pair.at["objective"]], "seed": "seed"}
    return run_table("Predictors", ordered, places, numbers(measured), status="agents")
