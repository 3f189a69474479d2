"""The trials of `greedy-sfa`: the same features, extracted all at once and one at a time; and LeJEPA beside them.

All methods look in the same features of x (random Fourier features, their kernel and ridge chosen for the simultaneous
fit), on the same pairs, and each stage is solved exactly: so what differs is the order of extraction, and errors are of
estimation, not of optimisation. The ridge is right for xSFA, too: 10 times as much lowered its R² at every n tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.linear import hold_out, least_squares
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.core.stats import bootstrap
from jepatlas.data import Transitions
from jepatlas.experiments.engine.experiment import Scale, Trial, as_verdicts
from jepatlas.experiments.engine.latent_trials import LatentSample, recipe_for, train_and_measure
from jepatlas.experiments.identifiability.sequential import one_by_one
from jepatlas.identifiability import SpectrumSettings, linear_sfa, recovery
from jepatlas.identifiability.spectral.pair_chunks import PairArrays, PairChunks
from jepatlas.identifiability.spectral.selection import SCORE
from jepatlas.identifiability.spectral.solver import SpectralSolver
from jepatlas.objectives import PairObjective
from jepatlas.recipes import Recipe
from jepatlas.worlds import InvertibleMLP, LatentWorld, OrnsteinUhlenbeck

__all__ = ["ENDS", "METHODS", "SCALES", "SEQUENTIAL", "Plan", "run_lejepa", "run_spectral", "trials"]

HELD_OUT = 10_000
ENDS = {"equal": (0.7, 0.7), "distinct": (0.7, 0.56), "wide": (0.9, 0.7)}
"""ρ of the slowest and the fastest coordinate; between them evenly."""
SEQUENTIAL = {"deflation": 1, "xsfa": 3}
"""Degree of what is removed."""
METHODS = ("simultaneous", *SEQUENTIAL)


@dataclass(frozen=True)
class Plan:
    dims: tuple[int, ...]
    pairs: int
    features: int
    seeds: int
    trained_dim: int
    steps: int


SCALES = {
    "tiny": Plan((2, 3), 1500, 32, 1, 2, 30),
    "small": Plan((2, 4, 8, 12), 20_000, 512, 3, 4, 2500),
    "paper": Plan((2, 4, 8, 12), 40_000, 768, 5, 8, 20_000),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan, seeds = SCALES[scale], range(seed, seed + SCALES[scale].seeds)
    spectral = [
        Trial(
            {"kind": "spectral", "rates": rates, "dim": dim, "seed": s},
            run_spectral,
            {"world": to_plain(_world(dim, rates, s)), "pairs": plan.pairs, "features": plan.features, "seed": s},
        )
        for rates, dim, s in product(ENDS, plan.dims, seeds)
    ]
    trained = [
        Trial(
            {"kind": "trained", "rates": rates, "dim": plan.trained_dim, "seed": s},
            run_lejepa,
            {"recipe": to_plain(recipe_for(scale, _world(plan.trained_dim, rates, s), steps=plan.steps, seed=s))},
        )
        for rates, s in product(("equal", "distinct"), seeds)
    ]
    return spectral + trained


def _world(dim: int, rates: str, seed: int) -> LatentWorld:
    each = tuple(float(rho) for rho in np.linspace(*ENDS[rates], dim))
    return LatentWorld(OrnsteinUhlenbeck(dim=dim, rho=each), InvertibleMLP(layers=2, seed=seed))


def run_spectral(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    del folder
    world, seed = from_plain(LatentWorld, settings["world"]), settings["seed"]
    pairs, fresh = (
        Transitions().draw(world, count, torch_generator(seed, name))
        for name, count in (("spectral", settings["pairs"]), ("fresh", HELD_OUT))
    )
    x, x_next, others, z = (t.double().numpy() for t in (pairs.x, pairs.x_next, fresh.x, fresh.z))
    options = SpectrumSettings(functions=world.dim, features=settings["features"], pilot=5000)
    solution = SpectralSolver(PairChunks(PairArrays(x, x_next), seed, below=SCORE), options, seed).fit(world.dim)
    together = solution.encoder.apply(others)
    found = _scores("simultaneous", together, z, seed)
    phi, phi_next, phi_others = (solution.encoder.features(view) for view in (x, x_next, others))
    for method, degree in SEQUENTIAL.items():
        h = one_by_one(phi, phi_next, phi_others, world.dim, ridge=solution.ridge, degree=degree)
        found |= _scores(method, h, z, seed) | {f"behind_{method}": _behind(together, h, z, seed)}
    return {
        "status": "finished",
        "verdicts": as_verdicts(found, "held out; MCC: latents and states matched one to one"),
    }


def run_lejepa(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    return train_and_measure(settings["recipe"], folder, 2 * HELD_OUT, _measured)


def _measured(recipe: Recipe, objective: PairObjective, drawn: LatentSample) -> list[dict[str, Any]]:
    del objective
    rest, turn = slice(HELD_OUT, None), linear_sfa(drawn.h[:HELD_OUT], drawn.h_next[:HELD_OUT])
    found = _scores("lejepa", drawn.h[rest], drawn.z[rest], recipe.seed)
    found |= _scores("turned", turn.apply(drawn.h[rest]), drawn.z[rest], recipe.seed)
    return as_verdicts(found, "held out; MCC: latents and states matched one to one")


def _scores(method: str, h: np.ndarray, z: np.ndarray, seed: int) -> dict[str, Estimate]:
    split = hold_out(len(h), numpy_generator(seed, "split"))
    found = recovery(h, z, split, numpy_generator(seed, "rows"), replicates=100)
    return {f"{name}_{method}": found[name] for name in ("r2", "mcc")}


def _behind(h: np.ndarray, other: np.ndarray, z: np.ndarray, seed: int) -> Estimate:
    """R² of h less that of another, on the same rows."""
    fit, score = hold_out(len(z), numpy_generator(seed, "split"))
    left = [np.square(z[score] - least_squares(a[fit], z[fit]).apply(a[score])).sum(1) for a in (h, other)]
    around = np.square(z[score] - z[score].mean(0)).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {"behind": float(weights @ (left[1] - left[0]) / (weights @ around))}

    return bootstrap(statistic, len(score), numpy_generator(seed, "rows"), replicates=100)["behind"]
