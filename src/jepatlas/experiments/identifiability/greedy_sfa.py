"""One slow function at a time against all at once, over n; and what distinct rates are good for.

    simultaneous   the n leading eigenfunctions
    deflation      one at a time, each uncorrelated with those before (what "greedy SFA" says)
    xSFA           one at a time, with all products of up to three earlier ones removed from the features before

Rates: `equal`; `distinct`, inside the window ρ_min > ρ_max² in which no harmonic is slower than a coordinate; `wide`,
outside of it. LeJEPA is trained beside them: its loss does not change when the latents are rotated, so it can find
distinct coordinates only up to a rotation; linear SFA of its latents turns them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_interval, mean_and_range, select
from jepatlas.experiments.identifiability.greedy_sfa_runs import ENDS, METHODS, SCALES, SEQUENTIAL, trials

__all__ = ["EXPERIMENT"]

MARGIN = 0.02  # of R²: falling behind by less is no degradation
NAMES = {"xsfa": "xSFA", "lejepa": "LeJEPA", "turned": "LeJEPA, then linear SFA"}

CLAIM = Claim(
    statement="Sequential extraction, as in slow feature analysis, accumulates errors and degrades beyond a "
    "few dimensions; simultaneous extraction does not. Distinct rates identify each coordinate, equal ones only a "
    "rotation.",
    source="When Does LeJEPA Learn a World Model?, the appendix on slow feature analysis, and a review of it",
    proven="(for the exact optimum) a permutation by sequential extraction with distinct rates, a rotation by "
    "simultaneous extraction with equal ones",
)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """A sequential method degrades where, at the largest n and inside the window, its R² is behind the simultaneous one
    by more than MARGIN, with an interval over seeds above zero. It holds where both do, and MCC is clearly higher with
    distinct rates than with equal ones; it does not where none of the three is so."""
    dims, spectral = SCALES[scale].dims, select(results, kind="spectral")
    gaps = {
        (rates, method): mean_and_interval(select(spectral, rates=rates, dim=dims[-1]), f"behind_{method}")
        for rates, method in product(ENDS, SEQUENTIAL)
    }
    degrades = {
        method: any(
            gaps[rates, method].value > MARGIN and gaps[rates, method].low > 0 for rates in ("equal", "distinct")
        )
        for method in SEQUENTIAL
    }
    mcc = {rates: mean_and_interval(select(spectral, rates=rates, dim=dims[-1]), "mcc_simultaneous") for rates in ENDS}
    parts = [*degrades.values(), mcc["distinct"].low > mcc["equal"].high]
    r2 = {
        key: mean_and_range(select(spectral, rates=key[0], dim=key[1]), "r2_simultaneous").value
        for key in product(ENDS, dims)
    }
    trained = select(results, kind="trained", rates="distinct")
    plain, turned = (mean_and_range(trained, f"mcc_{name}").value for name in ("lejepa", "turned"))
    return Finding(
        "holds" if all(parts) else "holds in part" if any(parts) else "does not hold",
        f"At n = {dims[-1]} and inside the window plain deflation is behind the simultaneous fit by "
        f"{_listed(gaps, 'deflation')} in R², xSFA by {_listed(gaps, 'xsfa')}; the simultaneous fit itself goes from "
        f"{r2['equal', dims[0]]:.3f} at n = {dims[0]} to {r2['equal', dims[-1]]:.3f}, as the features become too few. "
        f"Outside the window it has {r2['wide', dims[-1]]:.3f} and xSFA, which removes the harmonics, "
        f"{-gaps['wide', 'xsfa'].value:+z.3f} on that. MCC is {mcc['distinct'].value:z.3f} with distinct rates and "
        f"{mcc['equal'].value:.3f} with equal ones. LeJEPA, on distinct rates, has {plain:.3f}, and {turned:.3f} after "
        "linear SFA of its latents.",
        short=f"n = {dims[-1]}: xSFA behind by {gaps['equal', 'xsfa'].value:z.3f} of R²",
        verdicts=tuple(_verdict(*key, gap) for key, gap in gaps.items()),
        figures=(_figure(results, dims),),
        tables=(
            _table(spectral, METHODS, "Spectral runs"),
            _table(select(results, kind="trained"), ("lejepa", "turned"), "Trained runs"),
        ),
    )


def _listed(gaps: dict[tuple[str, str], Estimate], method: str) -> str:
    return " and ".join(f"{gaps[rates, method].value:z.3f} ({rates} rates)" for rates in ("equal", "distinct"))


def _verdict(rates: str, method: str, gap: Estimate) -> Verdict:
    return Verdict.judge(
        f"behind_{rates}_{method}",
        gap,
        direction="lower",
        threshold=MARGIN,
        good="At the largest n, one at a time is as good as all at once (R² of the latter less that of the former).",
        bad="At the largest n, one at a time may be worse than all at once (R² of the latter less that of the former).",
    )


def _figure(results: Sequence[Result], dims: Sequence[int]) -> dict[str, Any]:
    def line(method: str, rates: str, name: str, label: str) -> dict[str, Any]:
        found = [
            mean_and_range(select(results, kind="spectral", rates=rates, dim=dim), f"{name}_{method}") for dim in dims
        ]
        return curve(label, dims, found)

    panels = [
        {
            "title": f"{rates} rates, ρ from {ends[0]} to {ends[1]}",
            "series": [line(method, rates, "r2", NAMES.get(method, method)) for method in METHODS],
        }
        for rates, ends in ENDS.items()
    ]
    matched = [
        line(m, r, "mcc", f"{NAMES.get(m, m)}, {r}")
        for m, r in product(("simultaneous", "xsfa"), ("equal", "distinct"))
    ]
    trained = select(results, kind="trained", rates="distinct")
    matched += [
        curve(f"{NAMES[m]}, distinct", [trained[0].at["dim"]], [mean_and_range(trained, f"mcc_{m}")], points=True)
        for m in ("lejepa", "turned")
    ]
    panels.append({"title": "MCC: each coordinate by itself", "series": matched})
    return {
        "kind": "curves",
        "title": "One at a time, and all at once",
        "x_label": "dimension n",
        "log_x": True,
        "y_label": "held-out R² (last: MCC)",
        "panels": panels,
    }


def _table(results: Sequence[Result], methods: Sequence[str], title: str) -> dict[str, Any]:
    columns = {
        f"{label}, {NAMES.get(m, m)}": f"{name}_{m}"
        for (name, label), m in product((("r2", "R²"), ("mcc", "MCC")), methods)
    }
    rows = [
        [
            *(result.at[name] for name in ("rates", "dim", "seed")),
            result.status,
            *(cell(result.estimate(name)) for name in columns.values()),
        ]
        for result in results
    ]
    return {"title": title, "columns": ["rates", "n", "seed", "status", *columns], "rows": rows}


EXPERIMENT = Experiment("greedy-sfa", "One slow feature at a time, or all at once", CLAIM, trials, conclude)
