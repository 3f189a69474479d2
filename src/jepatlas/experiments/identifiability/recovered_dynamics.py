"""Theorem 1 also recovers the dynamics: where h = Qz, the regression of later latents on latents is ρᵏ I.

    E[h_k | h] = ρᵏ h     for k steps of z' = ρz + √(1−ρ²)η

Latents of LeJEPA and of the spectral solver are regressed on themselves one and ten steps before, in the spiral and in
a shear. On the spiral three controls must fail: SIGReg alone (the observation is Gaussian already), an untrained
encoder, and the observation itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import torch

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import Bars, BarSeries, Table
from jepatlas.core.linear import distance_from_identity
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.core.stats import bootstrap
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import fit_spectral, r2_of_state, recipe_for
from jepatlas.experiments.engine.rules import Criterion, as_verdicts, count_met, decide
from jepatlas.experiments.engine.run_tables import run_table
from jepatlas.experiments.engine.seed_tables import bars, mean_and_range, select
from jepatlas.identifiability import linear_response
from jepatlas.recipes import Recipe, build_objective
from jepatlas.workflows.runs import load_objective, train_job
from jepatlas.worlds import AnyMixing, LatentWorld, OrnsteinUhlenbeck, SinusoidalShear, Spiral

__all__ = ["EXPERIMENT", "run"]

RHO = 0.95
AHEAD = (1, 10)
WITHIN = 0.05  # largest ‖A − ρᵏI‖ / ‖ρᵏI‖
LEARNERS = ("LeJEPA", "spectral")
CONTROLS = ("SIGReg alone", "untrained", "observation")
MIXINGS: tuple[AnyMixing, ...] = (Spiral(), SinusoidalShear())

CLAIM = Claim(
    statement="At the optimum the dynamics are recovered, too: later latents are ρᵏ times the latents, on average.",
    source="When Does LeJEPA Learn a World Model?, Theorem 1",
    proven="for the exact optimum in a Gaussian world with one rate",
)


@dataclass(frozen=True)
class Plan:
    steps: int
    alone: int  # steps of SIGReg alone
    pairs: int  # of the spectral solver
    rows: int
    seeds: int


SCALES = {
    "tiny": Plan(2, 2, 300, 500, 1),
    "small": Plan(2000, 500, 20_000, 20_000, 3),
    "paper": Plan(20_000, 20_000, 200_000, 100_000, 5),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    every = []
    for mixing, s in product(MIXINGS, range(seed, seed + plan.seeds)):
        world = LatentWorld(OrnsteinUhlenbeck(dim=2, rho=RHO), mixing)
        for latents in (*LEARNERS, *(CONTROLS if mixing == Spiral() else ())):
            alone = latents == "SIGReg alone"
            recipe = recipe_for(
                scale, world, steps=plan.alone if alone else plan.steps, seed=s, weight=1.0 if alone else 0.01
            )
            settings = {"recipe": to_plain(recipe), "latents": latents, "pairs": plan.pairs, "rows": plan.rows}
            every.append(Trial({"mixing": mixing.kind, "latents": latents, "seed": s}, run, settings))
    return every


Encode = Callable[[torch.Tensor], np.ndarray]


def run(settings: Plain, folder: str) -> Plain:
    """‖A − ρᵏI‖ / ‖ρᵏI‖ of the regression over k steps, and R² of the state."""
    recipe = from_plain(Recipe, settings["recipe"])
    encode = _encoder(recipe, settings, folder)
    generator = torch_generator(recipe.seed, "dynamics")
    z = recipe.world.states(settings["rows"], generator)
    h = encode(recipe.world.observe(z))
    found = {"r2": r2_of_state(h, z.double().numpy(), recipe.seed)}
    later = z
    for step in range(1, max(AHEAD) + 1):
        later = recipe.world.transition(later, generator)
        if step in AHEAD:
            h_later = encode(recipe.world.observe(later))
            found[f"error_{step}"] = _distance(h, h_later, RHO**step, numpy_generator(recipe.seed, "rows", step))
    return {"status": "finished", "verdicts": as_verdicts(found, "on fresh states")}


def _encoder(recipe: Recipe, settings: Plain, folder: str) -> Encode:
    if settings["latents"] == "observation":
        return lambda x: x.double().numpy()
    if settings["latents"] == "spectral":
        encoder = fit_spectral(recipe, settings["pairs"])
        return lambda x: encoder.apply(x.double().numpy())
    objective = build_objective(recipe).eval()
    if settings["latents"] != "untrained":
        train_job(settings["recipe"], folder)
        _, objective = load_objective(Path(folder))

    def encode(x: torch.Tensor) -> np.ndarray:
        with torch.no_grad():
            return objective.encode(x).double().numpy()

    return encode


def _distance(h: np.ndarray, h_later: np.ndarray, rate: float, rng: np.random.Generator) -> Estimate:
    """Resampling adds noise to a norm, so the limits are conservative; near zero they may exceed the value."""

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {"error": distance_from_identity(linear_response(h, h_later, weights)[0] / rate)}

    return bootstrap(statistic, len(h), rng, replicates=100)["error"]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """Errors of learned latents must be within WITHIN. Undecided unless every control is beyond it at some k."""
    del scale
    learned = [result for result in results if result.at["latents"] in LEARNERS]
    errors = [result.estimate(f"error_{k}") for result in learned for k in AHEAD]
    within = [error.high <= WITHIN for error in errors]
    controls = [result for result in results if result.at["latents"] in CONTROLS]
    fail = [any(result.estimate(f"error_{k}").low > WITHIN for k in AHEAD) for result in controls]
    largest = float(np.max([error.value for error in errors]))
    return Finding(
        decide(errors, threshold=WITHIN, direction="lower") if all(fail) else "undecided",
        f"The regression differs from ρᵏ I by at most {largest:.3f} of its size in learned latents; "
        f"{count_met(fail)} controls fail.",
        criteria=(
            Criterion(f"regressions within {WITHIN} of ρᵏ I, learned latents", count_met(within), "all", all(within)),
            Criterion.for_all(f"controls with a distance above {WITHIN}", fail),
        ),
        verdicts=(_verdict(errors),),
        figures=(_figure(results),),
        tables=(_table(results),),
    )


def _verdict(errors: Sequence[Estimate]) -> Verdict:
    return Verdict.judge(
        "largest_distance",
        max(errors, key=lambda error: np.nan_to_num(error.high, nan=np.inf)),
        direction="lower",
        threshold=WITHIN,
        good="The dynamics are recovered in all learned latents.",
        bad="The dynamics are not demonstrably recovered in some learned latents.",
    )


def _figure(results: Sequence[Result]) -> Bars:
    names = {
        (mixing.kind, latents): f"{latents}, {mixing.kind}" for mixing in MIXINGS for latents in (*LEARNERS, *CONTROLS)
    }
    shown = {key: name for key, name in names.items() if select(results, mixing=key[0], latents=key[1])}
    series: list[BarSeries] = []
    for k in AHEAD:
        means = [
            mean_and_range(select(results, mixing=mixing, latents=latents), f"error_{k}") for mixing, latents in shown
        ]
        series.append(bars(f"{k} steps" if k > 1 else "1 step", means))
    return Bars(
        title="Distance of the latent dynamics from ρᵏ I",
        names=list(shown.values()),
        series=series,
        y_label="‖A − ρᵏI‖ / ‖ρᵏI‖",
        note="Whiskers: range over seeds.",
    )


def _table(results: Sequence[Result]) -> Table:
    measured = {"R² of the state": "r2"} | {f"distance from ρᵏ I, k = {k}": f"error_{k}" for k in AHEAD}
    return run_table("All runs", results, {"mixing": "mixing", "latents": "latents", "seed": "seed"}, measured)


EXPERIMENT = Experiment("recovered-dynamics", "The dynamics of the latents", CLAIM, trials, conclude)
