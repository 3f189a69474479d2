"""Trials of sequential and simultaneous slow feature analysis, and of LeJEPA, on the same worlds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.linear import hold_out, least_squares
from jepatlas.core.linear import ridge as ridge_map
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.core.stats import bootstrap
from jepatlas.data import Transitions
from jepatlas.experiments.engine.experiment import Plain, Scale, Trial
from jepatlas.experiments.engine.latent_trials import LatentSample, recipe_for, train_and_measure
from jepatlas.experiments.engine.rules import as_verdicts
from jepatlas.identifiability import SpectrumSettings, linear_sfa, recovery
from jepatlas.identifiability.spectral.ladder import polynomials
from jepatlas.identifiability.spectral.pair_rows import SCORE, SplitPairs
from jepatlas.identifiability.spectral.solver import SpectralSolver
from jepatlas.identifiability.spectral.transfer_operator import TransferMoments, eigenfunctions
from jepatlas.objectives import PairObjective
from jepatlas.recipes import Recipe
from jepatlas.worlds import InvertibleMLP, LatentWorld, OrnsteinUhlenbeck

__all__ = ["ENDS", "INSIDE", "SCALES", "SEQUENTIAL", "extract_one_by_one", "run_lejepa", "run_spectral", "trials"]

HELD_OUT = 10_000
ENDS = {"equal": (0.7, 0.7), "distinct": (0.7, 0.56), "wide": (0.9, 0.7)}
"""ρ of the slowest and the fastest coordinate; the others are evenly spaced between them."""
INSIDE = ("equal", "distinct")  # the rates inside the window
SEQUENTIAL = {"deflation": 1, "xsfa": 3}
"""Degree of the monomials that are removed."""
MIN_VARIANCE = 1e-9  # penalty against collinear monomials
MEANING = "held out; MCC: latents and states matched one to one"


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
    plan = SCALES[scale]
    trials = []
    seeds = range(seed, seed + plan.seeds)
    for rates, dim, s in product(ENDS, plan.dims, seeds):
        world = to_plain(_world(dim, rates, s))
        settings = {"world": world, "pairs": plan.pairs, "features": plan.features, "seed": s}
        trials.append(Trial({"kind": "spectral", "rates": rates, "dim": dim, "seed": s}, run_spectral, settings))
    for rates, s in product(INSIDE, seeds):
        recipe = recipe_for(scale, _world(plan.trained_dim, rates, s), steps=plan.steps, seed=s)
        at = {"kind": "trained", "rates": rates, "dim": plan.trained_dim, "seed": s}
        trials.append(Trial(at, run_lejepa, {"recipe": to_plain(recipe)}))
    return trials


def _world(dim: int, rates: str, seed: int) -> LatentWorld:
    each = tuple(float(rho) for rho in np.linspace(*ENDS[rates], dim))
    return LatentWorld(OrnsteinUhlenbeck(dim=dim, rho=each), InvertibleMLP(layers=2, seed=seed))


def run_spectral(settings: Plain, folder: str) -> Plain:
    del folder
    world = from_plain(LatentWorld, settings["world"])
    seed = settings["seed"]
    pairs = Transitions().draw(world, settings["pairs"], torch_generator(seed, "spectral"))
    fresh = Transitions().draw(world, HELD_OUT, torch_generator(seed, "fresh"))
    x, x_next, others, z = (t.double().numpy() for t in (pairs.x, pairs.x_next, fresh.x, fresh.z))
    options = SpectrumSettings(functions=world.dim, features=settings["features"], pilot=5000)
    solution = SpectralSolver(SplitPairs(x, x_next, seed=seed, below=SCORE), options, seed).fit(world.dim)
    together = solution.encoder.apply(others)
    found = _scores("simultaneous", together, z, seed)
    phi, phi_next, phi_others = (solution.encoder.features(view) for view in (x, x_next, others))
    for method, degree in SEQUENTIAL.items():
        h = extract_one_by_one(phi, phi_next, phi_others, world.dim, ridge=solution.ridge, degree=degree)
        found |= _scores(method, h, z, seed) | {f"behind_{method}": _behind(together, h, z, seed)}
    return {"status": "finished", "verdicts": as_verdicts(found, MEANING)}


def run_lejepa(settings: Plain, folder: str) -> Plain:
    return train_and_measure(settings["recipe"], folder, 2 * HELD_OUT, _measure)


def _measure(recipe: Recipe, objective: PairObjective, drawn: LatentSample) -> list[Plain]:
    del objective
    turn = linear_sfa(drawn.h[:HELD_OUT], drawn.h_next[:HELD_OUT])
    h, z = drawn.h[HELD_OUT:], drawn.z[HELD_OUT:]
    found = _scores("lejepa", h, z, recipe.seed) | _scores("turned", turn.apply(h), z, recipe.seed)
    return as_verdicts(found, MEANING)


def _scores(method: str, h: np.ndarray, z: np.ndarray, seed: int) -> dict[str, Estimate]:
    split = hold_out(len(h), numpy_generator(seed, "split"))
    found = recovery(h, z, split, numpy_generator(seed, "rows"), replicates=100)
    return {f"{name}_{method}": found[name] for name in ("r2", "mcc")}


def _behind(h: np.ndarray, other: np.ndarray, z: np.ndarray, seed: int) -> Estimate:
    """R² of h minus R² of `other`, on the same rows."""
    fit, score = hold_out(len(z), numpy_generator(seed, "split"))
    residual = [np.square(z[score] - least_squares(a[fit], z[fit]).apply(a[score])).sum(1) for a in (h, other)]
    deviation = np.square(z[score] - z[score].mean(0)).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {"behind": float(weights @ (residual[1] - residual[0]) / (weights @ deviation))}

    return bootstrap(statistic, len(score), numpy_generator(seed, "rows"), replicates=100)["behind"]


def extract_one_by_one(
    phi: np.ndarray, phi_next: np.ndarray, others: np.ndarray, dim: int, *, ridge: float, degree: int
) -> np.ndarray:
    """Slow feature analysis one function at a time.

    Stage k regresses every feature φ_j on all monomials m of the functions s_1 … s_{k−1} up to a total degree,

        φ_j ← φ_j − Σ_m B_jm m(s_1, …, s_{k−1})

    and solves S v = λ (C₀₀ + rI) v for the leading function of the residual. Degree 1 is plain deflation: without a
    ridge it is the eigenproblem, solved one vector at a time. A higher degree is xSFA ("An Extension of Slow Feature
    Analysis for Nonlinear Blind Source Separation"): harmonics and products of the estimates are removed too, so none
    can be mistaken for a slow source.

    Fits `dim` functions on features of paired views (b, k) and (b, k), and returns the latents (b', dim) of `others`.
    """
    views = [phi, phi_next, others]
    found = [np.zeros((len(view), 0)) for view in views]
    for _ in range(dim):
        remaining = _residuals(views, [polynomials(s, degree) for s in found]) if found[0].shape[1] else views
        moments = TransferMoments.of(remaining[0], remaining[1])
        (slowest,) = eigenfunctions(moments, [ridge], 1)
        new = [(view - moments.mean) @ slowest.vectors for view in remaining]
        found = [np.c_[s, column] for s, column in zip(found, new, strict=True)]
    return found[-1]


def _residuals(views: Sequence[np.ndarray], known: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Residuals of the features, regressed on both views of the pairs."""
    m = np.concatenate(known[:2])
    phi = np.concatenate(views[:2])
    explained = ridge_map(m, phi, MIN_VARIANCE * len(m))
    return [view - explained.apply(m) + explained.y_mean for view, m in zip(views, known, strict=True)]
