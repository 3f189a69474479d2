"""What Social-JEPA's theory predicts and its preprint leaves untested: four predictions, each with its own verdict.

    loss          over checkpoints, a lower prediction loss goes with better alignment
    predictors    stronger predictors, better alignment
    stability     objectives that ask for view-invariant prediction have steadier maps, over pairs and over seeds
    worlds        agents that learned in the same world align better than those of different ones

What it predicts of mismatched and of few pairs, `social-pairs` tests. Each file `predictions_*` has its rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, combined
from jepatlas.experiments.social import (
    predictions_loss,
    predictions_predictors,
    predictions_stability,
    predictions_worlds,
)
from jepatlas.experiments.social.agents import PLANS
from jepatlas.experiments.social.collapse import ENOUGH
from jepatlas.experiments.social.measures import EFFORT
from jepatlas.experiments.social.predictions_outcome import Prediction

__all__ = ["EXPERIMENT", "judge"]

WATCHED = "ijepa-watched"

CLAIM = Claim(
    statement="A lower prediction loss and a stronger predictor align agents better; objectives that ask for "
    "view-invariant prediction have steadier maps; agents of one world align better than those of two.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, section D.5, testable "
    "predictions, for which it publishes no figures",
    assumed="the same environment and objective, latents that do not degenerate, paired states with bounded noise",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    """The usual agents are among those whose stability is asked."""
    scene, seeds = "smallnorb" if scale == "paper" else "rendered", range(seed, seed + PLANS[scale].seeds)
    return [
        *predictions_stability.trials(scale, scene, seeds),
        *predictions_loss.trials(scale, scene, seeds),
        *predictions_predictors.trials(scale, scene, seeds),
        *predictions_worlds.trials(scale, seeds),
    ]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    rows = EFFORT[scale].rows
    watched = [result for result in results if result.at["objective"] == WATCHED]
    return judge(
        [
            predictions_loss.judge(predictions_loss.meet_watched(watched, scale, rows), predictions_loss.steps(scale)),
            predictions_predictors.judge(predictions_predictors.meet_predictors(results, scale)),
            predictions_stability.judge(predictions_stability.meet_objectives(results, scale, rows)),
            predictions_worlds.judge(*predictions_worlds.meet_worlds(results, scale)),
        ]
    )


def judge(predictions: Sequence[Prediction]) -> Finding:
    """All must hold."""
    return Finding(
        combined([one.outcome for one in predictions]),
        " ".join(f"{one.title.capitalize()}: {one.outcome}. {one.sentence}" for one in predictions)
        + " A prediction holds where Student's interval over seeds, at 95% for all of its numbers at once, has the "
        "predicted sign for every number that it names, in part where it has for some, and not where it has for none "
        "and the opposite for one; otherwise it is undecided, as is what latents gain that vary along less than "
        f"{ENOUGH:g} directions. No figures are published for these.",
        short=_short(predictions),
        verdicts=tuple(verdict for one in predictions for verdict in one.verdicts),
        figures=tuple(figure for one in predictions for figure in one.figures),
        tables=tuple(table for one in predictions for table in one.tables),
    )


def _short(predictions: Sequence[Prediction]) -> str:
    counts = {
        name: sum(one.outcome == name for one in predictions)
        for name in ("holds", "holds in part", "does not hold", "undecided")
    }
    words = {"holds": "hold", "holds in part": "in part", "does not hold": "do not", "undecided": "undecided"}
    return f"of {len(predictions)}: " + ", ".join(f"{count} {words[name]}" for name, count in counts.items() if count)


EXPERIMENT = Experiment("social-predictions", "What the theory predicts of agents", CLAIM, trials, conclude)
