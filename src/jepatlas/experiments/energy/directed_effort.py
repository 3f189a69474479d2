"""Proposition 1: asymmetry is generic, from directed admissibility (i) or from anisotropic effort (ii).

    index = mean over pairs of |E(x, y) − E(y, x)| / (E(x, y) + E(y, x)),   1 where there is a way in one direction only

Each world is made at several strengths beginning with its reversible twin: doors that open both ways, no current,
equal prices. Worlds are of one source only, but for the torrent: a current at least as fast as the vehicle directs
admissibility and effort alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.energy.directed_effort_runs import FAMILIES, run
from jepatlas.experiments.energy.exact_trials import trials_over
from jepatlas.experiments.energy.exact_worlds import Size
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_range, select

__all__ = ["EXPERIMENT"]

ROUNDING = 1e-6  # solvers stop at changes of that size
CLEAR = 0.05
"""The index that the strongest world must reach in every seed; weaker ones must only exceed its own error."""

CLAIM = Claim(
    statement="Where admissibility is directed, or local effort depends on the direction, in general "
    "E(x, y) ≠ E(y, x).",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, Proposition 1",
    assumed="nothing further; the paper gives no proof and no measure of how much",
)

SCALES = {
    "tiny": (Size(states=12, side=6, places=4, resolution=11, sets=3), 1),
    "small": (Size(states=150, side=12, places=8, resolution=31, sets=5), 3),
    "paper": (Size(states=256, side=16, places=24, resolution=81, sets=12), 10),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    return trials_over("family", FAMILIES, run, SCALES[scale], seed)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    found = {name: select(results, family=name) for name in FAMILIES}
    agreed = {name: _reversible(name, group) and _directed(name, group) for name, group in found.items()}
    rising = [name for name, group in found.items() if _rises(name, group)]
    by_source = {
        source: [agreed[name] for name, family in FAMILIES.items() if family.source == source]
        for source in dict.fromkeys(family.source for family in FAMILIES.values())
    }
    counts = ", ".join(f"{sum(rules)} of {len(rules)} by {source}" for source, rules in by_source.items())
    top = {name: mean_and_range(group, f"asymmetry_{FAMILIES[name].strengths[-1]:g}") for name, group in found.items()}
    least, most = (chosen(top, key=lambda name: top[name].value) for chosen in (min, max))
    return Finding(
        "holds" if all(agreed.values()) else "holds in part" if any(agreed.values()) else "does not hold",
        f"Symmetric in the reversible twin and asymmetric at every other strength: {counts}. At the largest strength "
        f"the index goes from {top[least].value:.2f} ({least}) to {top[most].value:.2f} ({most}); it never falls with "
        f"the strength in {len(rising)} of {len(found)} worlds.",
        short=f"{sum(agreed.values())} of {len(agreed)} worlds; index {top[least].value:.2f}–{top[most].value:.2f}",
        verdicts=(_verdict(agreed),),
        figures=(_figure(found),),
        tables=(_table(found),),
    )


def _allowed(result: Result, strength: float) -> float:
    return max(ROUNDING, result.value(f"error_{strength:g}"))


def _reversible(name: str, group: Sequence[Result]) -> bool:
    """NaN, of a trial that came to nothing, is neither symmetric nor asymmetric."""
    first = FAMILIES[name].strengths[0]
    return all(result.value(f"asymmetry_{first:g}") <= _allowed(result, first) for result in group)


def _directed(name: str, group: Sequence[Result]) -> bool:
    strengths = FAMILIES[name].strengths
    above = [result.value(f"asymmetry_{s:g}") > _allowed(result, s) for result in group for s in strengths[1:]]
    clear = [result.value(f"asymmetry_{strengths[-1]:g}") >= CLEAR for result in group]
    return all(above) and all(clear)


def _rises(name: str, group: Sequence[Result]) -> bool:
    means = [mean_and_range(group, f"asymmetry_{strength:g}").value for strength in FAMILIES[name].strengths]
    return bool((np.diff(means) >= -ROUNDING).all())


def _verdict(agreed: dict[str, bool]) -> Verdict:
    share = float(np.mean(list(agreed.values())))
    return Verdict.judge(
        "directed",
        Estimate(share, share, share, len(agreed)),
        direction="higher",
        threshold=1.0,
        good="Every directed world has an asymmetric energy, and every reversible twin a symmetric one.",
        bad=f"Not so: {', '.join(name for name, agrees in agreed.items() if not agrees)}.",
    )


def _figure(found: dict[str, list[Result]]) -> dict[str, Any]:
    panels = []
    for what in dict.fromkeys(family.what for family in FAMILIES.values()):
        series = [
            curve(
                name,
                FAMILIES[name].strengths,
                [mean_and_range(group, f"asymmetry_{s:g}") for s in FAMILIES[name].strengths],
            )
            for name, group in found.items()
            if FAMILIES[name].what == what
        ]
        panels.append({"title": f"by {what}", "series": series})
    return {
        "kind": "curves",
        "title": "Asymmetry against its cause",
        "x_label": "strength",
        "y_label": "index",
        "panels": panels,
    }


def _table(found: dict[str, list[Result]]) -> dict[str, Any]:
    rows = [
        [
            name,
            FAMILIES[name].source,
            f"{FAMILIES[name].what} {strength:g}",
            *(
                cell(mean_and_range(group, f"{key}_{strength:g}"))
                for key in ("asymmetry", "differing", "one_way", "error")
            ),
        ]
        for name, group in found.items()
        for strength in FAMILIES[name].strengths
    ]
    columns = [
        "world",
        "source",
        "strength",
        "index",
        "share of pairs that differ",
        "share one-way",
        "error of the index",
    ]
    return {"title": "Asymmetry, means over seeds [extremes]", "columns": columns, "rows": rows}


EXPERIMENT = Experiment("directed-effort", "Where the way back is not the way there", CLAIM, trials, conclude)
