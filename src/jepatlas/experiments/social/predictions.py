"""Predictions of Social-JEPA's theory that its paper leaves untested, each with its own outcome.

    loss          over checkpoints, a lower prediction loss goes with better alignment (`loss_and_alignment`)
    predictors    stronger predictors align better (`predictor_strength`)
    stability     objectives with view-invariant prediction have steadier maps (`map_stability`)
    worlds        agents of the same world align better than those of two (`common_worlds`)

`social-pairs` tests what it predicts about mismatched and few pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import combined
from jepatlas.experiments.engine.seed_tables import select
from jepatlas.experiments.social import (
    checkpoint_trials,
    common_worlds,
    loss_and_alignment,
    map_stability,
    predictor_strength,
)
from jepatlas.experiments.social.agent_settings import PLANS
from jepatlas.experiments.social.checkpoint_trials import CHECKPOINTED, checkpoint_steps
from jepatlas.experiments.social.pair_measures import EFFORT

__all__ = ["EXPERIMENT", "judge"]

SHORT_FORMS = {"holds": "hold", "holds in part": "in part", "does not hold": "do not", "undecided": "undecided"}

CLAIM = Claim(
    statement="A lower prediction loss and a stronger predictor align agents better; objectives that ask for "
    "view-invariant prediction have steadier maps; agents of one world align better than those of two.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, section D.5, testable "
    "predictions, for which it publishes no figures",
    assumed="the same environment and objective, latents that do not degenerate, paired states with bounded noise",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    """The usual agents are among those of `map_stability`."""
    scene = "smallnorb" if scale == "paper" else "rendered"
    seeds = range(seed, seed + PLANS[scale].seeds)
    return [
        *map_stability.trials(scale, scene, seeds),
        *checkpoint_trials.trials(scale, scene, seeds),
        *predictor_strength.trials(scale, scene, seeds),
        *common_worlds.trials(scale, seeds),
    ]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    rows = EFFORT[scale].rows
    checkpoints = checkpoint_steps(scale)
    checkpointed = loss_and_alignment.checkpoint_pairs(select(results, objective=CHECKPOINTED), scale, rows)
    same, different = common_worlds.world_pairs(results, scale)
    return judge(
        [
            loss_and_alignment.judge(checkpointed, checkpoints),
            predictor_strength.judge(predictor_strength.predictor_pairs(results, scale)),
            map_stability.judge(map_stability.stability_pairs(results, scale, rows)),
            common_worlds.judge(same, different),
        ]
    )


def judge(predictions: Sequence[Finding]) -> Finding:
    """The claim holds if all predictions hold."""
    counts = []
    for name, form in SHORT_FORMS.items():
        if count := sum(one.outcome == name for one in predictions):
            counts.append(f"{count} {form}")
    return Finding(
        combined([one.outcome for one in predictions]),
        " ".join(one.sentence for one in predictions),
        short=f"of {len(predictions)}: {', '.join(counts)}",
        verdicts=tuple(verdict for one in predictions for verdict in one.verdicts),
        figures=tuple(figure for one in predictions for figure in one.figures),
        tables=tuple(table for one in predictions for table in one.tables),
    )


EXPERIMENT = Experiment("social-predictions", "What the theory predicts of agents", CLAIM, trials, conclude)
