"""A student that is told what a teacher makes of states that both have seen: does it learn sooner than alone?

The teacher saw one view; students see the other, all from the same weights and batches: alone, by
migration (a map fitted in closed form as they go), by distilling a probe's logits, by distilling latents through a
trained head, and by migration from the teacher's latents of other states: what that gains, no teacher gave. The rate of
students is constant after its rise, because under a falling one an accuracy depends on when training is to end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.records import Verdict
from jepatlas.core.stats import mean_interval
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Outcome, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import geometric_mean_and_interval, mean_and_range
from jepatlas.experiments.social.by_scene import by_scene
from jepatlas.experiments.social.race import (
    LEAST,
    SOONER,
    collapsed,
    decidable,
    final_gain,
    gain_verdict,
    heard,
    learned,
    sooner,
)
from jepatlas.experiments.social.race_shown import curves_figure, race_tables
from jepatlas.experiments.social.race_words import (
    collapse_sentence,
    cost_sentence,
    final_sentence,
    scratch_sentence,
    why_undecidable,
)
from jepatlas.experiments.social.racers import RACES, WEIGHT, racer
from jepatlas.experiments.social.sharing import probes_said, probes_table
from jepatlas.experiments.social.teaching_runs import run_migration

__all__ = ["EXPERIMENT"]

WAYS = {
    "scratch": "from scratch",
    "migration": "migration",
    "logits": "distilled logits",
    "latents": "distilled latents",
    "shuffled": "migration, other states",
}
BESIDE = {"scratch": "that of one that learned alone", "shuffled": "that of one that was told of other states"}
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
    race = RACES[scale]
    return [
        Trial(
            {"scene": race.scene, "seed": s},
            run_migration,
            {
                "scene": race.scene,
                "world": to_plain(race.world),
                "threshold": race.threshold,
                "pairs": race.pairs,
                "recipes": [racer(scale, 0, s, watched=False), racer(scale, 1, s)],
                "weight": WEIGHT,
                "memory": race.memory,
                "replicates": race.replicates,
            },
        )
        for s in range(seed, seed + race.seeds)
    ]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    return by_scene(results, judge)


def judge(results: Sequence[Result]) -> Finding:
    """Of seeds at which training alone learned something that a probe reads; from fewer than two nothing follows."""
    finished = [r for r in results if r.status == "finished"]
    left = learned(finished)
    raced = len(left) >= LEAST
    map_share = mean_and_range(left, "migration_map").value
    costs = f" {cost_sentence(left, WAYS)} Of these operations the map takes {map_share:.2%}."
    return Finding(
        _outcome(left) if decidable(finished) else "undecided",
        f"{scratch_sentence(finished, 'Training alone goes')}{costs if raced else ''}"
        f"{final_sentence(finished, 'migration', 'By migration,', BESIDE)}"
        f"{final_sentence(finished, 'logits', 'With distilled logits,', {'scratch': BESIDE['scratch']})}"
        f"{collapse_sentence(finished, WAYS)} A probe of the teacher on the student that learned alone: "
        f"{probes_said(finished)}.",
        short=f"{geometric_mean_and_interval(left, 'migration_times').value:.2f}× the operations; distilled "
        f"{geometric_mean_and_interval(left, 'logits_times').value:.2f}×"
        if decidable(finished)
        else why_undecidable(finished),
        verdicts=(
            gain_verdict(finished),
            *((_verdict(left),) if raced else ()),
            *(final_gain(finished, "migration", other) for other in BESIDE),
            final_gain(finished, "logits", "scratch"),
        ),
        figures=(curves_figure(finished, WAYS, "A probe's accuracy as students learn"),),
        tables=(*race_tables(results, WAYS, PUBLISHED), probes_table(results)),
    )


def _outcome(left: Sequence[Result]) -> Outcome:
    """It holds where migration is cheaper than training alone, than distilled logits and than migration from other
    states, beyond doubt; in part where it is cheaper than training alone and than the last. It does not where it is
    surely dearer than either of these two: then it is not what the teacher knows of the states that helps. What
    collapsed decides nothing."""
    cheaper = sooner(left, "migration", "scratch", "times", among=2)
    taught, distilled = (_cheaper_than(left, name, among=2) for name in ("shuffled", "logits"))
    if cheaper and taught:
        return "holds" if distilled else "holds in part"
    return "does not hold" if False in (cheaper, taught) else "undecided"


def _cheaper_than(results: Sequence[Result], other: str, among: int) -> bool | None:
    """Paired by seed; one that did not get there is charged less than it would need, which does not help migration.
    None where seeds do not tell, or where latents of either collapsed."""
    if collapsed(results, "migration") or collapsed(results, other):
        return None
    ratios = np.array([r.value("migration_flops") / r.value(f"{other}_flops") for r in results])
    found = mean_interval(np.log(ratios[np.isfinite(ratios)]), comparisons=among)
    return True if found.high < 0 else False if found.low > 0 else None


def _verdict(results: Sequence[Result]) -> Verdict:
    return heard(
        results,
        "migration",
        "scratch",
        Verdict.judge(
            "migration_times",
            geometric_mean_and_interval(results, "migration_times"),
            direction="lower",
            threshold=SOONER,
            null=geometric_mean_and_interval(results, "shuffled_times").value,
            good="A teacher's latents save operations.",
            bad="A teacher's latents do not surely save operations.",
        ),
    )


EXPERIMENT = Experiment("social-migration", "A student and its teacher's latents", CLAIM, trials, conclude)
