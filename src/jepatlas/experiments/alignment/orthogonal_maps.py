"""Are maps between independently trained agents orthogonal? For LeJEPA they must be, W = Q₂Q₁ᵀ.

Exact whitening has the same loss for h and Ah, so the encoder in front of it is identified only up to GL(d), and its
maps need not be orthogonal. In whitened coordinates *every* exact linear map is orthogonal (its singular values are the
canonical correlations), so objectives are compared by orthogonality in the latents' own coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from jepatlas.alignment.evidence import HeldOut
from jepatlas.alignment.maps import Conditioning
from jepatlas.core.figures import Curves, Table
from jepatlas.core.linear import Split, hold_out, least_squares, r2
from jepatlas.core.linear_moments import PairMoments, least_squares_of
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.experiments.alignment.latent_pairs import TrainedPair, paired_recipes, train_pair
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import r2_of_state
from jepatlas.experiments.engine.rules import Criterion, Outcome, as_verdicts, count_met
from jepatlas.experiments.engine.seed_tables import cell, mean_and_range, scatter, select
from jepatlas.objectives import CovarianceConfig, InfoNCEConfig, WhiteningConfig

__all__ = ["EXPERIMENT", "run"]

ORTHOGONAL = 0.1  # largest ‖WᵀW − I‖/‖I‖ of a map that counts as orthogonal
LINEAR = 0.95  # least R² of a map that counts as linear
CHANCE = 0.05  # largest p-value of that R²
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
    statement="Latents of independently trained agents differ by an approximate isometry. This follows from the "
    "objective for LeJEPA (W = Q₂Q₁ᵀ), but not if the loss is invariant under every invertible matrix.",
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
    every = []
    for (name, dim), s in product(plan.grid, range(seed, seed + plan.seeds)):
        settings = {
            "recipes": paired_recipes(scale, dim, plan.steps, s, OBJECTIVES[name]),
            "states": plan.states,
            "seed": s,
            "before_whitening": name == "whitening",
        }
        every.append(Trial({"objective": name, "dim": dim, "seed": s}, run, settings))
    return every


def run(settings: Plain, folder: str) -> Plain:
    seed = settings["seed"]
    record, pair = train_pair(
        settings["recipes"], folder, settings["states"], seed, before_whitening=settings["before_whitening"]
    )
    return record if pair is None else record | {"verdicts": _measure(pair, seed)}


def _measure(pair: TrainedPair, seed: int) -> list[Plain]:
    split = hold_out(len(pair.z), numpy_generator(seed, "split"))
    conditioning = _conditioning(pair, split, seed)
    conditioning |= {f"r2_truth_{i}": r2_of_state(h, pair.z, seed) for i, h in ((1, pair.a), (2, pair.b))}
    test = HeldOut(
        n=len(pair.z),
        split=split,
        fit=lambda rows, partners: least_squares(pair.a[rows], pair.b[partners]),
        score=lambda model, rows, partners: {"r2": r2(pair.b[partners], model.apply(pair.a[rows]))},
        refit=True,
    )
    predicted = test.model.apply(pair.a[split.score])
    rng = numpy_generator(seed, "rows")
    found = bootstrap(lambda w: {"r2": r2(pair.b[split.score], predicted, w)}, len(predicted), rng)
    null = test.null(numpy_generator(seed, "null"), directions="higher")["r2"]
    judged = Verdict.judge("r2", found["r2"], direction="higher", null=null.mean, good="held-out R² of the map")
    chance = {"p": Estimate.exact(null.p, null.n_permutations)}
    return [
        judged.to_json(),
        *as_verdicts(chance, "by permutation", "lower"),
        *as_verdicts(conditioning, "of the fitted map"),
    ]


def _conditioning(pair: TrainedPair, split: Split, seed: int) -> dict[str, Estimate]:
    """Orthogonality and condition of W; the map is fitted anew for every bootstrap replicate."""
    a = pair.a[split.fit]
    b = pair.b[split.fit]

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


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if all criteria are met, and in part if one of the first two is."""
    del scale
    lejepa = select(results, objective="LeJEPA")
    free = select(results, objective="whitening")
    orthogonal = [r.estimate("orthogonality_raw").high <= ORTHOGONAL for r in lejepa]
    oblique = [r.estimate("orthogonality_raw").low > ORTHOGONAL for r in free]
    linear = [r.estimate("r2").low >= LINEAR and r.value("p") <= CHANCE for r in (*lejepa, *free)]
    mean = mean_and_range(lejepa, "orthogonality_raw")
    mean_free = mean_and_range(free, "orthogonality_raw")
    name = "‖WᵀW − I‖/‖I‖"
    criteria = (
        Criterion.for_all(f"LeJEPA pairs with {name} ≤ {ORTHOGONAL}", orthogonal),
        Criterion.for_all(f"pairs free up to GL(d) with {name} > {ORTHOGONAL}", oblique),
        Criterion.for_all(f"pairs with R² ≥ {LINEAR} and p ≤ {CHANCE}", linear),
    )
    outcome: Outcome = "holds in part" if any(one.met for one in criteria[:2]) else "does not hold"
    if all(one.met for one in criteria):
        outcome = "holds"
    return Finding(
        outcome,
        f"{name} is {mean.value:.3f} between LeJEPA agents, and {mean_free.value:.3g} between encoders that are free "
        "up to GL(d).",
        criteria=criteria,
        verdicts=(_verdict(mean, orthogonal),),
        figures=(_figure(results),),
        tables=(_table(results),),
    )


def _verdict(found: Estimate, orthogonal: Sequence[bool]) -> Verdict:
    return Verdict.judge(
        "orthogonality_raw",
        found,
        direction="lower",
        threshold=ORTHOGONAL,
        good="Maps between LeJEPA agents are rotations or reflections, as theory predicts.",
        bad=f"Not all maps between LeJEPA agents are rotations or reflections: {count_met(orthogonal)} pairs are.",
    )


def _figure(results: Sequence[Result]) -> Curves:
    series = []
    for name in OBJECTIVES:
        runs = [r for r in select(results, objective=name) if np.isfinite(r.value("r2"))]
        if runs:
            series.append(scatter(name, runs, "r2", "orthogonality_raw"))
    return Curves(
        title="Linearity and orthogonality of the map, all pairs of agents",
        log_y=True,
        x_label="held-out R² of the map",
        y_label="‖WᵀW − I‖ / ‖I‖",
        series=series,
    )


def _table(results: Sequence[Result]) -> Table:
    rows = []
    for r in results:
        cells = [cell(r.estimate(name)) for name in MEASURES.values()]
        rows.append([r.at["objective"], r.at["dim"], r.at["seed"], r.status, *cells, f"{r.value('p'):.2f}"])
    title = (
        "Maps between two agents. Orthogonality is ‖WᵀW − I‖/‖I‖, lower is better; 'whitening' is the encoder's output "
        "before whitening"
    )
    return Table(title, ["objective", "d", "seed", "status", *MEASURES, "p"], rows)


EXPERIMENT = Experiment("orthogonal-maps", "Maps between independently trained agents", CLAIM, trials, conclude)
