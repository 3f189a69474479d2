"""What one trial of `prediction-energy` does: an IE-JEPA, a predictor on its latents, and three energies audited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from jepatlas.core.config import from_plain
from jepatlas.core.linear import r2
from jepatlas.core.seeding import forked_rng, torch_generator
from jepatlas.energy import L2, PredictionError
from jepatlas.energy.audit import audit
from jepatlas.experiments.energy.energy_runs import exactly, fit, named
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.nn.mlp import mlp
from jepatlas.recipes import EnergyRecipe
from jepatlas.workflows.energy import FittedEnergy, ground_truth_of, load_fitted

__all__ = ["ENERGIES", "fit_predictor", "run"]

ENERGIES = {
    "prediction": "squared prediction error",
    "l2": "L2 of latents",
    "learned": "energy of the IE-JEPA",
}
WIDTH, DEPTH, BATCH, RATE = 64, 2, 256, 3e-3


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train (or go on), fit the predictor on what was learned from, and audit at all states of the world."""
    recipe, place = from_plain(EnergyRecipe, settings["recipe"]), Path(folder)
    record = fit(recipe, place)
    if record["status"] != "finished":
        return record
    fitted, ground = load_fitted(place), ground_truth_of(recipe, recipe.seed)
    points = fitted.latents(ground.x).astype(np.float32)
    predictor = _predictor(fitted, settings["predictor_steps"])
    held = [fitted.latents(part) for part in (fitted.data.held.x, fitted.data.held.x_next)]
    with torch.no_grad():
        predicted = predictor(torch.as_tensor(held[0], dtype=torch.float32)).double().numpy()
    energies = {
        "prediction": PredictionError(nn.Identity(), predictor),
        "l2": L2(points.shape[1]),
        "learned": fitted.energy,
    }
    verdicts = [
        verdict
        for name, energy in energies.items()
        for verdict in named(name, audit(energy, points, truth=ground.truth, states=len(points)).verdicts)
    ]
    fits = {"predictor_r2": exactly(r2(held[1], predicted), len(predicted))}
    return record | {"verdicts": verdicts + as_verdicts(fits, "of the next latent, on held-out steps")}


def _predictor(fitted: FittedEnergy, steps: int) -> nn.Module:
    learnt = fitted.data.learnt
    return fit_predictor(fitted.latents(learnt.x), fitted.latents(learnt.x_next), steps, fitted.recipe.seed)


def fit_predictor(h: np.ndarray, h_next: np.ndarray, steps: int, seed: int) -> nn.Module:
    """p = argmin E‖p(h) − h'‖², a small network: what a JEPA trains beside its encoder, here after it."""
    x, y = (torch.as_tensor(rows, dtype=torch.float32) for rows in (h, h_next))
    with forked_rng(seed, "predictor"):
        predictor = mlp(x.shape[1], y.shape[1], WIDTH, DEPTH)
    optimiser, rng = torch.optim.Adam(predictor.parameters(), RATE), torch_generator(seed, "predictor batches")
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        rows = torch.randint(len(x), (BATCH,), generator=rng)
        optimiser.zero_grad()
        (predictor(x[rows]) - y[rows]).square().sum(-1).mean().backward()
        optimiser.step()
        schedule.step()
    return predictor.eval().requires_grad_(False)
