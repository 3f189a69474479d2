"""Hermite degrees of the learned map during training: nonlinear parts must fade, and the loss must equal their sum.

Degrees beyond the last one, D, enter the loss with a factor between 1 − ρ^(D+1) and 1, so the known degrees predict a
band. A wide band agrees with any loss, so agreement is tested only at moments of training where the band is narrow.
That is the case once the map is nearly linear. It is not for the untrained encoder on the spiral, which has nine tenths
of its variance beyond degree 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import LatentSample, latent_sample, recipe_for
from jepatlas.experiments.engine.rules import Criterion, outcome_of
from jepatlas.experiments.engine.seed_tables import curve, mean_and_range_of, select
from jepatlas.identifiability import degree_variances, loss_decomposition
from jepatlas.recipes import Recipe, build_objective, recipe_id
from jepatlas.training import load_checkpoint, load_weights
from jepatlas.workflows.runs import train_job
from jepatlas.worlds import LatentWorld, OrnsteinUhlenbeck, SinusoidalShear, Spiral

__all__ = ["EXPERIMENT", "run"]

RHO = 0.95
DEGREE = 4
MOMENTS = 8  # checkpoints that are measured
LINEAR = 0.97
NARROW = 0.1  # largest width of a narrow band, as a share of the loss
AGREES = 0.05  # largest distance of the loss from its band, as a share of the loss
SHOWN = (1, 2, 3)

CLAIM = Claim(
    statement="Training removes the nonlinear Hermite components of the learned map; the loss is 2 Σ (1 − ρ^d) v_d.",
    source="When Does LeJEPA Learn a World Model?, Theorem 1 and its spectral argument",
    proven="for the optimum: all variance is at degree one",
    assumed="Mehler's formula is an axiom in the Lean proof; the course of training is not analysed",
)


@dataclass(frozen=True)
class Plan:
    steps: int
    seeds: int
    samples: int


SCALES = {"tiny": Plan(16, 1, 3000), "small": Plan(4000, 3, 30_000), "paper": Plan(20_000, 3, 100_000)}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    trials = []
    for mixing in (Spiral(), SinusoidalShear()):
        world = LatentWorld(OrnsteinUhlenbeck(dim=2, rho=RHO), mixing)
        for s in range(seed, seed + plan.seeds):
            recipe = recipe_for(scale, world, steps=plan.steps, seed=s)
            training = replace(recipe.training, checkpoint_every=max(1, plan.steps // MOMENTS), keep=MOMENTS)
            recipe = replace(recipe, training=training)
            settings = {"recipe": to_plain(recipe), "samples": plan.samples, "degree": DEGREE}
            trials.append(Trial({"mixing": mixing.kind, "seed": s}, run, settings))
    return trials


def run(settings: Plain, folder: str) -> Plain:
    """Train, then decompose the untrained encoder and every kept checkpoint on the same fresh states."""
    record = train_job(settings["recipe"], folder)
    recipe = from_plain(Recipe, settings["recipe"])
    checkpoints = {int(path.name[5:]): path for path in (Path(folder) / "checkpoints").glob("step-*")}
    course = []
    for step in (0, *sorted(checkpoints)):
        objective = build_objective(recipe)
        if step > 0:
            load_weights(objective, load_checkpoint(checkpoints[step], recipe_id(recipe)).tensors)
        drawn = latent_sample(recipe, objective.eval(), settings["samples"])
        course.append(_moment(step, drawn, recipe, settings["degree"]))
    return record | {"course": course}


def _moment(step: int, drawn: LatentSample, recipe: Recipe, degree: int) -> Plain:
    """Shares of the variance by degree, the loss, the band that they predict, and the distance of the loss from it."""
    rho = RHO ** (2 if recipe.pairs.kind == "siblings" else 1)
    rng = numpy_generator(step, "hermite")
    replicates = 50
    found = degree_variances(drawn.h, drawn.z, degree, rng, replicates=replicates)
    parts = loss_decomposition(drawn.h, drawn.h_next, drawn.z, rho, rng, degree=degree, replicates=replicates)
    total = found["total"].value
    return {
        "step": step,
        "shares": {str(d): found[f"degree_{d}"].value / total for d in range(1, degree + 1)},
        "beyond": found["beyond"].value / total,
        "loss": parts["loss"].value,
        "band": [parts["predicted_least"].value, parts["predicted_most"].value],
        "gap": [parts["gap"].low, parts["gap"].value, parts["gap"].high],
    }


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if every run ends nearly linear, and the loss agrees with its degrees wherever the band is narrow.

    The band must be narrow at the end of every run. Agreement is required of the whole interval of the distance.
    """
    del scale
    measured = [result for result in results if result.record.get("course")]
    ends = [result.record["course"][-1] for result in measured]
    starts = [result.record["course"][0] for result in measured]
    linear = [_share(end, 1) for end in ends]
    grown = [_share(end, 1) > _share(start, 1) for start, end in zip(starts, ends, strict=True)]
    moments = [moment for result in measured for moment in result.record["course"]]
    narrow = [moment for moment in moments if _width(moment) <= NARROW]
    off = f"{100 * max(map(_outside, narrow)):.1f}%" if narrow else "–"
    fades = min(linear) >= LINEAR and all(grown)
    tested = all(_width(end) <= NARROW for end in ends)
    agrees = tested and all(_outside(moment) <= AGREES for moment in narrow)
    title = f"distance of the loss from its band ({len(narrow)} of {len(moments)} moments have a narrow band)"
    return Finding(
        outcome_of([fades, agrees]),
        f"The linear share of the variance is at least {min(linear):.3f} at the end; the loss is off by at most {off}.",
        criteria=(
            Criterion("linear share at the end", f"≥ {min(linear):.4f}", f"≥ {LINEAR}, and grown", fades),
            Criterion(title, f"≤ {off}", f"≤ {AGREES:.0%}, and narrow at the end", agrees),
        ),
        verdicts=(_linear_verdict(linear), _loss_verdict(narrow)),
        figures=(_figure(measured),),
        tables=(_table(measured),),
    )


def _width(moment: Plain) -> float:
    """Width of the predicted band as a share of the loss."""
    least, most = moment["band"]
    return abs(most - least) / moment["loss"]


def _outside(moment: Plain) -> float:
    """Largest distance of the loss from its band within the interval of the distance."""
    return max(abs(float(gap)) for gap in moment["gap"])


def _loss_verdict(narrow: Sequence[Plain]) -> Verdict:
    found = Estimate.undefined(0)
    if narrow:
        outside = [_outside(moment) for moment in narrow]
        found = replace(mean_and_range_of(outside), value=float(np.median(outside)))
    return Verdict.judge(
        "loss_outside_its_degrees",
        found,
        direction="lower",
        threshold=AGREES,
        good="The loss is the sum of its degrees wherever the band is narrow (limits: range over moments).",
        bad="The loss is not the sum of its degrees, or the band is never narrow (limits: range over moments).",
    )


def _linear_verdict(linear: Sequence[float]) -> Verdict:
    return Verdict.judge(
        "linear_share",
        mean_and_range_of(linear),
        direction="higher",
        threshold=LINEAR,
        good="At the end nearly all variance is at degree one (limits: range over runs).",
        bad="At the end some runs keep nonlinear variance (limits: range over runs).",
    )


def _figure(results: Sequence[Result]) -> Curves:
    panels = []
    for mixing in dict.fromkeys(result.at["mixing"] for result in results):
        courses = [result.record["course"] for result in select(results, mixing=mixing)]
        steps = [moment["step"] for moment in courses[0]]
        series = []
        for degree in SHOWN:
            shares = [[_share(moment, degree) for moment in course] for course in courses]
            series.append(_mean_curve(f"degree {degree}", steps, shares))
        higher = [[_higher_share(moment) for moment in course] for course in courses]
        panels.append(CurvePanel([*series, _mean_curve("higher", steps, higher)], mixing))
    return Curves(
        title="Share of the latents' variance by Hermite degree",
        x_label="step",
        y_label="share of variance",
        panels=panels,
    )


def _share(moment: Plain, degree: int) -> float:
    return moment["shares"][str(degree)]


def _higher_share(moment: Plain) -> float:
    return sum(_share(moment, d) for d in range(len(SHOWN) + 1, DEGREE + 1)) + moment["beyond"]


def _mean_curve(name: str, steps: list[int], rows: list[list[float]]) -> Curve:
    return curve(name, steps, [mean_and_range_of(values) for values in np.array(rows).T])


def _table(results: Sequence[Result]) -> Table:
    rows = []
    for result in results:
        for moment in (result.record["course"][0], result.record["course"][-1]):
            shares = [f"{_share(moment, degree):.4f}" for degree in SHOWN]
            shares.append(f"{moment['beyond']:.4f}")
            low, gap, high = moment["gap"]
            fit = [f"{moment['loss']:.3g}", f"{_width(moment):.3f}", f"{gap:.4f} [{low:.4f}, {high:.4f}]"]
            rows.append([result.at["mixing"], result.at["seed"], moment["step"], *shares, *fit])
    degrees = [f"degree {d}" for d in SHOWN]
    columns = ["mixing", "seed", "step", *degrees, f"beyond {DEGREE}", "loss", "width of its band", "outside the band"]
    return Table("Before and after training (band and distance as shares of the loss)", columns, rows)


EXPERIMENT = Experiment("hermite", "Hermite degrees over training", CLAIM, trials, conclude)
