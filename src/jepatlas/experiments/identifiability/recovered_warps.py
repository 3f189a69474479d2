"""Recovery in worlds that are not Gaussian: up to a rotation and one monotone warp, which the dynamics determine.

    h = Q w(z),   w the first eigenfunction of each coordinate's dynamics

Two stationary laws have the same generalised normal density. For Langevin motion w solves a Sturm–Liouville problem;
for a Gaussian copula w = Φ⁻¹∘F. So the warp cannot be read off the density, and each law must fit its own prediction
better than the other's. Latents are those of the spectral solver, which needs no training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import CurvePanel, Curves, Table
from jepatlas.core.linear import Split, hold_out, procrustes, whitener
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import fit_spectral, fresh_observations, recipe_for
from jepatlas.experiments.engine.rules import Criterion, as_verdicts, combined, decide
from jepatlas.experiments.engine.run_tables import run_table
from jepatlas.experiments.engine.seed_tables import curve, horizontal, mean_and_range, select
from jepatlas.identifiability import WarpSides, fit_warp, sturm_liouville_generalised_normal, warp_recovery
from jepatlas.identifiability.warps.warp import Curve as Warp
from jepatlas.recipes import Recipe
from jepatlas.worlds import CopulaGeneralisedNormal, LangevinGeneralisedNormal, LatentWorld, SinusoidalShear
from jepatlas.worlds.generalised_normal import to_gaussian

__all__ = ["EXPERIMENT", "run"]

RHO = 0.95
LAWS = {"Langevin": LangevinGeneralisedNormal, "copula": CopulaGeneralisedNormal}
RECOVERED = 0.98  # R² of the state, warp undone
AGREES = 0.99  # squared correlation of the fitted with the predicted warp

CLAIM = Claim(
    statement="Where the world is not Gaussian, its state is recovered up to a rotation and the monotone first "
    "eigenfunction of its dynamics.",
    source="When Does LeJEPA Learn a World Model?, Theorem 2 and its proof",
    proven="that the first eigenfunction is monotone, and affine only for the Gaussian, for stationary additive noise",
)


@dataclass(frozen=True)
class Plan:
    alphas: tuple[float, ...]
    pairs: int
    rows: int
    seeds: int


ALPHAS = (1.5, 4.0, 8.0, 32.0)
SCALES = {
    "tiny": Plan((4.0,), 500, 1000, 1),
    "small": Plan(ALPHAS, 20_000, 20_000, 3),
    "paper": Plan(ALPHAS, 200_000, 100_000, 5),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    every = []
    for law, alpha, s in product(LAWS, plan.alphas, range(seed, seed + plan.seeds)):
        world = LatentWorld(LAWS[law](dim=2, rho=RHO, alpha=alpha), SinusoidalShear())
        recipe = to_plain(recipe_for(scale, world, steps=1, seed=s))
        settings = {"recipe": recipe, "pairs": plan.pairs, "rows": plan.rows}
        every.append(Trial({"law": law, "alpha": alpha, "seed": s}, run, settings))
    return every


def run(settings: Plain, folder: str) -> Plain:
    """Recovery with the warp undone, and the advantage of the law's own predicted warp over the other law's."""
    del folder  # nothing is trained
    recipe = from_plain(Recipe, settings["recipe"])
    law = recipe.world.law
    assert isinstance(law, (LangevinGeneralisedNormal, CopulaGeneralisedNormal))
    x, z = fresh_observations(recipe, settings["rows"])
    h = fit_spectral(recipe, settings["pairs"]).apply(x)
    split = hold_out(len(z), numpy_generator(recipe.seed, "split"))
    white = whitener(h[split.fit]).apply(h)  # a warp has one scale for all latents
    fits = WarpSides(fit_warp(white[split.fit], z[split.fit]), None, None, "states")
    warps = predicted_warps(law.alpha)
    own = warps.pop("copula" if isinstance(law, CopulaGeneralisedNormal) else "Langevin")
    (other,) = warps.values()
    rng = numpy_generator(recipe.seed, "warp")
    found = warp_recovery(white, z, split, rng, fits=fits, predicted=own, replicates=100)
    found["advantage"] = _advantage(white, z, split, (own, other), rng)
    return {"status": "finished", "verdicts": as_verdicts(found, "held out")}


def predicted_warps(alpha: float) -> dict[str, Warp]:
    solved = sturm_liouville_generalised_normal(alpha, 1)
    return {"Langevin": solved.warp, "copula": lambda z: to_gaussian(z, alpha)}


def _advantage(
    h: np.ndarray, z: np.ndarray, split: Split, warps: tuple[Warp, Warp], rng: np.random.Generator
) -> Estimate:
    """By how much more R² the first warp explains the latents than the second, each up to a rotation and a scale."""
    missed = []
    for warp in warps:
        warped = warp(z)
        turn = procrustes(warped[split.fit], h[split.fit], scaled=True)
        missed.append(np.square(h[split.score] - turn.apply(warped[split.score])).sum(1))
    total = np.square(h[split.score] - h[split.score].mean(0)).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {"advantage": float(weights @ (missed[1] - missed[0]) / (weights @ total))}

    return bootstrap(statistic, len(split.score), rng, replicates=100)["advantage"]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """Three parts: recovery with the warp undone, the predicted warp, and not that of the other dynamics."""
    alphas = SCALES[scale].alphas
    parts = {
        f"R² of the state with the warp undone > {RECOVERED}": ("r2_unwarped", RECOVERED),
        f"squared correlation of fitted and predicted warp > {AGREES}": ("agreement", AGREES),
        "advantage over the other law's warp > 0": ("advantage", 0.0),
    }
    criteria = []
    outcomes = []
    for name, (measure, threshold) in parts.items():
        numbers = [result.estimate(measure) for result in results]
        criteria.append(Criterion.for_all(name, [number.low > threshold for number in numbers]))
        outcomes.append(decide(numbers, threshold=threshold))
    least = {
        name: float(np.nanmin([result.value(name) for result in results])) for name in ("r2_unwarped", "agreement")
    }
    return Finding(
        combined(outcomes),
        f"With the warp undone R² is at least {least['r2_unwarped']:.3f}; the squared correlation of fitted "
        f"and predicted warp is at least {least['agreement']:.3f}.",
        criteria=tuple(criteria),
        verdicts=(_verdict(results),),
        figures=(_figure(results, alphas),),
        tables=(_table(results),),
    )


def _verdict(results: Sequence[Result]) -> Verdict:
    return Verdict.judge(
        "agreement",
        mean_and_range(results, "agreement"),
        direction="higher",
        threshold=AGREES,
        good="The warp is that of the dynamics in all worlds (limits: range over runs).",
        bad="In some world the warp is not demonstrably that of the dynamics (limits: range over runs).",
    )


def _figure(results: Sequence[Result], alphas: Sequence[float]) -> Curves:
    names = {"r2": "linear", "r2_unwarped": "warp undone", "agreement": "warp against predicted"}
    panels = []
    for law in LAWS:
        series = []
        for measure, name in names.items():
            means = [mean_and_range(select(results, law=law, alpha=alpha), measure) for alpha in alphas]
            series.append(curve(name, alphas, means))
        panels.append(CurvePanel(series, law))
    advantages = []
    for law in LAWS:
        means = [mean_and_range(select(results, law=law, alpha=alpha), "advantage") for alpha in alphas]
        advantages.append(curve(law, alphas, means))
    panels.append(CurvePanel([*advantages, horizontal("none", alphas, 0.0)], "own warp minus the other law's"))
    return Curves(
        title="Recovery up to a warp",
        x_label="α of the density (2: Gaussian)",
        y_label="R²",
        log_x=True,
        panels=panels,
        note="Bands: range over seeds.",
    )


def _table(results: Sequence[Result]) -> Table:
    measured = {
        "R²": "r2",
        "R², warp undone": "r2_unwarped",
        "warp against predicted": "agreement",
        "R² of h by the predicted warp": "r2_inverse_predicted",
        "advantage over the other law's warp": "advantage",
    }
    return run_table("All runs", results, {"law": "law", "α": "alpha", "seed": "seed"}, measured)


EXPERIMENT = Experiment("warp-recovery", "Recovery up to a warp", CLAIM, trials, conclude)
