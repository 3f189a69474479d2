"""The linear latent-state model: least squares between two linear charts of one state.

    h₁ = A₁u,   h₂ = A₂u + e   ⇒   W* = A₂A₁⁻¹,   κ(W*) ≤ κ(A₂)κ(A₁),   R² = 1/(1 + σ²)

σ is the noise in units of the signal. Trained models also have noise in h₁. Then least squares shrinks the map,
W = A₂A₁ᵀ(A₁A₁ᵀ + σ₁²I)⁻¹, and more pairs do not help. This case is measured for comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from jepatlas.alignment.maps import LeastSquaresMap
from jepatlas.core.figures import CurvePanel, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.alignment.latent_pairs import add_noise, random_chart
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Criterion, exact_verdicts, outcome_of_criteria
from jepatlas.experiments.engine.seed_tables import mean_and_range, mean_cells, mean_curve, select, span

__all__ = ["EXPERIMENT", "run"]

EXACT = 1e-6  # largest relative error that counts as rounding
SLOPE = (-0.6, -0.4)  # exponents of N that agree with ½
OFF = 0.02  # largest deviation of R² from its prediction
WHERE = {"target": "noise in h₂", "both": "noise in h₁ and h₂"}
TEST = 5000  # rows that R² is scored on

CLAIM = Claim(
    statement="If h₁ = A₁u and h₂ = A₂u + e, the map from pairs tends to A₂A₁⁻¹, exact without noise and worse with "
    "more of it, and κ(A₂A₁⁻¹) ≤ κ(A₂)κ(A₁).",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, Eq. 12",
    proven="for the population, with noise in the second model only",
    assumed="that trained encoders are linear charts of one state",
)


@dataclass(frozen=True)
class Plan:
    dims: tuple[int, ...]
    conditions: tuple[float, ...]
    noises: tuple[float, ...]
    pairs: tuple[int, ...]
    seeds: int


SCALES = {
    "tiny": Plan((2, 4), (1.0, 10.0), (0.0, 0.3), (100, 1000), 1),
    "small": Plan((2, 16, 64), (1.0, 3.0, 10.0), (0.0, 0.1, 0.3, 1.0), (300, 3000, 30_000), 3),
    "paper": Plan((2, 16, 64, 384), (1.0, 3.0, 10.0, 100.0), (0.0, 0.1, 0.3, 1.0), (3000, 30_000, 300_000), 5),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    common = {"conditions": plan.conditions, "noises": plan.noises, "pairs": plan.pairs}
    return [Trial(at, run, at | common) for at in grid(dim=plan.dims, seed=range(seed, seed + plan.seeds))]


def run(settings: Plain, folder: str) -> Plain:
    del folder
    rng = numpy_generator(settings["seed"], "charts", settings["dim"])
    found: dict[str, float] = {}
    for condition in settings["conditions"]:
        charts = [random_chart(settings["dim"], condition, rng) for _ in range(2)]
        exact = charts[1] @ np.linalg.inv(charts[0])
        found[f"bound_{condition:g}"] = float(np.linalg.cond(exact) / condition**2)
        for noise, where in product(settings["noises"], WHERE):
            h1, h2 = _latents(charts, noise, where, max(settings["pairs"]) + TEST, rng)
            for n in settings["pairs"]:
                key = _key(where, condition, noise, n)
                fitted = LeastSquaresMap().fit(h1[:n], h2[:n])
                error = np.linalg.norm(fitted.map_.raw_weight - exact) / np.linalg.norm(exact)
                found |= {
                    f"error_{key}": float(error),
                    f"r2_{key}": float(fitted.score(h1[-TEST:], h2[-TEST:])),
                    f"kappa_{key}": fitted.conditioning_.condition / condition**2,
                }
    return {"status": "finished", "verdicts": exact_verdicts(found, 1, "")}


def _latents(
    charts: list[np.ndarray], noise: float, where: str, rows: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    u = rng.standard_normal((rows, len(charts[0])))
    h1, h2 = (u @ chart.T for chart in charts)
    if where == "both":
        h1 = add_noise(h1, noise, charts[0], rng)
    return h1, add_noise(h2, noise, charts[1], rng)


def _key(where: str, condition: float, noise: float, pairs: int) -> str:
    return f"{where}_{condition:g}_{noise:g}_{pairs}"


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    plan = SCALES[scale]
    exact = _largest_error_without_noise(results, plan)
    slopes = {where: _slopes(results, plan, where) for where in WHERE}
    off = _largest_deviation(results, plan)
    bound = max(r.value(f"bound_{k:g}") for r in results for k in plan.conditions)
    in_range = all(SLOPE[0] <= slope <= SLOPE[1] for slope in slopes["target"])
    exponents = span(slopes["target"], ".2f")
    criteria = (
        Criterion(
            "error without noise; exponent of N with noise in h₂",
            f"{exact:.0e}; {exponents}",
            f"≤ {EXACT:g}; {SLOPE[0]} to {SLOPE[1]}",
            exact <= EXACT and in_range,
        ),
        Criterion("R² − 1/(1 + σ²), largest", f"{off:.3f}", f"≤ {OFF}", off <= OFF),
        Criterion("κ(A₂A₁⁻¹) / κ(A₂)κ(A₁), largest", f"{bound:.2f}", "≤ 1", bound <= 1 + EXACT),
    )
    return Finding(
        outcome_of_criteria(criteria),
        f"Without noise the map is exact to {exact:.0e}; with noise R² is within {off:.3f} of the prediction.",
        criteria=criteria,
        verdicts=(_verdict(off, len(results)),),
        figures=(_figure(results, plan),),
        tables=(_table(results, plan), _summary_table(results, plan, slopes)),
    )


def _largest_error_without_noise(results: Sequence[Result], plan: Plan) -> float:
    enough = [(r, n) for r, n in product(results, plan.pairs) if n > 2 * r.at["dim"]]
    return max(r.value(f"error_{_key('target', k, 0.0, n)}") for (r, n), k in product(enough, plan.conditions))


def _slopes(results: Sequence[Result], plan: Plan, where: str) -> list[float]:
    """d log(error) / d log(N) of the mean over seeds, for every dimension, condition and noise."""
    slopes = []
    for dim, condition, noise in product(plan.dims, plan.conditions, filter(None, plan.noises)):
        errors = []
        for n in plan.pairs:
            name = f"error_{_key(where, condition, noise, n)}"
            errors.append(np.mean([np.log(r.value(name)) for r in select(results, dim=dim)]))
        slopes.append(float(np.polyfit(np.log(plan.pairs), errors, 1)[0]))
    return slopes


def _largest_deviation(results: Sequence[Result], plan: Plan) -> float:
    """Largest deviation of a mean R² over seeds from 1/(1 + σ²)."""
    deviations = []
    for dim, condition, noise in product(plan.dims, plan.conditions, plan.noises):
        found = mean_and_range(select(results, dim=dim), f"r2_{_key('target', condition, noise, plan.pairs[-1])}")
        deviations.append(abs(found.value - 1 / (1 + noise**2)))
    return max(deviations)


def _largest_condition(results: Sequence[Result], plan: Plan, noise: float, pairs: int) -> float:
    """Largest κ of a fitted W over κ(A₂)κ(A₁), with noise in h₂ only."""
    return max(r.value(f"kappa_{_key('target', k, noise, pairs)}") for r in results for k in plan.conditions)


def _verdict(off: float, n: int) -> Verdict:
    return Verdict.judge(
        "off_prediction",
        Estimate.exact(off, n),
        direction="lower",
        threshold=OFF,
        good="R² decays with noise as the model predicts (largest deviation of a mean over seeds).",
        bad="R² does not decay with noise as the model predicts (largest deviation of a mean over seeds).",
    )


def _figure(results: Sequence[Result], plan: Plan) -> Curves:
    dim = plan.dims[-1]
    condition = plan.conditions[-1]
    panels = []
    for where, title in WHERE.items():
        series = []
        for noise in filter(None, plan.noises):
            names = {n: f"error_{_key(where, condition, noise, n)}" for n in plan.pairs}
            series.append(mean_curve(f"σ = {noise:g}", select(results, dim=dim), names))
        panels.append(CurvePanel(series, title))
    return Curves(
        title=f"Error of W as an estimate of A₂A₁⁻¹ (d = {dim}, κ = {condition:g})",
        x_label="pairs",
        y_label="‖W − A₂A₁⁻¹‖ / ‖A₂A₁⁻¹‖",
        log_x=True,
        log_y=True,
        panels=panels,
    )


def _summary_table(results: Sequence[Result], plan: Plan, slopes: dict[str, list[float]]) -> Table:
    noise = plan.noises[-1]
    rows = []
    for where, found in slopes.items():
        rows.append([f"exponent of N in the error, {WHERE[where]}", span(found, ".2f")])
    largest = max(_largest_condition(results, plan, 0.0, n) for n in plan.pairs)
    rows.append(["largest κ(W) / κ(A₂)κ(A₁) without noise", f"{largest:.2f}"])
    for n in (plan.pairs[-1], plan.pairs[0]):
        largest = _largest_condition(results, plan, noise, n)
        rows.append([f"largest κ(W) / κ(A₂)κ(A₁), σ = {noise:g} in h₂, {n:,} pairs", f"{largest:.3g}"])
    return Table("Summary", ["quantity", "value"], rows)


def _table(results: Sequence[Result], plan: Plan) -> Table:
    rows = []
    for dim, condition, noise, where in product(plan.dims, plan.conditions, plan.noises, WHERE):
        key = _key(where, condition, noise, plan.pairs[-1])
        cells = mean_cells(select(results, dim=dim), [f"{name}_{key}" for name in ("error", "r2", "kappa")])
        rows.append([dim, f"{condition:g}", f"{noise:g}", WHERE[where], *cells])
    columns = ["d", "κ(A)", "σ", "", "error of W", "held-out R²", "κ(W) / κ(A₂)κ(A₁)"]
    return Table(f"With {plan.pairs[-1]:,} pairs, means over seeds [range]", columns, rows)


EXPERIMENT = Experiment("linear-state-model", "The linear latent-state model", CLAIM, trials, conclude)
