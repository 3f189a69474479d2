"""The Hermite degrees of the learned map over the course of training: nonlinear parts must fade."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.base.config import from_plain, to_plain
from jepatlas.base.records import Estimate, Verdict
from jepatlas.base.seeding import numpy_generator
from jepatlas.experiments.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.latents import Sample, sample
from jepatlas.experiments.settings import recipe_for
from jepatlas.experiments.tables import at, curve
from jepatlas.identify import degree_variances, loss_decomposition
from jepatlas.recipes import Recipe, build_objective, recipe_id
from jepatlas.runs import train_job
from jepatlas.training import load_checkpoint, load_weights
from jepatlas.worlds import LatentWorld, OrnsteinUhlenbeck, SinusoidalShear, Spiral

__all__ = ["EXPERIMENT", "run"]

RHO, DEGREE, MOMENTS = 0.95, 4, 8
LINEAR = 0.97
SHOWN = (1, 2, 3)

CLAIM = Claim(
    statement="Training removes the nonlinear Hermite components of the learned map; the loss is 2 Σ (1 − ρ^d) v_d.",
    source="When Does LeJEPA Learn a World Model?, Theorem 1 and its spectral argument",
    proven="for the optimum: all variance is at degree one",
    assumed="Mehler's formula is an axiom in the Lean proof; nothing is said of the way there",
)


@dataclass(frozen=True)
class Plan:
    steps: int
    seeds: int
    samples: int


SCALES = {"tiny": Plan(16, 1, 3000), "small": Plan(4000, 3, 30_000), "paper": Plan(20_000, 3, 100_000)}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan, law = SCALES[scale], OrnsteinUhlenbeck(dim=2, rho=RHO)
    return [
        Trial({"mixing": mixing.kind, "seed": s}, run,
              {"recipe": to_plain(_recipe(scale, LatentWorld(law, mixing), plan.steps, s)), "samples": plan.samples})
        for mixing in (Spiral(), SinusoidalShear()) for s in range(seed, seed + plan.seeds)
    ]  # fmt: skip


def _recipe(scale: Scale, world: LatentWorld, steps: int, seed: int) -> Recipe:
    recipe = recipe_for(scale, world, steps=steps, seed=seed)
    kept = replace(recipe.training, checkpoint_every=max(1, steps // MOMENTS), keep=MOMENTS)
    return replace(recipe, training=kept)


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train, then decompose what every kept checkpoint, and the untrained encoder, make of the same fresh states."""
    record = train_job(settings["recipe"], folder)
    recipe = from_plain(Recipe, settings["recipe"])
    places = sorted((Path(folder) / "checkpoints").glob("step-*"), key=lambda path: int(path.name[5:]))
    course = [_moment(0, sample(recipe, build_objective(recipe).eval(), settings["samples"]), recipe)]
    for place in places:
        objective = build_objective(recipe)
        load_weights(objective, load_checkpoint(place, recipe_id(recipe)).tensors)
        course.append(_moment(int(place.name[5:]), sample(recipe, objective.eval(), settings["samples"]), recipe))
    return record | {"course": course}


def _moment(step: int, drawn: Sample, recipe: Recipe) -> dict[str, Any]:
    """Shares of the variance by degree, the loss, and how far it lies outside what the degrees say it must be."""
    rho = RHO ** (2 if recipe.pairs.kind == "siblings" else 1)
    rng, replicates = numpy_generator(step, "hermite"), 50
    found = degree_variances(drawn.h, drawn.z, DEGREE, rng, replicates=replicates)
    parts = loss_decomposition(drawn.h, drawn.h_next, drawn.z, rho, rng, degree=DEGREE, replicates=replicates)
    total = found["total"].value
    shares = {str(d): found[f"degree_{d}"].value / total for d in range(1, DEGREE + 1)}
    gap = [parts["gap"].low, parts["gap"].value, parts["gap"].high]
    return {"step": step, "shares": shares, "beyond": found["beyond"].value / total, "loss": parts["loss"].value,
            "gap": gap}  # fmt: skip


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    finished = [result for result in results if result.record.get("course")]
    ends = [result.record["course"][-1] for result in finished]
    starts = [result.record["course"][0] for result in finished]
    linear = [end["shares"]["1"] for end in ends]
    grown = [end["shares"]["1"] > start["shares"]["1"] for start, end in zip(starts, ends, strict=True)]
    off = max(abs(moment["gap"][1]) for result in finished for moment in result.record["course"])
    good = min(linear) >= LINEAR and all(grown)
    return Finding(
        "holds" if good else "holds in part" if any(grown) else "does not hold",
        f"The linear share of the variance goes from {min(s['shares']['1'] for s in starts):.2f}–"
        f"{max(s['shares']['1'] for s in starts):.2f} untrained to {min(linear):.4f}–{max(linear):.4f} (asked for: "
        f"≥ {LINEAR}). From the first step to the last the measured loss lies at most {100 * off:.1f}% outside what "
        "its degrees make up.",
        verdicts=(_verdict(linear),),
        figures=(_figure(finished),),
        tables=(_table(finished),),
    )


def _verdict(linear: Sequence[float]) -> Verdict:
    lowest = Estimate(float(np.mean(linear)), min(linear), max(linear), len(linear))
    return Verdict.judge(
        "linear_share", lowest, direction="higher", threshold=LINEAR,
        good="At the end nearly all variance is at degree one (limits: the extremes over runs).",
        bad="At the end some runs keep nonlinear variance (limits: the extremes over runs).",
    )  # fmt: skip


def _figure(results: Sequence[Result]) -> dict[str, Any]:
    panels = []
    for mixing in dict.fromkeys(result.at["mixing"] for result in results):
        courses = [result.record["course"] for result in at(results, mixing=mixing)]
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
    return {"kind": "curves", "title": "Share of the latents' variance by Hermite degree", "x_label": "step",
            "y_label": "share of variance", "panels": panels}  # fmt: skip


def _mean_curve(name: str, steps: list[int], rows: list[list[float]]) -> dict[str, Any]:
    values = np.array(rows)
    spread = [Estimate(float(c.mean()), float(c.min()), float(c.max()), len(c)) for c in values.T]
    return curve(name, steps, spread)


def _table(results: Sequence[Result]) -> dict[str, Any]:
    rows = [
        [result.at["mixing"], result.at["seed"], moment["step"], *(f"{moment['shares'][str(d)]:.4f}" for d in SHOWN),
         f"{moment['beyond']:.4f}", f"{moment['loss']:.4f}", "{1:.4f} [{0:.4f}, {2:.4f}]".format(*moment["gap"])]
        for result in results for moment in (result.record["course"][0], result.record["course"][-1])
    ]  # fmt: skip
    columns = [
        "mixing",
        "seed",
        "step",
        *(f"degree {d}" for d in SHOWN),
        f"beyond {DEGREE}",
        "loss",
        "share of the loss outside its degrees",
    ]
    return {"title": "Before and after training", "columns": columns, "rows": rows}


EXPERIMENT = Experiment("hermite", "Hermite degrees over training", CLAIM, trials, conclude)
