"""The linear latent-state model: what least squares makes of two linear charts of one state.

    h₁ = A₁u,   h₂ = A₂u + e   ⇒   W* = A₂A₁⁻¹,   κ(W*) ≤ κ(A₂)κ(A₁),   R² = 1/(1 + σ²)

σ is the noise in units of the signal. With noise in h₁, too, which no trained model is without, least squares shrinks
what it cannot rely on, W = A₂A₁ᵀ(A₁A₁ᵀ + σ₁²I)⁻¹, and more pairs do not help. That is measured beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from jepatlas.alignment.maps import LeastSquaresMap
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.alignment.charts import noisy, random_chart
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, as_verdicts
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_range, select

__all__ = ["EXPERIMENT", "run"]

EXACT, SLOPE, OFF = 1e-6, (-0.6, -0.4), 0.02
WHERE = {"target": "noise in h₂", "both": "noise in h₁ and h₂"}

CLAIM = Claim(
    statement="Where h₁ = A₁u and h₂ = A₂u + e, the map from pairs tends to A₂A₁⁻¹, exact without noise and worse with "
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
TEST = 5000


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    return [
        Trial(
            {"dim": dim, "seed": s},
            run,
            {"dim": dim, "conditions": plan.conditions, "noises": plan.noises, "pairs": plan.pairs, "seed": s},
        )
        for dim in plan.dims
        for s in range(seed, seed + plan.seeds)
    ]


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    del folder
    rng, found = numpy_generator(settings["seed"], "charts", settings["dim"]), dict[str, float]()
    for condition in settings["conditions"]:
        charts = [random_chart(settings["dim"], condition, rng) for _ in range(2)]
        found[f"bound_{condition:g}"] = float(np.linalg.cond(charts[1] @ np.linalg.inv(charts[0])) / condition**2)
        for noise, where in product(settings["noises"], WHERE):
            h1, h2 = _latents(charts, noise, where, max(settings["pairs"]) + TEST, rng)
            for n in settings["pairs"]:
                key, fitted = _key(where, condition, noise, n), LeastSquaresMap().fit(h1[:n], h2[:n])
                found |= {
                    f"error_{key}": _error(fitted.map_.raw_weight, charts),
                    f"r2_{key}": float(fitted.score(h1[-TEST:], h2[-TEST:])),
                    f"kappa_{key}": fitted.conditioning_.condition / condition**2,
                }
    return {"status": "finished", "verdicts": as_verdicts({n: Estimate(v, v, v, 1) for n, v in found.items()}, "")}


def _latents(
    charts: list[np.ndarray], noise: float, where: str, rows: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    u = rng.standard_normal((rows, len(charts[0])))
    h1, h2 = (u @ chart.T for chart in charts)
    return noisy(h1, noise, charts[0], rng) if where == "both" else h1, noisy(h2, noise, charts[1], rng)


def _error(weight: np.ndarray, charts: list[np.ndarray]) -> float:
    wanted = charts[1] @ np.linalg.inv(charts[0])
    return float(np.linalg.norm(weight - wanted) / np.linalg.norm(wanted))


def _key(where: str, condition: float, noise: float, pairs: int) -> str:
    return f"{where}_{condition:g}_{noise:g}_{pairs}"


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    plan = SCALES[scale]
    exact = max(
        r.value(f"error_{_key('target', k, 0.0, n)}")
        for r in results
        for k in plan.conditions
        for n in plan.pairs
        if n > 2 * r.at["dim"]
    )
    slopes = {where: _slopes(results, plan, where) for where in WHERE}
    off = _off_prediction(results, plan)
    bound = max(r.value(f"bound_{k:g}") for r in results for k in plan.conditions)
    recovered = exact <= EXACT and all(SLOPE[0] <= slope <= SLOPE[1] for slope in slopes["target"])
    rules = [recovered, off <= OFF, bound <= 1 + EXACT]
    many, few, noise = plan.pairs[-1], plan.pairs[0], plan.noises[-1]
    clean = max(_condition(results, plan, 0.0, n) for n in plan.pairs)
    noisy_many, noisy_few = (_condition(results, plan, noise, n) for n in (many, few))
    wide = select(results, dim=plan.dims[-1])
    stuck = mean_and_range(wide, f"error_{_key('both', plan.conditions[-1], 0.3, plan.pairs[-1])}")
    return Finding(
        "holds" if all(rules) else "holds in part" if any(rules) else "does not hold",
        f"Without noise the map is A₂A₁⁻¹ to {exact:.0e}; with noise in h₂ its error falls with the number of pairs "
        f"as N^({min(slopes['target']):.2f} to {max(slopes['target']):.2f}), and R² is within {off:.3f} of 1/(1 + σ²). "
        f"κ(A₂A₁⁻¹) is at most {bound:.2f} times its bound κ(A₂)κ(A₁). κ of the fitted W is at most {clean:.2f} times "
        f"that without noise; with σ = {noise:g} in h₂ it is up to {noisy_many:.2f} times with {many:,} pairs and "
        f"{noisy_few:.3g} times with {few:,}. With noise of the same size in h₁, too, the error goes as "
        f"N^({min(slopes['both']):.2f} to {max(slopes['both']):.2f}): at κ = {plan.conditions[-1]:g}, σ = 0.3 and "
        f"d = {plan.dims[-1]} it still is {cell(stuck, 2)} of ‖A₂A₁⁻¹‖ with {plan.pairs[-1]:,} pairs.",
        short=f"exact to {exact:.0e}; R² off ≤ {off:.3f}; κ(W) ≤ {clean:.2f} (noisy: {noisy_few:.3g}) × bound",
        verdicts=(_verdict(off, len(results)),),
        figures=(_figure(results, plan),),
        tables=(_table(results, plan),),
    )


def _slopes(results: Sequence[Result], plan: Plan, where: str) -> list[float]:
    """d log(error) / d log(N) for every dimension, conditioning and noise, means over seeds."""
    return [
        float(
            np.polyfit(
                np.log(plan.pairs),
                [
                    np.mean([np.log(r.value(f"error_{_key(where, k, noise, n)}")) for r in select(results, dim=dim)])
                    for n in plan.pairs
                ],
                1,
            )[0]
        )
        for dim, k, noise in product(plan.dims, plan.conditions, plan.noises)
        if noise
    ]


def _off_prediction(results: Sequence[Result], plan: Plan) -> float:
    return max(
        abs(
            mean_and_range(select(results, dim=dim), f"r2_{_key('target', k, noise, plan.pairs[-1])}").value
            - 1 / (1 + noise**2)
        )
        for dim, k, noise in product(plan.dims, plan.conditions, plan.noises)
    )


def _condition(results: Sequence[Result], plan: Plan, noise: float, pairs: int) -> float:
    """The largest κ of a fitted W, over κ(A₂)κ(A₁), with noise in h₂ only."""
    return max(r.value(f"kappa_{_key('target', k, noise, pairs)}") for r in results for k in plan.conditions)


def _verdict(off: float, n: int) -> Verdict:
    return Verdict.judge(
        "off_prediction",
        Estimate(off, off, off, n),
        direction="lower",
        threshold=OFF,
        good="R² decays with noise as the model predicts (the largest deviation of a mean over seeds).",
        bad="R² decays with noise otherwise than the model predicts (the largest deviation of a mean over seeds).",
    )


def _figure(results: Sequence[Result], plan: Plan) -> dict[str, Any]:
    dim, condition = plan.dims[-1], plan.conditions[-1]
    panels = []
    for where, title in WHERE.items():
        series = [
            curve(
                f"σ = {noise:g}",
                plan.pairs,
                [
                    mean_and_range(select(results, dim=dim), f"error_{_key(where, condition, noise, n)}")
                    for n in plan.pairs
                ],
            )
            for noise in plan.noises
            if noise
        ]
        panels.append({"title": title, "series": series})
    return {
        "kind": "curves",
        "title": f"How far W is from A₂A₁⁻¹ (d = {dim}, κ = {condition:g})",
        "x_label": "pairs",
        "y_label": "‖W − A₂A₁⁻¹‖ / ‖A₂A₁⁻¹‖",
        "log_x": True,
        "log_y": True,
        "panels": panels,
    }


def _table(results: Sequence[Result], plan: Plan) -> dict[str, Any]:
    rows = [
        [
            dim,
            f"{k:g}",
            f"{noise:g}",
            WHERE[where],
            *(cell(mean_and_range(select(results, dim=dim), f"{name}_{key}")) for name in ("error", "r2", "kappa")),
        ]
        for dim, k, noise, where in product(plan.dims, plan.conditions, plan.noises, WHERE)
        for key in [_key(where, k, noise, plan.pairs[-1])]
    ]
    columns = ["d", "κ(A)", "σ", "", "error of W", "held-out R²", "κ(W) / κ(A₂)κ(A₁)"]
    return {"title": f"With {plan.pairs[-1]:,} pairs, means over seeds [extremes]", "columns": columns, "rows": rows}


EXPERIMENT = Experiment("linear-state-model", "The linear latent-state model", CLAIM, trials, conclude)
