"""Does a student that is taught a teacher's latents of shared states learn sooner than alone?

The teacher sees one view; students see the other, all with the same initial weights and batches: alone, by migration
(a map fitted in closed form during training), by distilling a probe's logits, by distilling latents through a trained
head, and, as a control, by migration from the teacher's latents of other states. The learning rate is constant after
warm-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jepatlas.core.records import Verdict
from jepatlas.core.stats import mean_interval
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Outcome
from jepatlas.experiments.engine.seed_tables import cell, geometric_mean_and_interval
from jepatlas.experiments.social.decisions import decide_by_scene
from jepatlas.experiments.social.probe_sharing import probes_table
from jepatlas.experiments.social.race_rules import (
    Decision,
    RaceRule,
    collapsed_seeds_of,
    cost_verdict,
    judge_race,
    significantly_cheaper,
)
from jepatlas.experiments.social.race_trials import migration_trials

__all__ = ["EXPERIMENT"]

WAYS = {
    "scratch": "from scratch",
    "migration": "migration",
    "logits": "distilled logits",
    "latents": "distilled latents",
    "shuffled": "migration, other states",
}
PUBLISHED = {"scratch": ("150", "1.00"), "logits": ("90", "0.62"), "migration": ("35", "0.28")}

CLAIM = Claim(
    statement="A student that is drawn to a teacher's latents of shared states, through a map fitted in turn with its "
    "steps, reaches a probe's accuracy at a fraction of the cost of training alone, and below that of distillation.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, sections 3.7 and 4.6, "
    "Algorithm 2 and Table 9",
    measured="85% after 35 epochs and .28× the FLOPs, not 150; distillation 90 epochs, .62×; a shared probe 51.7%, "
    "untranslated 49.6%, distilled 50.6%; the teacher's own training is not counted",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    return migration_trials(scale, seed)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    return decide_by_scene(results, _judge)


def _judge(results: Sequence[Result]) -> Finding:
    finding = judge_race(results, RULE)
    return replace(finding, tables=(*finding.tables, probes_table(results)))


def _decide(counted: Sequence[Result]) -> Decision:
    migration, logits = (geometric_mean_and_interval(counted, f"{name}_times") for name in ("migration", "logits"))
    return Decision(
        _outcome(counted),
        f"Operations relative to training alone: migration {cell(migration, 2)}, logits {cell(logits, 2)}.",
        f"{migration.value:.2f}× the operations; distilled {logits.value:.2f}×",
    )


def _outcome(counted: Sequence[Result]) -> Outcome:
    """Holds if migration is significantly cheaper than training alone, than migration from other states, and than
    distilled logits; in part without the last. Does not hold if it is significantly more expensive than either of the
    first two."""
    alone = significantly_cheaper(counted, "migration", "scratch", "times", among=2)
    control, distilled = (_cheaper_than(counted, name, among=2) for name in ("shuffled", "logits"))
    if alone and control:
        return "holds" if distilled else "holds in part"
    return "does not hold" if False in (alone, control) else "undecided"


def _cheaper_than(results: Sequence[Result], other: str, among: int) -> bool | None:
    """Paired by seed. None if the seeds do not decide, or if latents of either way collapsed.

    A way that did not reach the threshold is charged less than it would need, which does not favour migration.
    """
    if collapsed_seeds_of(results, "migration") or collapsed_seeds_of(results, other):
        return None
    ratios = np.array([result.value("migration_flops") / result.value(f"{other}_flops") for result in results])
    found = mean_interval(np.log(ratios[np.isfinite(ratios)]), comparisons=among)
    if found.high < 0:
        return True
    return False if found.low > 0 else None


def _costs(results: Sequence[Result]) -> list[Verdict]:
    cost = geometric_mean_and_interval(results, "migration_times")
    null = geometric_mean_and_interval(results, "shuffled_times").value
    return [cost_verdict(results, "migration", "scratch", ("migration_times", cost), null=null)]


RULE = RaceRule(
    WAYS,
    PUBLISHED,
    "Probe accuracy of students during training",
    _decide,
    _costs,
    compared=(("migration", "scratch"), ("migration", "shuffled"), ("logits", "scratch")),
)
EXPERIMENT = Experiment("social-migration", "A student and its teacher's latents", CLAIM, trials, conclude)
