"""Do agents with stronger predictors align better? The same views, encoders, first weights and steps.

From weak to strong: a line, the published perceptron, I-JEPA's transformer. The last reads tokens of the context, the
others its pooled latent. Controls are the same for all, so that differences in R² are differences beyond them, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, extremes, grouped, mean_and_range, select
from jepatlas.experiments.social.agents import agent
from jepatlas.experiments.social.collapse import collapsed_at, weighed
from jepatlas.experiments.social.measures import EFFORT, measured
from jepatlas.experiments.social.meetings import paired
from jepatlas.experiments.social.predictions_outcome import COLLAPSED, Prediction, verdicts
from jepatlas.experiments.social.predictions_shown import predictors_figure, predictors_table
from jepatlas.experiments.social.rules import estimated, gaps
from jepatlas.objectives.vision import IJEPAConfig, LinearPredictorConfig, NarrowPredictorConfig
from jepatlas.objectives.vision.vision_configs import AnyPredictor
from jepatlas.recipes import VisionRecipe
from jepatlas.training import last_metrics

__all__ = ["LADDER", "judge", "meet_predictors", "trials"]

LADDER = {"ijepa-linear": "linear", "ijepa": "perceptron", "ijepa-transformer": "transformer"}
"""From weak to strong; agents with the perceptron are the usual ones."""
_TRANSFORMERS: dict[Scale, NarrowPredictorConfig] = {
    "tiny": NarrowPredictorConfig(8, 1, 2),
    "small": NarrowPredictorConfig(),
    "paper": NarrowPredictorConfig.published(6, 6),
}


def trials(scale: Scale, scene: str, seeds: range) -> list[Trial]:
    """Those with a predictor of their own; the usual agents are asked for elsewhere."""
    others: dict[str, AnyPredictor] = {
        "ijepa-linear": LinearPredictorConfig(),
        "ijepa-transformer": _TRANSFORMERS[scale],
    }
    return [
        _with(predictor, name, agent(scale, scene, view, seed))
        for name, predictor in others.items()
        for seed in seeds
        for view in range(2)
    ]


def _with(predictor: AnyPredictor, name: str, usual: Trial) -> Trial:
    recipe = from_plain(VisionRecipe, usual.settings["recipe"])
    assert isinstance(recipe.objective, IJEPAConfig)
    recipe = replace(recipe, objective=replace(recipe.objective, predictor=predictor))
    return Trial({**usual.at, "objective": name}, usual.run, usual.settings | {"recipe": to_plain(recipe)})


def meet_predictors(results: Sequence[Result], scale: Scale) -> list[Result]:
    """What agents with the same predictor have in common, and how well each predicted in the end."""
    ladder = [result for result in results if result.at["objective"] in LADDER]
    return [
        paired(first, second, lambda met, a=first, b=second: measured(met, EFFORT[scale]) | _ends(a, b))
        for pair in grouped(ladder, "objective", "seed").values()
        for first, second in zip(select(pair, view=0), select(pair, view=1), strict=True)
    ]


def _ends(first: Result, second: Result) -> dict[str, Estimate]:
    """The spread of what was to be predicted, in the last step: mean standard deviation of the targets."""
    spread = float(np.mean([last_metrics(result.folder)["target_spread"] for result in (first, second)]))
    return {"spread": Estimate(spread, spread, spread, 2)}


def judge(pairs: Sequence[Result]) -> Prediction:
    """R² must surely rise with every step up the ladder."""
    kinds = {name: runs for (name,), runs in grouped(pairs, "objective").items() if mean_and_range(runs, "r2").n}
    up = [(weak, strong) for weak, strong in zip([*LADDER][:-1], [*LADDER][1:], strict=True)]
    found = estimated(
        {
            f"{LADDER[strong]}_over_{LADDER[weak]}": gaps(kinds.get(strong, []), kinds.get(weak, []), "r2")
            for weak, strong in up
        }
    )
    counts = [not collapsed_at([*kinds.get(weak, []), *kinds.get(strong, [])]) for weak, strong in up]
    return Prediction(
        "stronger predictors align better",
        weighed(list(found.values()), counts),
        f"Held-out R² by predictor: {_listed(kinds)}. Step by step: "
        + ", ".join(f"{name.replace('_', ' ')} {cell(gap)}" for name, gap in found.items())
        + f".{'' if all(counts) else COLLAPSED}",
        verdicts(
            found,
            "The stronger predictor's agents align better.",
            "The stronger predictor's agents do not surely align better.",
            counts,
        ),
        (predictors_figure({LADDER[name]: kinds[name] for name in LADDER if name in kinds}),),
        (predictors_table(pairs, LADDER),),
    )


def _listed(kinds: Mapping[str, Sequence[Result]]) -> str:
    return ", ".join(
        f"{LADDER[name]} {extremes(mean_and_range(kinds[name], 'r2'))} "
        f"(loss {mean_and_range(kinds[name], 'loss').value:.3f}, "
        f"beyond the best control {mean_and_range(kinds[name], 'beyond').value:.3f})"
        for name in LADDER
        if name in kinds
    )
