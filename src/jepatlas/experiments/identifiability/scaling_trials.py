"""Trials of the scaling study: mixings, encoders, objectives and their measures at each dimension N.

The study's encoder is the mixing's own inverse with unknown weights. It preserves volume and cannot collapse, although
at the study's weights collapse would be cheaper: a constant h costs λ·SIGReg(0), which is 103 λ for 256 rows, and h = z
costs (1−λ)(1−r)/2 with r the correlation of the views, so at λ = 1e-6 the constant is cheaper at every N. For the
covariance loss a constant costs λ/N and is cheaper from N = 21 on (r = .9025, λ = ½). So there are two controls: the
same encoder with λ = 0, and a plain MLP with weights at which a constant is expensive at any N (SIGReg .01, covariance
N/(N+1)).

No run is stopped for collapse: a batch of 256 rows cannot resolve 1024 directions, and collapsed controls are to be
measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import derive, torch_generator
from jepatlas.core.stats import standard_error
from jepatlas.experiments.engine.experiment import Plain, Scale, Trial
from jepatlas.experiments.engine.latent_trials import r2_of_state, recipe_for
from jepatlas.experiments.engine.rules import as_verdicts
from jepatlas.nn import CouplingConfig, MLPConfig
from jepatlas.objectives import CovarianceConfig, InfoNCEConfig, LeJEPAConfig, PairObjective, SIGRegConfig
from jepatlas.recipes import Recipe, build_batches
from jepatlas.workflows.runs import load_objective, train_job
from jepatlas.worlds import Coupling, LatentWorld, OrnsteinUhlenbeck

__all__ = ["ALIGNMENT_ONLY", "SCALES", "STUDIED", "run_raw", "run_trained", "trials"]

RHO = 0.95
LAYERS = 4
LOSS_BATCHES = 16
STUDIED = ("SIGReg", "VICReg", "InfoNCE")
ALIGNMENT_ONLY = "alignment"
"""The control with λ = 0."""


@dataclass(frozen=True)
class Part:
    """All runs at one dimension with one encoder."""

    encoder: str
    dim: int
    steps: int
    lr: float
    seeds: int
    starts: int = 1
    objectives: tuple[str, ...] = (*STUDIED, ALIGNMENT_ONLY)


@dataclass(frozen=True)
class Plan:
    wanted: float
    """R² that counts as recovery; below the study's .999 for shorter training."""
    generic: MLPConfig
    slices: int
    parts: tuple[Part, ...]


LEARNED = (*STUDIED, ALIGNMENT_ONLY, "InfoNCE-learned")
SCALES = {
    "tiny": Plan(
        0.98,
        MLPConfig(width=16, depth=2),
        8,
        (Part("coupling", 2, 20, 1e-2, 1, starts=2), Part("coupling", 8, 20, 1e-2, 1), Part("mlp", 2, 20, 1e-2, 1)),
    ),
    "small": Plan(
        0.98,
        MLPConfig(width=256, depth=2),
        64,
        (
            # Wide layers have small weights, so the learning rate falls with N. The rates were chosen in pilots by loss
            # and R² of SIGReg and VICReg; the other objectives use the same rates, untuned.
            Part("coupling", 2, 1000, 1e-1, 3, starts=6),
            Part("coupling", 16, 1500, 1e-1, 3, starts=2),
            Part("coupling", 64, 1000, 3e-2, 3, objectives=LEARNED),
            Part("coupling", 256, 1000, 1e-2, 3, objectives=LEARNED),
            Part("coupling", 1024, 1000, 5e-3, 1),
            *(Part("mlp", dim, 2000, 1e-2 if dim < 64 else 3e-3, 3) for dim in (2, 16, 64)),
        ),
    ),
    "paper": Plan(
        0.999,
        MLPConfig(width=256, depth=4),
        256,
        (
            *(Part("coupling", 2**k, 20_000, 3e-3, 5, 3 if k <= 5 else 1, LEARNED) for k in range(1, 11)),
            *(Part("mlp", 2**k, 20_000, 3e-3, 5) for k in range(1, 7)),
        ),
    ),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    trials = []
    for part in SCALES[scale].parts:
        for s in range(seed, seed + part.seeds):
            for objective in part.objectives:
                for start in range(part.starts):
                    at = {"encoder": part.encoder, "objective": objective, "dim": part.dim, "seed": s, "start": start}
                    recipe = _recipe(scale, part, objective, s, start)
                    trials.append(Trial(at, run_trained, {"recipe": to_plain(recipe)}))
            if part.encoder == "coupling":
                at = {"encoder": "none", "objective": "raw", "dim": part.dim, "seed": s, "start": 0}
                trials.append(Trial(at, run_raw, {"recipe": to_plain(_recipe(scale, part, "SIGReg", s, 0))}))
    return trials


def _recipe(scale: Scale, part: Part, objective: str, seed: int, start: int) -> Recipe:
    """The seed determines the mixing, as in the study; the start determines weights and pairs."""
    world = LatentWorld(OrnsteinUhlenbeck(dim=part.dim, rho=RHO), Coupling(layers=LAYERS, seed=seed))
    recipe = recipe_for(scale, world, steps=part.steps, seed=1000 * start + seed)
    matched = part.encoder == "coupling"
    return replace(
        recipe,
        encoder=CouplingConfig(layers=LAYERS) if matched else SCALES[scale].generic,
        objective=_objective(objective, matched, part.dim, SCALES[scale].slices),
        training=replace(recipe.training, lr=part.lr, collapse=0.0),
    )


def _objective(name: str, matched: bool, dim: int, slices: int) -> LeJEPAConfig | CovarianceConfig | InfoNCEConfig:
    # Random slices: in a thousand dimensions evenly spread ones cost more than the rest of the step.
    sigreg = SIGRegConfig(slices=slices, design="random")
    return {
        "SIGReg": LeJEPAConfig(weight=1e-6 if matched else 0.01, sigreg=sigreg),
        "VICReg": CovarianceConfig(weight=0.5 if matched else dim / (dim + 1)),
        "InfoNCE": InfoNCEConfig(width=1.0),
        "InfoNCE-learned": InfoNCEConfig(width=1.0, adaptive=True),
        ALIGNMENT_ONLY: LeJEPAConfig(weight=0.0, sigreg=sigreg),
    }[name]


def run_trained(settings: Plain, folder: str) -> Plain:
    record = train_job(settings["recipe"], folder)
    if record["status"] != "finished":
        return record
    recipe, objective = load_objective(Path(folder))
    x, z = _fresh(recipe)
    with torch.no_grad():
        h = objective.encode(x)
    recovery = {"r2": r2_of_state(h.numpy(), z.numpy(), recipe.seed)}
    collapse = {"loss": _loss(recipe, objective), "variance": _least_variance(h)}
    verdicts = as_verdicts(recovery, "held-out R² of the state")
    verdicts += as_verdicts(collapse, "on fresh pairs; and the smallest variance of a latent", "lower")
    return record | {"verdicts": verdicts}


def run_raw(settings: Plain, folder: str) -> Plain:
    del folder
    recipe = from_plain(Recipe, settings["recipe"])
    x, z = _fresh(recipe)
    found = {"r2": r2_of_state(x.numpy(), z.numpy(), recipe.seed)}
    return {"status": "finished", "verdicts": as_verdicts(found, "held-out R² of the state from the observation")}


def _fresh(recipe: Recipe) -> tuple[torch.Tensor, torch.Tensor]:
    """Eight rows to fit on for every coefficient; the held-out R² is then low by an eighth of 1 − R²."""
    rows = max(16_000, 16 * recipe.world.dim)
    pairs = recipe.pairs.draw(recipe.world, rows, torch_generator(recipe.seed, "fresh"))
    return pairs.x, pairs.z


def _loss(recipe: Recipe, objective: PairObjective) -> Estimate:
    batches = build_batches(replace(recipe, seed=derive(recipe.seed, "loss")))
    with torch.no_grad():
        values = np.array([float(objective(batches(step), step).total) for step in range(LOSS_BATCHES)])
    mean = float(values.mean())
    margin = 2 * standard_error(values)
    return Estimate(mean, mean - margin, mean + margin, LOSS_BATCHES)


def _least_variance(h: torch.Tensor) -> Estimate:
    least = float(h.var(0).min())
    return Estimate.exact(least, len(h))
