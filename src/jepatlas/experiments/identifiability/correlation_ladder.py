"""Mehler's formula: the part of degree d of any map has correlation ρ^d between views, if the world is Gaussian.

Nothing is trained, because the formula is about any map: the maps are the observations of three mixings. (The spiral
has nine tenths of its variance above degree 4.) Two stationary worlds that are not Gaussian are controls. Their ladder
is predicted from their own correlation, and must be found wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.data import Transitions
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Criterion, count_met, decide
from jepatlas.experiments.engine.run_tables import run_table
from jepatlas.experiments.engine.seed_tables import curve, mean_and_range, select
from jepatlas.identifiability import degree_variances, loss_decomposition, mehler_ladder, mehler_verdicts
from jepatlas.worlds import (
    AnyLaw,
    AnyMixing,
    CopulaGeneralisedNormal,
    Coupling,
    LatentWorld,
    OrnsteinUhlenbeck,
    ParabolicShear,
    SinusoidalShear,
    UniformWalk,
)

__all__ = ["EXPERIMENT", "run"]

DEGREE = 4
PRESENT = 0.01  # smallest share of the map's variance for which the correlation of a degree is tested
WITHIN = 0.05  # largest distance of a correlation from its prediction, and relative distance of a loss
GAUSSIAN: dict[str, AnyLaw] = {
    "ρ = .9": OrnsteinUhlenbeck(2, 0.9),
    "ρ = .95 and .8": OrnsteinUhlenbeck(2, (0.95, 0.8)),
}
CONTROLS: dict[str, AnyLaw] = {
    "uniform walk": UniformWalk(2, step=0.5),
    "copula of Laplace": CopulaGeneralisedNormal(2, 0.9, alpha=1.0),
}
LAWS = GAUSSIAN | CONTROLS
MIXINGS: tuple[AnyMixing, ...] = (SinusoidalShear(), ParabolicShear(), Coupling(seed=1))

CLAIM = Claim(
    statement="In a Gaussian world the part of degree d of any map keeps correlation ρ^d between views, and the "
    "alignment loss is 2 Σ (1 − ρ^d) v_d.",
    source="When Does LeJEPA Learn a World Model?, Mehler's formula in the proof of Theorem 1",
    proven="for Gaussian states",
    assumed="Mehler's formula is an axiom in the Lean proof",
)


@dataclass(frozen=True)
class Plan:
    seeds: int
    rows: int
    replicates: int


SCALES = {"tiny": Plan(1, 2000, 20), "small": Plan(3, 160_000, 100), "paper": Plan(5, 200_000, 500)}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    every = []
    for law, mixing, s in product(LAWS, MIXINGS, range(seed, seed + plan.seeds)):
        world = LatentWorld(LAWS[law], mixing)
        settings = {"world": to_plain(world), "rows": plan.rows, "replicates": plan.replicates, "seed": s}
        every.append(Trial({"law": law, "mixing": mixing.kind, "seed": s}, run, settings))
    return every


def run(settings: Plain, folder: str) -> Plain:
    """Verdicts of the ladder and the loss, and the share of each degree."""
    del folder  # nothing is trained
    world = from_plain(LatentWorld, settings["world"])
    rho = world.correlation
    assert rho is not None
    pairs = Transitions().draw(world, settings["rows"], torch_generator(settings["seed"], "ladder"))
    x, x_next, z, z_next = (tensor.double().numpy() for tensor in (pairs.x, pairs.x_next, pairs.z, pairs.z_next))
    rng = numpy_generator(settings["seed"], "ladder")
    more = {"degree": DEGREE, "replicates": settings["replicates"]}
    variances = degree_variances(x, z, DEGREE, rng, replicates=1)
    ladder = mehler_ladder(x, z, z_next, rho, rng, **more)
    loss = loss_decomposition(x, x_next, z, rho, rng, **more)
    shares = {str(d): variances[f"degree_{d}"].value / variances["total"].value for d in range(1, DEGREE + 1)}
    verdicts = [verdict.to_json() for verdict in mehler_verdicts(ladder, loss)]
    measured = {f"correlation_{d}": ladder[f"correlation_{d}"] for d in range(1, DEGREE + 1)}
    measured |= {f"gap_{d}": ladder[f"gap_{d}"] for d in range(1, DEGREE + 1)}
    informing = [Verdict.judge(name, one, direction="higher", good="").to_json() for name, one in measured.items()]
    return {"status": "finished", "verdicts": verdicts + informing, "shares": shares}


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """In Gaussian worlds all distances must be within WITHIN. Undecided unless each control has one beyond it."""
    del scale
    gaussian = [result for result in results if result.at["law"] in GAUSSIAN and result.record]
    distances = [distance for result in gaussian for distance in _distances(result).values()]
    within = [distance.high <= WITHIN for distance in distances]
    caught = []
    for law in CONTROLS:
        controls = select(results, law=law)
        caught.append(any(one.low > WITHIN for result in controls for one in _distances(result).values()))
    largest = max((distance.value for distance in distances), default=np.nan)
    outcome = decide(distances, threshold=WITHIN, direction="lower")
    return Finding(
        outcome if all(caught) else "undecided",
        f"In Gaussian worlds correlations and losses are off by at most {largest:.3f}; "
        f"the ladder is wrong in {count_met(caught)} other worlds.",
        criteria=(
            Criterion(f"distances, Gaussian worlds: at most {WITHIN}", count_met(within), "all", all(within)),
            Criterion.for_all(f"controls with a distance above {WITHIN}", caught),
        ),
        verdicts=(_verdict(distances),),
        figures=(_figure(results),),
        tables=(_table(results),),
    )


def _distances(result: Result) -> dict[str, Estimate]:
    """Distance from the prediction of each correlation of a degree that is present, and of the loss."""
    shares = result.record.get("shares", {})
    names = [f"ladder_{degree}" for degree, share in shares.items() if share >= PRESENT]
    return {name: result.estimate(name) for name in (*names, "loss_decomposition")}


def _verdict(distances: Sequence[Estimate]) -> Verdict:
    worst = max(distances, key=lambda distance: distance.high, default=Estimate.undefined(0))
    return Verdict.judge(
        "largest_distance",
        worst,
        direction="lower",
        threshold=WITHIN,
        good="All correlations and losses of Gaussian worlds are those of Mehler's formula.",
        bad="Some correlation or loss of a Gaussian world is not demonstrably that of Mehler's formula.",
    )


def _figure(results: Sequence[Result]) -> Curves:
    degrees = list(range(1, DEGREE + 1))
    panels = []
    for law in LAWS:
        series = []
        for mixing in MIXINGS:
            runs = select(results, law=law, mixing=mixing.kind)
            shown = [d for d in degrees if _mean_share(runs, d) >= PRESENT]
            measured = [mean_and_range(runs, f"correlation_{d}") for d in shown]
            expected = [
                mean_and_range(runs, f"correlation_{d}").value - mean_and_range(runs, f"gap_{d}").value for d in shown
            ]
            series += [
                curve(mixing.kind, shown, measured, points=True),
                Curve(f"{mixing.kind}, predicted", shown, expected, dash=True),
            ]
        panels.append(CurvePanel(series, law if law in GAUSSIAN else f"control: {law}"))
    return Curves(
        title="Correlation between views by Hermite degree",
        x_label="degree d",
        y_label="correlation",
        panels=panels,
        note=f"Degrees with at least {PRESENT:.0%} of the map's variance. Bands: range over seeds.",
    )


def _mean_share(runs: Sequence[Result], degree: int) -> float:
    return float(np.mean([run.record.get("shares", {}).get(str(degree), 0.0) for run in runs])) if runs else 0.0


def _table(results: Sequence[Result]) -> Table:
    measured: Plain = {}
    for d in range(1, DEGREE + 1):
        measured[f"share, degree {d}"] = lambda result, d=d: (
            f"{result.record.get('shares', {}).get(str(d), np.nan):.3f}"
        )
        measured[f"distance, degree {d}"] = f"ladder_{d}"
    measured["distance of the loss"] = "loss_decomposition"
    return run_table("All runs", results, {"world": "law", "map": "mixing", "seed": "seed"}, measured)


EXPERIMENT = Experiment("mehler", "Mehler's ladder of correlations", CLAIM, trials, conclude)
