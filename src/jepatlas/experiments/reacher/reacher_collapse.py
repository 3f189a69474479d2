"""Reacher from pixels with batch normalisation in the encoder, with group normalisation, and without any.

A run has collapsed if training stopped it for that, or if some latent direction has hardly any variance over held-out
episodes at the end; at LeJEPA's optimum every direction has variance 1. The truth is not used. R² is reported as well,
since an encoder that has not collapsed need not be good. The weight λ of SIGReg works against collapse, and the λ of
the published share is unknown: runs have the λ of the other experiments or a tenth of it, and are counted together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import paired_difference, success_rate
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Criterion, outcome_in_stages
from jepatlas.experiments.engine.run_tables import run_table
from jepatlas.experiments.engine.seed_tables import cell, grouped, mean_and_range, select
from jepatlas.experiments.reacher.reacher_encoders import probed_trial, reacher_recipe
from jepatlas.nn.network_configs import Norm
from jepatlas.worlds import OrnsteinUhlenbeckMotion

__all__ = ["EXPERIMENT", "collapsed"]

NORMS: tuple[Norm, ...] = get_args(Norm)
TITLES = {"batch": "batch normalisation", "group": "group normalisation", "none": "none"}
PUBLISHED = 0.36
FLAT = 0.1
R2 = "angles_gaussian_gaussian"
SCALES = {"tiny": (1, 12, (1e-2,)), "small": (8, 300, (1e-2, 1e-3)), "paper": (25, 39_000, (1e-2, 1e-3))}
"""Seeds, steps, and λ."""

CLAIM = Claim(
    statement="Without batch normalisation in the encoder more than a third of the runs on Reacher images collapse.",
    source="When Does LeJEPA Learn a World Model?, Reacher",
    measured="about 36% of the runs without batch normalisation",
)

Runs = Mapping[Norm, list[Result]]


def trials(scale: Scale, seed: int) -> list[Trial]:
    """The same seeds, and therefore the same images, for all normalisations."""
    seeds, steps, weights = SCALES[scale]
    numbers = range(seed, seed + seeds)
    return [_trial(scale, s, steps, norm, weight) for norm in NORMS for weight in weights for s in numbers]


def _trial(scale: Scale, seed: int, steps: int, norm: Norm, weight: float) -> Trial:
    """Training checks for collapse in its second half only, since early collapse may recover."""
    recipe = reacher_recipe(scale, seed, OrnsteinUhlenbeckMotion(rho=0.9), norm=norm, weight=weight)
    training = replace(recipe.training, steps=steps, grace=steps // 2, log_every=max(1, steps // 12))
    return probed_trial(scale, replace(recipe, training=training), norm=norm, weight=weight)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if both criteria are met, and in part if the first one is."""
    del scale
    ended = [result for result in results if collapsed(result) is not None]
    runs: Runs = {norm: select(ended, norm=norm) for norm in NORMS}
    shares = {norm: _share(found) for norm, found in runs.items()}
    more = _difference(runs)
    without = shares["none"]
    criteria = (
        Criterion("share of collapsed runs, none − batch", cell(more, 2), "> 0", more.low > 0),
        Criterion(
            "share of collapsed runs, none",
            cell(without, 2),
            f"interval contains {PUBLISHED}",
            without.low <= PUBLISHED <= without.high,
        ),
    )
    first, second = criteria
    counts = ", ".join(f"{norm} {_count(found)}" for norm, found in runs.items())
    return Finding(
        outcome_in_stages(first.met, second.met),
        f"Collapsed runs by normalisation: {counts}.",
        criteria=criteria,
        verdicts=(
            _difference_verdict(more),
            *(
                Verdict.judge(f"collapsed_{norm}", share, direction="lower", good="Share of runs that collapsed.")
                for norm, share in shares.items()
            ),
        ),
        figures=(_figure(runs),),
        tables=(_table(results), _summary_table(runs, shares)),
    )


def collapsed(result: Result) -> bool | None:
    """Whether a run collapsed; None if it crashed."""
    if result.status == "failed":
        return True
    smallest = result.value("smallest_variance")
    return None if np.isnan(smallest) else smallest < FLAT


def _outcomes(runs: Sequence[Result]) -> np.ndarray:
    return np.array([bool(collapsed(result)) for result in runs])


def _share(runs: Sequence[Result]) -> Estimate:
    return success_rate(_outcomes(runs)) if runs else Estimate.undefined(0)


def _count(runs: Sequence[Result]) -> str:
    return f"{int(_outcomes(runs).sum())} of {len(runs)}"


def _difference(runs: Runs) -> Estimate:
    """Share of collapsed runs without normalisation minus that with batch normalisation, paired by seed and λ."""
    without = {(run.at["weight"], run.at["seed"]): run for run in runs["none"]}
    batch = {(run.at["weight"], run.at["seed"]): run for run in runs["batch"]}
    shared = sorted(without.keys() & batch.keys())
    if not shared:
        return Estimate.undefined(0)
    return paired_difference(
        _outcomes([without[place] for place in shared]), _outcomes([batch[place] for place in shared])
    )


def _difference_verdict(more: Estimate) -> Verdict:
    return Verdict.judge(
        "more_collapse_without",
        more,
        direction="higher",
        threshold=0.0,
        null=0.0,
        good="More runs collapse without batch normalisation (paired comparison).",
        bad="It is not shown that more runs collapse without batch normalisation (paired comparison).",
    )


def _figure(runs: Runs) -> Curves:
    panels = []
    for weight in dict.fromkeys(r.at["weight"] for found in runs.values() for r in found):
        series = []
        for norm, found in runs.items():
            chosen = select(found, weight=weight)
            x = [_value_at_end(r, "smallest_variance") for r in chosen]
            series.append(Curve(TITLES[norm], x, [_value_at_end(r, R2) for r in chosen], points=True))
        panels.append(CurvePanel(series, f"λ = {weight:g}"))
    return Curves(
        title="All runs",
        x_label="smallest variance of a latent direction",
        y_label="R², Gaussian poses",
        panels=panels,
        note="Runs that were stopped are at 0.",
    )


def _value_at_end(result: Result, name: str) -> float:
    return 0.0 if result.status == "failed" else result.value(name)


def _summary_table(runs: Runs, shares: Mapping[str, Estimate]) -> Table:
    rows = []
    for norm, found in runs.items():
        counts = [f"{_count(of)} at λ = {weight:g}" for (weight,), of in grouped(found, "weight").items()]
        r2 = cell(mean_and_range(found, R2, stopped=0.0))
        rows.append([TITLES[norm], cell(shares[norm], 2), ", ".join(counts), r2])
    columns = ["normalisation", "share of collapsed runs", "by λ", "R², Gaussian poses"]
    return Table("Collapsed runs [Wilson's 95% interval], and mean R² with stopped runs as 0 [range]", columns, rows)


def _table(results: Sequence[Result]) -> Table:
    answers = {True: "yes", False: "no", None: "–"}
    places = {
        "normalisation": lambda result: TITLES[result.at["norm"]],
        "λ": lambda result: f"{result.at['weight']:g}",
        "seed": "seed",
    }
    measured = {
        "collapsed": lambda result: answers[collapsed(result)],
        "smallest variance": lambda result: f"{result.value('smallest_variance'):.3g}",
        "R², Gaussian poses": R2,
        "R², held-out episodes": "angles_own_own",
    }
    return run_table("All runs", results, places, measured)


EXPERIMENT = Experiment("reacher-collapse", "Reacher from pixels: normalisation and collapse", CLAIM, trials, conclude)
