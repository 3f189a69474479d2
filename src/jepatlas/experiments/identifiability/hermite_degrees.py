"""The Hermite degrees of the learned map over the course of training: nonlinear parts must fade, and the loss must be
what the degrees make it.

What lies beyond the last degree D enters the loss by anything from 1 − ρ^(D+1) to 1, so the degrees predict a band. A
loss inside a wide band agrees with anything: the second half of the claim is tested only where the band is narrow. It
is once the map is nearly linear, and is not for the spiral untrained, of which nine tenths lie beyond degree 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale
from jepatlas.experiments.engine.seed_tables import curve, select
from jepatlas.experiments.identifiability.hermite_degrees_runs import DEGREE, trials

__all__ = ["EXPERIMENT"]

LINEAR = 0.97
NARROW, AGREES = 0.1, 0.05  # shares of the loss: the band's width; how far outside of it the loss may lie
SHOWN = (1, 2, 3)

CLAIM = Claim(
    statement="Training removes the nonlinear Hermite components of the learned map; the loss is 2 Σ (1 − ρ^d) v_d.",
    source="When Does LeJEPA Learn a World Model?, Theorem 1 and its spectral argument",
    proven="for the optimum: all variance is at degree one",
    assumed="Mehler's formula is an axiom in the Lean proof; nothing is said of the way there",
)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds where every run ends nearly linear, and the loss agrees with its degrees wherever that can be told; the
    end of every run must be among these. Agreement is asked of the whole interval of the distance."""
    del scale
    finished = [result for result in results if result.record.get("course")]
    ends = [result.record["course"][-1] for result in finished]
    starts = [result.record["course"][0] for result in finished]
    linear = [end["shares"]["1"] for end in ends]
    grown = [end["shares"]["1"] > start["shares"]["1"] for start, end in zip(starts, ends, strict=True)]
    moments = [moment for result in finished for moment in result.record["course"]]
    told = [moment for moment in moments if _width(moment) <= NARROW]
    off = f"{100 * max(map(_outside, told)):.1f}%" if told else "–"
    fades = min(linear) >= LINEAR and all(grown)
    adds_up = all(_width(end) <= NARROW for end in ends) and all(_outside(moment) <= AGREES for moment in told)
    return Finding(
        "holds" if fades and adds_up else "holds in part" if fades or adds_up else "does not hold",
        f"The linear share of the variance goes from {min(s['shares']['1'] for s in starts):.2f}–"
        f"{max(s['shares']['1'] for s in starts):.2f} untrained to {min(linear):.4f}–{max(linear):.4f} (asked for: "
        f"≥ {LINEAR}). The degrees up to {DEGREE} say what the loss is to within {NARROW:.0%} in {len(told)} of "
        f"{len(moments)} moments of training; there it lies at most {off} outside, the interval included "
        f"(asked for: ≤ {AGREES:.0%}). In the other {len(moments) - len(told)} too much lies beyond "
        f"degree {DEGREE} (bands of up to {max(map(_width, moments)):.0%} of the loss), and nothing was tested.",
        short=f"linear share ≥ {min(linear):.3f}; loss off ≤ {off}",
        verdicts=(_verdict(linear), _sum_verdict(told)),
        figures=(_figure(finished),),
        tables=(_table(finished),),
    )


def _width(moment: dict[str, Any]) -> float:
    """Of the band that the degrees predict, as a share of the loss."""
    least, most = moment["band"]
    return abs(most - least) / moment["loss"]


def _outside(moment: dict[str, Any]) -> float:
    """How far the loss may lie outside its band, by the interval of that distance."""
    return max(abs(float(gap)) for gap in moment["gap"])


def _sum_verdict(told: Sequence[dict[str, Any]]) -> Verdict:
    outside = [_outside(moment) for moment in told] or [np.nan]
    found = Estimate(float(np.median(outside)), float(np.min(outside)), float(np.max(outside)), len(told))
    return Verdict.judge(
        "loss_outside_its_degrees",
        found,
        direction="lower",
        threshold=AGREES,
        good="Where degrees say what the loss is, it is that (limits: the extremes over moments of training).",
        bad="The loss is not what its degrees make up, or they never say (limits: the extremes over moments).",
    )


def _verdict(linear: Sequence[float]) -> Verdict:
    lowest = Estimate(float(np.mean(linear)), min(linear), max(linear), len(linear))
    return Verdict.judge(
        "linear_share",
        lowest,
        direction="higher",
        threshold=LINEAR,
        good="At the end nearly all variance is at degree one (limits: the extremes over runs).",
        bad="At the end some runs keep nonlinear variance (limits: the extremes over runs).",
    )


def _figure(results: Sequence[Result]) -> dict[str, Any]:
    panels = []
    for mixing in dict.fromkeys(result.at["mixing"] for result in results):
        courses = [result.record["course"] for result in select(results, mixing=mixing)]
        steps = [moment["step"] for moment in courses[0]]
        series = [
            _mean_curve(f"degree {d}", steps, [[moment["shares"][str(d)] for moment in course] for course in courses])
            for d in SHOWN
        ]
        rest = [
            [
                sum(moment["shares"][str(d)] for d in range(len(SHOWN) + 1, DEGREE + 1)) + moment["beyond"]
                for moment in course
            ]
            for course in courses
        ]
        panels.append({"title": mixing, "series": [*series, _mean_curve("higher", steps, rest)]})
    return {
        "kind": "curves",
        "title": "Share of the latents' variance by Hermite degree",
        "x_label": "step",
        "y_label": "share of variance",
        "panels": panels,
    }


def _mean_curve(name: str, steps: list[int], rows: list[list[float]]) -> dict[str, Any]:
    values = np.array(rows)
    spread = [Estimate(float(c.mean()), float(c.min()), float(c.max()), len(c)) for c in values.T]
    return curve(name, steps, spread)


def _table(results: Sequence[Result]) -> dict[str, Any]:
    rows = [
        [
            result.at["mixing"],
            result.at["seed"],
            moment["step"],
            *(f"{moment['shares'][str(d)]:.4f}" for d in SHOWN),
            f"{moment['beyond']:.4f}",
            f"{moment['loss']:.3g}",
            f"{_width(moment):.3f}",
            "{1:.4f} [{0:.4f}, {2:.4f}]".format(*moment["gap"]),
        ]
        for result in results
        for moment in (result.record["course"][0], result.record["course"][-1])
    ]
    columns = [
        "mixing",
        "seed",
        "step",
        *(f"degree {d}" for d in SHOWN),
        f"beyond {DEGREE}",
        "loss",
        "width of its band",
        "outside the band",
    ]
    return {
        "title": "Before and after training (band and distance as shares of the loss)",
        "columns": columns,
        "rows": rows,
    }


EXPERIMENT = Experiment("hermite", "Hermite degrees over training", CLAIM, trials, conclude)
