"""Sequential against simultaneous extraction of slow functions, over the dimension n and three sets of rates.

    simultaneous   the n leading eigenfunctions
    deflation      one at a time, each uncorrelated with those before ("greedy SFA")
    xSFA           one at a time, with all products of up to three earlier ones removed from the features before

Rates are `equal`; `distinct`, inside the window ρ_min > ρ_max² in which no harmonic is slower than a coordinate; and
`wide`, outside of it. All methods use the same features of x (random Fourier features; kernel and ridge are chosen for
the simultaneous fit) and the same pairs, and solve each stage exactly. So they differ in the order of extraction only,
and errors are errors of estimation. LeJEPA is trained for comparison: its loss is invariant under rotations of the
latents, so it finds distinct coordinates only up to a rotation, which linear SFA of its latents can undo.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale
from jepatlas.experiments.engine.rules import Criterion, outcome_of_criteria
from jepatlas.experiments.engine.run_tables import run_table
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_interval, mean_and_range, select
from jepatlas.experiments.identifiability.sfa_trials import ENDS, INSIDE, SCALES, SEQUENTIAL, trials

__all__ = ["EXPERIMENT"]

METHODS = ("simultaneous", *SEQUENTIAL)
TRAINED = ("lejepa", "turned")
NAMES = {"xsfa": "xSFA", "lejepa": "LeJEPA", "turned": "LeJEPA, then linear SFA"}
MARGIN = 0.02  # of R²: a smaller difference does not count as a degradation
CLAIM = Claim(
    statement="Sequential extraction, as in slow feature analysis, accumulates errors and degrades beyond a "
    "few dimensions; simultaneous extraction does not. Distinct rates identify each coordinate, equal ones only a "
    "rotation.",
    source="When Does LeJEPA Learn a World Model?, the appendix on slow feature analysis, and a review of it",
    proven="(for the exact optimum) a permutation by sequential extraction with distinct rates, a rotation by "
    "simultaneous extraction with equal ones",
)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """Judged at the largest n: both sequential methods must degrade inside the window, and distinct rates raise MCC."""
    dims = SCALES[scale].dims
    spectral = select(results, kind="spectral")
    largest = {rates: select(spectral, rates=rates, dim=dims[-1]) for rates in ENDS}
    gaps: dict[tuple[str, str], Estimate] = {}
    for rates, method in product(ENDS, SEQUENTIAL):
        gaps[rates, method] = mean_and_interval(largest[rates], f"behind_{method}")
    criteria = []
    for method in SEQUENTIAL:
        inside = [gaps[rates, method] for rates in INSIDE]
        degrades = any(gap.value > MARGIN and gap.low > 0 for gap in inside)
        found = "; ".join(f"{rates} {cell(gap)}" for rates, gap in zip(INSIDE, inside, strict=True))
        criteria.append(
            Criterion(f"R² behind simultaneous, {NAMES.get(method, method)}", found, f"> {MARGIN}", degrades)
        )
    mcc = {rates: mean_and_interval(largest[rates], "mcc_simultaneous") for rates in INSIDE}
    higher = mcc["distinct"].low > mcc["equal"].high
    criteria.append(
        Criterion("MCC, distinct rates", cell(mcc["distinct"]), f"above equal: {cell(mcc['equal'])}", higher)
    )
    return Finding(
        outcome_of_criteria(criteria),
        f"At n = {dims[-1]} the R² of xSFA is {gaps['equal', 'xsfa'].value:z.3f} below that of the simultaneous fit.",
        criteria=tuple(criteria),
        verdicts=tuple(_verdict(*key, gap) for key, gap in gaps.items()),
        figures=(_figure(results, dims),),
        tables=(
            _table(spectral, METHODS, "Spectral runs"),
            _table(select(results, kind="trained"), TRAINED, "Trained runs"),
        ),
    )


def _verdict(rates: str, method: str, gap: Estimate) -> Verdict:
    return Verdict.judge(
        f"behind_{rates}_{method}",
        gap,
        direction="lower",
        threshold=MARGIN,
        good="At the largest n sequential extraction is as good as simultaneous extraction (difference in R²).",
        bad="At the largest n sequential extraction may be worse than simultaneous extraction (difference in R²).",
    )


def _figure(results: Sequence[Result], dims: Sequence[int]) -> Curves:
    def line(method: str, rates: str, name: str, label: str) -> Curve:
        runs = select(results, kind="spectral", rates=rates)
        points = [mean_and_range(select(runs, dim=dim), f"{name}_{method}") for dim in dims]
        return curve(label, dims, points)

    panels = []
    for rates, (slowest, fastest) in ENDS.items():
        series = [line(method, rates, "r2", NAMES.get(method, method)) for method in METHODS]
        panels.append(CurvePanel(series, f"{rates} rates, ρ from {slowest} to {fastest}"))
    matched = []
    for method, rates in product(("simultaneous", "xsfa"), INSIDE):
        matched.append(line(method, rates, "mcc", f"{NAMES.get(method, method)}, {rates}"))
    trained = select(results, kind="trained", rates="distinct")
    for method in TRAINED:
        score = mean_and_range(trained, f"mcc_{method}")
        matched.append(curve(f"{NAMES[method]}, distinct", [trained[0].at["dim"]], [score], points=True))
    return Curves(
        title="Sequential and simultaneous extraction",
        x_label="dimension n",
        log_x=True,
        y_label="held-out R² (last: MCC)",
        panels=[*panels, CurvePanel(matched, "MCC: each coordinate by itself")],
    )


def _table(results: Sequence[Result], methods: Sequence[str], title: str) -> Table:
    columns: dict[str, str] = {}
    for (name, label), method in product((("r2", "R²"), ("mcc", "MCC")), methods):
        columns[f"{label}, {NAMES.get(method, method)}"] = f"{name}_{method}"
    return run_table(title, results, {"rates": "rates", "n": "dim", "seed": "seed"}, columns)


EXPERIMENT = Experiment("greedy-sfa", "One slow feature at a time, or all at once", CLAIM, trials, conclude)
