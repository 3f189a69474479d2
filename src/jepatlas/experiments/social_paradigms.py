"""Does it take prediction? The same two views, networks and steps; agents differ by what they learn by.

A high R² says little of latents that hardly vary, so the number of directions they vary along stands beside it, and
beside all what pixels and untrained networks align.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.base.records import Estimate, Verdict
from jepatlas.experiments.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.social_agents import OBJECTIVES, PLANS, agents
from jepatlas.experiments.social_charts import CONTROLS, NAMES
from jepatlas.experiments.social_measures import EFFORT, measured
from jepatlas.experiments.social_meetings import meetings
from jepatlas.experiments.tables import bars, cell, grouped, mean_over_seeds, over_seeds, student

__all__ = ["EXPERIMENT", "judge"]

OURS = "ijepa"
STUDIED: dict[Scale, tuple[str, ...]] = {
    "tiny": ("ijepa", "mae", "simclr"),
    "small": ("ijepa", "lejepa", "mae", "autoencoder", "simclr", "byol"),
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
    scene, seeds = "smallnorb" if scale == "paper" else "rendered", range(seed, seed + PLANS[scale].seeds)
    return [trial for objective in STUDIED[scale] for trial in agents(scale, scene, seeds, objective)]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    return judge(meetings(results, lambda met: measured(met, EFFORT[scale])))


def judge(pairs: Sequence[Result]) -> Finding:
    """By the difference in R² at the same seeds: I-JEPA must be surely above all others, and is refuted by one that is
    surely above it."""
    kinds = {name: runs for (name,), runs in grouped(pairs, "objective").items() if over_seeds(runs, "r2").n}
    ahead = {name: _ahead(kinds.get(OURS, []), runs) for name, runs in kinds.items() if name != OURS}
    above = [name for name, found in ahead.items() if found.low > 0]
    below = [name for name, found in ahead.items() if found.high < 0]
    return Finding(
        "undecided" if not ahead or not (above or below)
        else "does not hold" if below
        else "holds" if len(above) == len(ahead)
        else "holds in part",
        f"Held-out R²: {_listed(kinds)}. Controls: {_controls(kinds)}. By paired differences over seeds, I-JEPA is "
        f"surely above {', '.join(above) or 'none'} and surely below {', '.join(below) or 'none'}. Beyond the best "
        f"control by a mean whose interval excludes 0: {', '.join(_beyond(kinds)) or 'none'}.",
        short=f"I-JEPA surely above {len(above)}, surely below {len(below)} of {len(ahead)}",
        verdicts=tuple(_verdict(name, found) for name, found in ahead.items()),
        figures=(_figure(kinds),),
        tables=(_table(kinds), _lost(pairs)),
    )  # fmt: skip


def _ahead(ours: Sequence[Result], others: Sequence[Result]) -> Estimate:
    """How far R² is above that of another objective, at the same seeds."""
    theirs = {run.at["seed"]: run.value("r2") for run in others}
    gaps = np.array([run.value("r2") - theirs.get(run.at["seed"], np.nan) for run in ours])
    return student(gaps[np.isfinite(gaps)])


def _listed(kinds: Mapping[str, Sequence[Result]]) -> str:
    order = sorted(kinds, key=lambda name: -over_seeds(kinds[name], "r2").value)
    return ", ".join(f"{name} {cell(over_seeds(kinds[name], 'r2'))}" for name in order)


def _controls(kinds: Mapping[str, Sequence[Result]]) -> str:
    first = next(iter(kinds.values()), [])
    return ", ".join(f"{NAMES[name]} {over_seeds(first, f'r2_{name}').value:.3f}" for name in CONTROLS)


def _beyond(kinds: Mapping[str, Sequence[Result]]) -> list[str]:
    return [name for name, runs in kinds.items() if mean_over_seeds(runs, "beyond").low > 0]


def _verdict(name: str, found: Estimate) -> Verdict:
    return Verdict.judge(
        f"r2_over_{name}", found, direction="higher", threshold=0.0,
        good=f"I-JEPA agents align better than {name} agents.",
        bad=f"I-JEPA agents do not surely align better than {name} agents.",
    )  # fmt: skip


def _figure(kinds: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    shown = {"trained": "r2"} | {NAMES[name]: f"r2_{name}" for name in CONTROLS}
    series = [bars(title, [over_seeds(runs, name) for runs in kinds.values()]) for title, name in shown.items()]
    published = [(PUBLISHED.get(name, (None,))[0] or (np.nan,))[0] for name in kinds]
    return {"kind": "bars", "title": "Held-out R² between two views, by what the agents learn by",
            "names": list(kinds), "y_label": "held-out R²", "series": series, "published": published,
            "note": "Means over seeds, with the lowest and the highest; dashes: published for smallNORB."}  # fmt: skip


def _table(kinds: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    rows = [
        [name, *(cell(over_seeds(runs, key)) for key in ("r2", "r2_raw", "dsc", "nos_10", "beyond", "cka")),
         f"{max(run.value('p_r2') for run in runs):.2f}", cell(over_seeds(runs, "directions"), 1),
         f"{over_seeds(runs, 'flops').value / 1e12:.2f}", *(_published(name, number) for number in range(2))]
        for name, runs in kinds.items()
    ]  # fmt: skip
    columns = ["objective", "R²", "R², not standardised", "DSC", "NOS@10", "R² beyond the best control", "CKA",
               "largest p", "directions", "training, 10¹² FLOPs", "published, smallNORB",
               "published, ImageNet"]  # fmt: skip
    return {"title": "Means over seeds [lowest, highest]; published are R², DSC, NOS@10", "columns": columns,
            "rows": rows}  # fmt: skip


def _published(name: str, number: int) -> str:
    found = PUBLISHED.get(name, (None, None))[number]
    return "–" if found is None else " ".join(map(str, found))


def _lost(pairs: Sequence[Result]) -> dict[str, Any]:
    """Agents whose latents collapsed, and pairs that came to no number, are kept in sight."""
    rows = [[pair.at["objective"], pair.at["seed"], pair.status, f"{pair.value('directions'):.1f}"]
            for pair in pairs if not pair.value("directions") >= 2]  # fmt: skip
    return {"title": "Pairs whose latents vary along less than 2 directions, or that did not finish",
            "columns": ["objective", "seed", "agents", "directions"], "rows": rows}  # fmt: skip


EXPERIMENT = Experiment("social-paradigms", "What agents learn by, and how they align", CLAIM, trials, conclude)
