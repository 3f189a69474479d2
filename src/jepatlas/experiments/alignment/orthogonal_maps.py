"""Are maps between agents that never met orthogonal? Those of LeJEPA must be: W = Q₂Q₁ᵀ. Others are free in GL(d).

Exact whitening has the same loss for h and Ah: the encoder in front of it is identified up to GL(d), and nothing asks
for an orthogonal map there. In whitened coordinates *every* exact linear map is orthogonal (its singular values are
the canonical correlations), so what tells objectives apart is orthogonality in the latents' own coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jepatlas.alignment.maps import Conditioning
from jepatlas.alignment.nulls import Null, permutation_null
from jepatlas.core.linear import Split, hold_out, least_squares, r2
from jepatlas.core.linear_moments import least_squares_of
from jepatlas.core.pair_moments import PairMoments
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.experiments.alignment.agents import Meeting, meet, two_recipes
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, as_verdicts
from jepatlas.experiments.engine.latent_trials import r2_of_state
from jepatlas.experiments.engine.seed_tables import cell, mean_and_range, select
from jepatlas.objectives import CovarianceConfig, InfoNCEConfig, WhiteningConfig

__all__ = ["EXPERIMENT", "run"]

ORTHOGONAL, LINEAR, CHANCE = 0.1, 0.95, 0.05
OBJECTIVES = {"LeJEPA": None, "whitening": WhiteningConfig(), "VICReg": CovarianceConfig(), "InfoNCE": InfoNCEConfig()}
MEASURES = {
    "W, as trained": "orthogonality_raw",
    "up to scale": "orthogonality_scaled",
    "whitened": "orthogonality",
    "κ(W)": "condition",
    "R² of agent 2": "r2",
    "R² of the truth, 1": "r2_truth_1",
    "R² of the truth, 2": "r2_truth_2",
}

CLAIM = Claim(
    statement="Latents of agents that were trained apart differ by an approximate isometry. That the objective asks "
    "for one follows for LeJEPA (W = Q₂Q₁ᵀ), and not where a loss is invariant under every invertible matrix.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, abstract and section "
    "3.2; When Does LeJEPA Learn a World Model?, Theorem 1",
    proven="for LeJEPA's exact optimum in a Gaussian world; Social-JEPA proves no more than that its loss leaves GL(d) "
    "free",
    measured="κ(W) 1.7 on smallNORB (R² .891); orthogonality is recommended as a check, and not reported",
)


@dataclass(frozen=True)
class Plan:
    grid: tuple[tuple[str, int], ...]  # objective, dimensions
    steps: int
    seeds: int
    states: int


_MAIN = (("LeJEPA", 2), ("whitening", 2), ("LeJEPA", 4), ("whitening", 4))
_ALL = (*_MAIN, ("VICReg", 2), ("InfoNCE", 2))
SCALES = {
    "tiny": Plan((("LeJEPA", 2), ("whitening", 2)), 40, 1, 600),
    "small": Plan(_ALL, 3000, 3, 10_000),
    "paper": Plan((*_ALL, ("VICReg", 4), ("InfoNCE", 4)), 20_000, 5, 20_000),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    return [
        Trial(
            {"objective": name, "dim": dim, "seed": s},
            run,
            {
                "recipes": two_recipes(scale, dim, plan.steps, s, OBJECTIVES[name]),
                "states": plan.states,
                "seed": s,
                "before_whitening": name == "whitening",
            },
        )
        for name, dim in plan.grid
        for s in range(seed, seed + plan.seeds)
    ]


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    recipes, states, seed = settings["recipes"], settings["states"], settings["seed"]
    record, met = meet(recipes, folder, states, seed, before_whitening=settings["before_whitening"])
    return record if met is None else record | {"verdicts": _measured(met, seed)}


def _measured(met: Meeting, seed: int) -> list[dict[str, Any]]:
    split = hold_out(len(met.z), numpy_generator(seed, "split"))
    found = _map(met, split, seed) | {
        f"r2_truth_{number}": r2_of_state(h, met.z, seed) for number, h in ((1, met.a), (2, met.b))
    }
    agreement, null = _agreement(met, split, seed)
    chance = Estimate(null.p, null.p, null.p, null.n_permutations)
    judged = Verdict.judge("r2", agreement, direction="higher", null=null.mean, good="held-out R² of the map")
    return [
        judged.to_json(),
        *as_verdicts({"p": chance}, "by permutation", "lower"),
        *as_verdicts(found, "of the fitted map"),
    ]


def _map(met: Meeting, split: Split, seed: int) -> dict[str, Estimate]:
    """Singular values of W and what follows from them; the map is fitted anew for every replicate."""
    a, b = met.a[split.fit], met.b[split.fit]

    def statistic(weights: np.ndarray) -> dict[str, float]:
        moments = PairMoments.of(a, b, weights)
        found = Conditioning.of(least_squares_of(moments), moments)
        assert found.orthogonality is not None  # the pairs are known
        return {
            "orthogonality": found.orthogonality,
            "orthogonality_raw": found.orthogonality_raw,
            "orthogonality_scaled": found.orthogonality_scaled,
            "condition": found.condition,
        }

    return bootstrap(statistic, len(a), numpy_generator(seed, "map"), replicates=200)


def _agreement(met: Meeting, split: Split, seed: int) -> tuple[Estimate, Null]:
    """Held-out R² of the map with its interval, and what maps between rows paired at random reach."""
    fit, score = split

    def r2_of(order: np.ndarray) -> dict[str, float]:
        b = met.b[order]
        return {"r2": r2(b[score], least_squares(met.a[fit], b[fit]).apply(met.a[score]))}

    predicted = least_squares(met.a[fit], met.b[fit]).apply(met.a[score])
    rows = bootstrap(lambda w: {"r2": r2(met.b[score], predicted, w)}, len(score), numpy_generator(seed, "rows"))
    null = permutation_null(r2_of, len(met.a), numpy_generator(seed, "null"), directions="higher")
    return rows["r2"], null["r2"]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    lejepa, free = (select(results, objective=name) for name in ("LeJEPA", "whitening"))
    straight = [r.estimate("orthogonality_raw").high <= ORTHOGONAL for r in lejepa]
    bent = [r.estimate("orthogonality_raw").low > ORTHOGONAL for r in free]
    linear = [r.estimate("r2").low >= LINEAR and r.value("p") <= CHANCE for r in (*lejepa, *free)]
    rules = [all(straight), all(bent), all(linear)]
    over = {name: mean_and_range(runs, "orthogonality_raw") for name, runs in (("LeJEPA", lejepa), ("free", free))}
    return Finding(
        "holds" if all(rules) else "holds in part" if any(rules[:2]) else "does not hold",
        f"‖WᵀW − I‖/‖I‖ is {cell(over['LeJEPA'])} between LeJEPA agents (at most {ORTHOGONAL} at the upper limit in "
        f"{sum(straight)} of {len(straight)} pairs) and {cell(over['free'], 1)} between encoders that are free up to "
        f"GL(d) (above it at the lower limit in {sum(bent)} of {len(bent)}). In {sum(linear)} of {len(linear)} pairs "
        f"the held-out R² of the map is at least {LINEAR} at the lower limit, and beyond what random pairing gives. "
        "(In whitened coordinates every exact linear map is orthogonal, so it is not judged there.)",
        short=f"off a rotation: LeJEPA {over['LeJEPA'].value:.3f}, free encoders {over['free'].value:.3g}",
        verdicts=(_verdict(over["LeJEPA"], straight),),
        figures=(_figure(results),),
        tables=(_table(results),),
    )


def _verdict(found: Estimate, straight: Sequence[bool]) -> Verdict:
    return Verdict.judge(
        "orthogonality_raw",
        found,
        direction="lower",
        threshold=ORTHOGONAL,
        good="Maps between LeJEPA agents are rotations or reflections, as theory says.",
        bad=f"Maps between LeJEPA agents are not shown to be rotations: {sum(straight)} of {len(straight)} pairs are.",
    )


def _figure(results: Sequence[Result]) -> dict[str, Any]:
    series = [
        {
            "name": name,
            "x": [r.value("r2") for r in runs],
            "y": [r.value("orthogonality_raw") for r in runs],
            "points": True,
        }
        for name in OBJECTIVES
        if (runs := [r for r in select(results, objective=name) if np.isfinite(r.value("r2"))])
    ]
    return {
        "kind": "curves",
        "title": "Linear is not yet orthogonal: every pair of agents",
        "log_y": True,
        "x_label": "held-out R² of the map",
        "y_label": "‖WᵀW − I‖ / ‖I‖",
        "series": series,
    }


def _table(results: Sequence[Result]) -> dict[str, Any]:
    rows = [
        [
            r.at["objective"],
            r.at["dim"],
            r.at["seed"],
            r.status,
            *(cell(r.estimate(name)) for name in MEASURES.values()),
            f"{r.value('p'):.2f}",
        ]
        for r in results
    ]
    return {
        "title": "Maps between two agents; orthogonality as ‖WᵀW − I‖/‖I‖, lower is better; 'whitening' is the "
        "encoder's output before it is whitened",
        "columns": ["objective", "d", "seed", "status", *MEASURES, "p"],
        "rows": rows,
    }


EXPERIMENT = Experiment("orthogonal-maps", "Maps between agents that never met", CLAIM, trials, conclude)
