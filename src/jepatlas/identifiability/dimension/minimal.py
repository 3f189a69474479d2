"""Is the state in the minimal subspace? Recovery from a few directions of the latents, against that from all."""

from __future__ import annotations

import numpy as np

from jepatlas.core.linear import Split, least_squares
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.checks import check_matrices

__all__ = ["minimal_recovery"]


def minimal_recovery(
    h: np.ndarray,
    minimal: LinearMap,
    z: np.ndarray,
    split: Split,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> dict[str, Estimate]:
    """Held-out estimates with group-bootstrap intervals:

    r2                   R² of the true states z from all of h, by least squares
    r2_minimal           from the minimal subspace alone
    r2_lost              r2 − r2_minimal: what the state had in the latents that were left out
    r2_inverse           R² of h from z
    r2_inverse_minimal   R² of the minimal subspace from z: 1 where it is a linear function of the state
    """
    check_matrices(groups, h=h, z=z)
    sides = {"": h.astype(np.float64), "_minimal": minimal.apply(h.astype(np.float64))}
    z, (fit, score) = z.astype(np.float64), split
    tasks = {}
    for name, latents in sides.items():
        tasks[f"r2{name}"] = _task(latents, z, fit, score)
        tasks[f"r2_inverse{name}"] = _task(z, latents, fit, score)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        scores = {name: _explained(target, miss, weights) for name, (target, miss) in tasks.items()}
        return scores | {"r2_lost": scores["r2"] - scores["r2_minimal"]}

    held = None if groups is None else groups[score]
    return bootstrap(statistic, len(score), rng, groups=held, replicates=replicates)


def _task(x: np.ndarray, y: np.ndarray, fit: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return y[score], y[score] - least_squares(x[fit], y[fit]).apply(x[score])


def _explained(target: np.ndarray, miss: np.ndarray, weights: np.ndarray) -> float:
    mean = weights @ target / weights.sum()
    spread = float(weights @ np.square(target - mean).sum(1))
    return 1 - float(weights @ np.square(miss).sum(1)) / spread if spread > 0 else float("nan")
