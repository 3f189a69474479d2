"""What one trial of `gl-symmetry` does: train, fit a predictor, change coordinates, and look at the losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from jepatlas.core.linear import hold_out, least_squares
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.alignment.charts import random_chart
from jepatlas.experiments.engine.latent_trials import latent_sample
from jepatlas.objectives import PairObjective, Parts, WhiteningConfig
from jepatlas.workflows.runs import load_objective, train_job

__all__ = ["CONDITIONS", "changed_losses", "run"]

CONDITIONS = (1.0, 2.0, 5.0, 10.0, 100.0, 1000.0)
BATCH = 256  # rows: SIGReg grows with their number


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train, fit the predictor h → h' on half of the pairs, and change coordinates on the other half."""
    record = train_job(settings["recipe"], folder)
    if record["status"] != "finished":
        return record
    recipe, objective = load_objective(Path(folder))
    drawn, rng = latent_sample(recipe, objective, settings["samples"]), numpy_generator(recipe.seed, "changes")
    fit, rest = hold_out(len(drawn.h), rng)
    predictor, h, h_next = least_squares(drawn.h[fit], drawn.h_next[fit]), drawn.h[rest], drawn.h_next[rest]
    charts = [(k, random_chart(recipe.world.dim, k, rng)) for k in CONDITIONS for _ in range(settings["draws"])]
    changes = [{"condition": k} | changed_losses(h, h_next, predictor, chart, objective) for k, chart in charts]
    return record | {"changes": changes}


def changed_losses(
    h: np.ndarray, h_next: np.ndarray, predictor: LinearMap, chart: np.ndarray, objective: PairObjective
) -> dict[str, float]:
    """Every loss after the change of coordinates, over what it was before; and what is left of a loss of zero."""
    inverse, sigma = np.linalg.inv(chart), np.linalg.svd(chart, compute_uv=False)
    changed, target, reached = h @ chart.T, h_next @ chart.T, predictor.apply(h) @ chart.T
    predicted = predictor.apply(changed @ inverse.T) @ chart.T
    before = np.square(predictor.apply(h) - h_next).sum(1).mean()
    whitening = WhiteningConfig(epsilon=0.0).build(Parts(torch.nn.Identity(), h.shape[1])).eval()
    return {
        "low": float(sigma[-1] ** 2),
        "high": float(sigma[0] ** 2),
        "jepa": float(np.square(predicted - target).sum(1).mean() / before),
        "zero": float(np.sqrt(np.square(predicted - reached).sum() / np.square(reached).sum())),
        "lejepa": _loss(objective, changed, target) / _loss(objective, h, h_next),
        "whitening": _loss(whitening, changed, target) / _loss(whitening, h, h_next),
    }


def _loss(objective: PairObjective, h: np.ndarray, h_next: np.ndarray) -> float:
    """Mean over batches of the size that it was trained with."""
    views = [torch.from_numpy(view[: len(view) // BATCH * BATCH]).split(BATCH) for view in (h, h_next)]
    with torch.no_grad():
        pairs = enumerate(zip(views[0], views[1], strict=True))
        losses = [float(objective.loss(one, other, step).total) for step, (one, other) in pairs]
    return float(np.mean(losses))
