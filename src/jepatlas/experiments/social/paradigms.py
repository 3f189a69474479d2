"""Does it take prediction? The same two views, networks and steps; agents differ by what they learn by.

A high R² says little of latents that hardly vary, so the number of directions they vary along stands beside it, and
beside all what pixels and untrained networks align.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import mean_interval
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import grouped, mean_and_interval_with_groups, mean_and_range, spread
from jepatlas.experiments.social.agents import PLANS, agents
from jepatlas.experiments.social.charts import CONTROLS, NAMES
from jepatlas.experiments.social.collapse import ENOUGH, collapsed_at, unheard
from jepatlas.experiments.social.light import light_sentence, light_table, of_light
from jepatlas.experiments.social.measures import EFFORT, measured
from jepatlas.experiments.social.meetings import meetings
from jepatlas.experiments.social.objectives import OBJECTIVES
from jepatlas.experiments.social.paradigms_shown import bars_figure, lost_table, scores_table
from jepatlas.experiments.social.probed import probe_table, probed
from jepatlas.experiments.social.rules import gaps

__all__ = ["EXPERIMENT", "judge"]

OURS = "ijepa"
STUDIED: dict[Scale, tuple[str, ...]] = {
    "tiny": ("ijepa", "mae", "simclr"),
    "small": ("ijepa", "lejepa", "mae", "autoencoder", "simclr", "byol", "moco-v3", "dino"),
    "paper": tuple(OBJECTIVES),
}
CHOSEN = (
    "At this scale the learning rate, I-JEPA's predictor and the time constant of slow copies (EMA) were chosen on "
    "I-JEPA, by directions and loss of held-out images; the same rate serves all objectives."
)
CLAIM = Claim(
    statement="Agents trained by I-JEPA align better than those trained by reconstruction, contrast or "
    "self-distillation.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, Tables 1, 2 and 10",
    measured="R² on smallNORB: I-JEPA .891, MAE .882, SimCLR .678, autoencoder .611, but MoCo v3 .987; on ImageNet "
    ".489 against at most .452 (and .873 in another table)",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    scene, seeds = "smallnorb" if scale == "paper" else "rendered", range(seed, seed + PLANS[scale].seeds)
    return [trial for objective in STUDIED[scale] for trial in agents(scale, scene, seeds, objective)]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    effort = EFFORT[scale]
    found = judge(meetings(results, lambda met: measured(met, effort) | of_light(met, effort) | probed(met)))
    return found if scale == "paper" else replace(found, sentence=f"{found.sentence} {CHOSEN}")


def judge(pairs: Sequence[Result]) -> Finding:
    """By the difference in R² at the same seeds: I-JEPA must be surely above all others, and is refuted by one that is
    surely above it. What collapsed at some seed is evidence neither for nor against, and beyond no control."""
    kinds = {name: runs for (name,), runs in grouped(pairs, "objective").items() if mean_and_range(runs, "r2").n}
    flat = [name for name, runs in kinds.items() if collapsed_at(runs)]
    rivals = len(kinds) - (OURS in kinds)
    ahead = {
        name: mean_interval(gaps(kinds.get(OURS, []), runs, "r2"), comparisons=rivals)
        for name, runs in kinds.items()
        if name != OURS
    }
    higher = [name for name, found in ahead.items() if found.low > 0]
    lower = [name for name, found in ahead.items() if found.high < 0]
    above, below = ([name for name in side if OURS not in flat and name not in flat] for side in (higher, lower))
    beyond = [
        name
        for name, runs in kinds.items()
        if name not in flat
        and all(
            mean_and_interval_with_groups(runs, unit, among=len(kinds)).low > 0 for unit in ("beyond", "beyond_raw")
        )
    ]
    return Finding(
        "undecided"
        if not ahead or not (above or below)
        else "does not hold"
        if below
        else "holds"
        if len(above) == len(ahead)
        else "holds in part",
        f"Held-out R², mean ± standard deviation over seeds: {_listed(kinds)}. Controls: {_controls(kinds)}. By paired "
        f"differences over seeds, of the same held-out states, R² of I-JEPA is surely above that of {_names(higher)} "
        f"and surely below that of {_names(lower)} (at 95% for all {rivals} comparisons at once). {_collapsed(flat)}So "
        f"I-JEPA counts as above {_names(above)} and below {_names(below)}. Surely beyond the best control, "
        f"standardised and as they are, over seeds and held-out groups: {_names(beyond)}.{light_sentence(kinds)}",
        short=f"I-JEPA {'collapsed, ' if OURS in flat else ''}surely above {len(above)}, below {len(below)} of "
        f"{len(ahead)}",
        verdicts=tuple(_verdict(name, found, counts=not {name, OURS} & {*flat}) for name, found in ahead.items()),
        figures=(bars_figure(kinds, flat),),
        tables=(scores_table(kinds), *light_table(kinds), *probe_table(kinds), lost_table(pairs)),
    )


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _collapsed(flat: Sequence[str]) -> str:
    return (
        (
            f"Collapsed at some seed, with latents that vary along less than {ENOUGH:g} directions, and therefore no "
            f"evidence for or against, nor beyond controls: {_names(flat)}. "
        )
        if flat
        else ""
    )


def _listed(kinds: Mapping[str, Sequence[Result]]) -> str:
    order = sorted(kinds, key=lambda name: -mean_and_range(kinds[name], "r2").value)
    return ", ".join(f"{name} {spread([run.value('r2') for run in kinds[name]])}" for name in order)


def _controls(kinds: Mapping[str, Sequence[Result]]) -> str:
    first = next(iter(kinds.values()), [])
    return ", ".join(f"{NAMES[name]} {mean_and_range(first, f'r2_{name}').value:.3f}" for name in CONTROLS)


def _verdict(name: str, found: Estimate, counts: bool) -> Verdict:
    return unheard(
        Verdict.judge(
            f"r2_over_{name}",
            found,
            direction="higher",
            threshold=0.0,
            good=f"I-JEPA agents align better than {name} agents.",
            bad=f"I-JEPA agents do not surely align better than {name} agents.",
        ),
        counts,
    )


EXPERIMENT = Experiment("social-paradigms", "What agents learn by, and how they align", CLAIM, trials, conclude)
