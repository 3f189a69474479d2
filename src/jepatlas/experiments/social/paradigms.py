"""Does alignment need prediction? The same views, networks and steps with different objectives.

A high R² says little about latents that hardly vary, so the number of directions is reported beside it, and what
pixels and untrained networks align.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jepatlas.core.figures import Bars, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import mean_interval
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Outcome
from jepatlas.experiments.engine.seed_tables import mean_and_interval_with_groups, mean_and_range, spread
from jepatlas.experiments.social.agent_pairs import NAMES, pair_results
from jepatlas.experiments.social.agent_settings import OBJECTIVES, PLANS
from jepatlas.experiments.social.decisions import (
    MIN_DIRECTIONS,
    collapsed_seeds,
    informative,
    mark_collapsed,
    measured_groups,
    seed_differences,
)
from jepatlas.experiments.social.pair_figures import OVER_SEEDS, r2_figure
from jepatlas.experiments.social.pair_measures import EFFORT, measure_pair
from jepatlas.experiments.social.sensitivity import light_table, measure_light, measure_probe, probe_table
from jepatlas.experiments.social.trained_agents import agent_trials

__all__ = ["EXPERIMENT", "judge"]

Kinds = Mapping[str, Sequence[Result]]
OURS = "ijepa"
STUDIED: dict[Scale, tuple[str, ...]] = {
    "tiny": ("ijepa", "mae", "simclr"),
    "small": ("ijepa", "lejepa", "mae", "autoencoder", "simclr", "byol", "moco-v3", "dino"),
    "paper": tuple(OBJECTIVES),
}
PUBLISHED = {
    "ijepa": ((0.891, 0.872, 0.27), (0.489, 0.584, 0.033)),
    "mae": ((0.882, 0.845, 0.31), (0.409, 0.450, 0.028)),
    "autoencoder": ((0.611, 0.593, 0.58), None),
    "simclr": ((0.678, 0.641, 0.52), (0.437, 0.558, 0.072)),
    "barlow-twins": (None, (0.452, 0.561, 0.058)),
    "dino": ((0.811, 0.913, 0.046), (0.283, 0.391, 0.102)),
    "moco-v3": ((0.987, 0.994, 0.125), (0.358, 0.521, 0.086)),
    "ibot": ((0.851, 0.916, 0.130), (0.283, 0.391, 0.102)),
    "swav": (None, (0.312, 0.428, 0.094)),
    "dinov2": (None, (0.441, 0.542, 0.045)),
}
"""R², DSC and NOS@10 on smallNORB and on ImageNet."""

CLAIM = Claim(
    statement="Agents trained by I-JEPA align better than those trained by reconstruction, contrast or "
    "self-distillation.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, Tables 1, 2 and 10",
    measured="R² on smallNORB: I-JEPA .891, MAE .882, SimCLR .678, autoencoder .611, but MoCo v3 .987; on ImageNet "
    ".489 against at most .452 (and .873 in another table)",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    scene = "smallnorb" if scale == "paper" else "rendered"
    seeds = range(seed, seed + PLANS[scale].seeds)
    return [trial for objective in STUDIED[scale] for trial in agent_trials(scale, scene, seeds, objective)]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    effort = EFFORT[scale]
    return judge(
        pair_results(
            results, lambda pair: measure_pair(pair, effort) | measure_light(pair, effort) | measure_probe(pair)
        )
    )


def judge(pairs: Sequence[Result]) -> Finding:
    """By paired differences of R² over seeds, I-JEPA must significantly exceed all others; one that significantly
    exceeds it refutes the claim. Objectives that collapsed at some seed are excluded."""
    kinds, _ = measured_groups(pairs, "objective", "r2")
    collapsed = {name for name, runs in kinds.items() if collapsed_seeds(runs)}
    ours = kinds.get(OURS, [])
    rivals = [name for name in kinds if name != OURS]
    ahead = {name: mean_interval(seed_differences(ours, kinds[name], "r2"), comparisons=len(rivals)) for name in rivals}
    counts = {name: name not in collapsed and OURS not in collapsed for name in rivals}
    above = [name for name, found in ahead.items() if counts[name] and found.low > 0]
    below = [name for name, found in ahead.items() if counts[name] and found.high < 0]
    beyond = [name for name, runs in kinds.items() if name not in collapsed and _beyond_controls(runs, len(kinds))]
    excluded = f" Excluded because latents collapsed: {_listed(sorted(collapsed))}." if collapsed else ""
    prefix = "I-JEPA collapsed, " if OURS in collapsed else "I-JEPA "
    return Finding(
        _outcome(above, below, rivals),
        f"R² of I-JEPA is significantly above that of {_listed(above)} and below that of {_listed(below)}. "
        f"Significantly beyond the best control: {_listed(beyond)}.{excluded}",
        short=f"{prefix}significantly above {len(above)}, below {len(below)} of {len(ahead)}",
        verdicts=tuple(informative(_verdict(name, found), counts[name]) for name, found in ahead.items()),
        figures=(_r2_figure(kinds, collapsed),),
        tables=(_scores_table(kinds), *light_table(kinds), *probe_table(kinds), _collapsed_table(pairs)),
    )


def _outcome(above: Sequence[str], below: Sequence[str], rivals: Sequence[str]) -> Outcome:
    if below:
        return "does not hold"
    if not above:
        return "undecided"
    return "holds" if len(above) == len(rivals) else "holds in part"


def _beyond_controls(runs: Sequence[Result], among: int) -> bool:
    margins = [mean_and_interval_with_groups(runs, unit, among=among) for unit in ("beyond", "beyond_raw")]
    return all(margin.low > 0 for margin in margins)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _verdict(name: str, found: Estimate) -> Verdict:
    return Verdict.judge(
        f"r2_over_{name}",
        found,
        direction="higher",
        threshold=0.0,
        good=f"I-JEPA agents align better than {name} agents.",
        bad=f"I-JEPA agents do not significantly align better than {name} agents.",
    )


def _r2_figure(kinds: Kinds, collapsed: set[str]) -> Bars:
    published = []
    for name in kinds:
        smallnorb, _ = PUBLISHED.get(name, (None, None))
        published.append(smallnorb[0] if smallnorb else np.nan)
    note = f"{OVER_SEEDS}; dashes: published for smallNORB."
    return r2_figure(
        "Held-out R² between two views, by objective",
        {f"{name}*" if name in collapsed else name: runs for name, runs in kinds.items()},
        legend=NAMES | {"agents": "trained"},
        published=published,
        note=f"{note} *: collapsed at some seed." if collapsed else note,
    )


def _scores_table(kinds: Kinds) -> Table:
    measures = {
        "r2": "R²",
        "r2_raw": "R², raw latents",
        "dsc": "DSC",
        "nos_10": "NOS@10",
        "beyond": "R² beyond the best control",
        "beyond_raw": "R², raw latents, beyond the best control",
        "cka": "CKA",
    }
    columns = [
        "objective",
        *measures.values(),
        "largest p",
        "directions",
        "training, 10¹² FLOPs",
        "published, smallNORB",
        "published, ImageNet",
    ]
    rows = []
    for name, runs in kinds.items():
        smallnorb, imagenet = PUBLISHED.get(name, (None, None))
        rows.append(
            [
                mark_collapsed(name, runs),
                *(_spread(runs, key) for key in measures),
                f"{mean_and_range(runs, 'p_r2').high:.2f}",
                _spread(runs, "directions", 1),
                f"{mean_and_range(runs, 'flops').value / 1e12:.2f}",
                _published(smallnorb),
                _published(imagenet),
            ]
        )
    return Table("Mean ± standard deviation over seeds; published are R², DSC, NOS@10", columns, rows)


def _spread(runs: Sequence[Result], key: str, digits: int = 3) -> str:
    return spread([run.value(key) for run in runs], digits)


def _published(figures: tuple[float, ...] | None) -> str:
    return "–" if figures is None else " ".join(map(str, figures))


def _collapsed_table(pairs: Sequence[Result]) -> Table:
    rows = []
    for pair in pairs:
        if not pair.value("directions") >= MIN_DIRECTIONS:
            rows.append([pair.at["objective"], pair.at["seed"], pair.status, f"{pair.value('directions'):.1f}"])
    title = f"Pairs that did not finish, or whose latents vary along fewer than {MIN_DIRECTIONS:g} directions"
    return Table(title, ["objective", "seed", "agents", "directions"], rows)


EXPERIMENT = Experiment("social-paradigms", "What agents learn by, and how they align", CLAIM, trials, conclude)
