"""Reacher from pixels, with batch normalisation in the encoder, with group normalisation, and without any.

A run has collapsed if training stopped it for that, or if at its end some latent direction has hardly any variance
over held-out episodes; LeJEPA's optimum gives every direction 1. No truth enters. R² is shown beside it: what has not
collapsed need not be good. The weight λ of SIGReg works against collapse, and we do not know at which λ the published
share was counted: runs have the λ of the other experiments, or a tenth of it, and count together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import paired_difference, success_rate
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, grouped, mean_and_range, select
from jepatlas.experiments.reacher.reacher_agents import reacher_recipe
from jepatlas.experiments.reacher.reacher_runs import probed
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
    statement="Without batch normalisation in the encoder a good third of the runs on Reacher's pictures collapses.",
    source="When Does LeJEPA Learn a World Model?, Reacher",
    measured="about 36% of the runs without batch normalisation",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    """The same seeds, so the same pictures, for all."""
    seeds, steps, weights = SCALES[scale]
    numbers = range(seed, seed + seeds)
    return [_trial(scale, s, steps, norm, weight) for norm in NORMS for weight in weights for s in numbers]


def _trial(scale: Scale, seed: int, steps: int, norm: Norm, weight: float) -> Trial:
    """A collapse is looked for in the second half of training: what is flat before may recover."""
    recipe = reacher_recipe(scale, seed, OrnsteinUhlenbeckMotion(rho=0.9), norm=norm, weight=weight)
    training = replace(recipe.training, steps=steps, grace=steps // 2, log_every=max(1, steps // 12))
    return probed(scale, replace(recipe, training=training), norm=norm, weight=weight)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds where more runs collapse without than with batch normalisation, and the published share is possible; in
    part where more do."""
    del scale
    ended = [r for r in results if collapsed(r) is not None]
    runs: dict[Norm, list[Result]] = {norm: select(ended, norm=norm) for norm in NORMS}
    shares = {norm: _share(of) for norm, of in runs.items()}
    more, published = _more(runs), shares["none"].low <= PUBLISHED <= shares["none"].high
    return Finding(
        "holds" if more.low > 0 and published else "holds in part" if more.low > 0 else "does not hold",
        f"Collapsed (stopped, or a direction with a variance below {FLAT} at the end): "
        + "; ".join(f"{TITLES[n]} {_count(of)} = {cell(shares[n], 2)} ({_by_weight(of)})" for n, of in runs.items())
        + f" (Wilson's 95% intervals; published without batch normalisation: {PUBLISHED}). Without it, "
        f"{cell(more, 2)} more than with it, run by run. R² of the angles on Gaussian poses, stopped runs as 0: "
        + "; ".join(f"{TITLES[n]} {cell(mean_and_range(of, R2, stopped=0.0))}" for n, of in runs.items())
        + ".",
        short="collapsed: " + ", ".join(f"{norm} {_count(of)}" for norm, of in runs.items()),
        verdicts=(
            _more_verdict(more),
            *(
                Verdict.judge(f"collapsed_{norm}", share, direction="lower", good="Share of runs that collapsed.")
                for norm, share in shares.items()
            ),
        ),
        figures=(_figure(runs),),
        tables=(_table(results),),
    )


def collapsed(result: Result) -> bool | None:
    """None where a run came to no end."""
    if result.status == "failed":
        return True
    smallest = result.value("smallest_variance")
    return None if np.isnan(smallest) else smallest < FLAT


def _outcomes(runs: Sequence[Result]) -> np.ndarray:
    return np.array([bool(collapsed(result)) for result in runs])


def _share(runs: Sequence[Result]) -> Estimate:
    return success_rate(_outcomes(runs)) if runs else Estimate(np.nan, np.nan, np.nan, 0)


def _count(runs: Sequence[Result]) -> str:
    return f"{int(_outcomes(runs).sum())} of {len(runs)}"


def _by_weight(runs: Sequence[Result]) -> str:
    return ", ".join(f"{_count(of)} at λ = {weight:g}" for (weight,), of in grouped(runs, "weight").items())


def _more(runs: Mapping[Norm, list[Result]]) -> Estimate:
    """How many more without than with batch normalisation, over seeds and λ that came to an end with both."""
    placed = [{(r.at["weight"], r.at["seed"]): r for r in runs[norm]} for norm in ("none", "batch")]
    shared = sorted(set(placed[0]) & set(placed[1]))
    if not shared:
        return Estimate(np.nan, np.nan, np.nan, 0)
    return paired_difference(*(_outcomes([of[place] for place in shared]) for of in placed))


def _more_verdict(more: Estimate) -> Verdict:
    return Verdict.judge(
        "more_collapse_without",
        more,
        direction="higher",
        threshold=0.0,
        null=0.0,
        good="More runs collapse without batch normalisation, run by run.",
        bad="That more runs collapse without batch normalisation is not shown.",
    )


def _figure(runs: Mapping[Norm, list[Result]]) -> dict[str, Any]:
    weights = dict.fromkeys(r.at["weight"] for of in runs.values() for r in of)
    panels = [
        {
            "title": f"λ = {weight:g}",
            "series": [
                {
                    "name": TITLES[norm],
                    "points": True,
                    "x": [_ended(r, "smallest_variance") for r in select(of, weight=weight)],
                    "y": [_ended(r, R2) for r in select(of, weight=weight)],
                }
                for norm, of in runs.items()
            ],
        }
        for weight in weights
    ]
    return {
        "kind": "curves",
        "title": "Every run",
        "x_label": "smallest variance of a latent direction",
        "y_label": "R², Gaussian poses",
        "panels": panels,
        "note": "Runs that were stopped are at 0.",
    }


def _ended(result: Result, name: str) -> float:
    return 0.0 if result.status == "failed" else result.value(name)


def _table(results: Sequence[Result]) -> dict[str, Any]:
    told = {True: "yes", False: "no", None: "–"}
    rows = [
        [
            TITLES[r.at["norm"]],
            f"{r.at['weight']:g}",
            r.at["seed"],
            r.status,
            told[collapsed(r)],
            f"{r.value('smallest_variance'):.3g}",
            cell(r.estimate(R2)),
            cell(r.estimate("angles_own_own")),
        ]
        for r in results
    ]
    columns = [
        "normalisation",
        "λ",
        "seed",
        "status",
        "collapsed",
        "smallest variance",
        "R², Gaussian poses",
        "R², held-out episodes",
    ]
    return {"title": "Every run", "columns": columns, "rows": rows}


EXPERIMENT = Experiment("reacher-collapse", "Reacher from pixels: normalisation and collapse", CLAIM, trials, conclude)
