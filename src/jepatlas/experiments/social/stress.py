"""Maps between two trained agents from few pairs, and from pairs of which a share is mismatched.

They go between the principal directions that hold 99% of the variance of standardised latents (see `leading`).
"""

from __future__ import annotations

import numpy as np

from jepatlas.alignment.maps import FittedMap, LeastSquaresMap, ProcrustesMap, RidgeMap, RobustMap
from jepatlas.core.linear import r2
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.alignment.pair_noise import SHARES, mismatch
from jepatlas.experiments.social.charts import Met, leading

__all__ = ["METHODS", "ROBUST", "budgets", "stressed"]

Plain = LeastSquaresMap | RidgeMap | ProcrustesMap
BUDGETS = (50, 100, 200, 500, 1000, 5000, 20_000)
METHODS = {"least squares": LeastSquaresMap, "ridge": RidgeMap, "Procrustes": lambda: ProcrustesMap(scaled=True)}
ROBUST = {"least squares": LeastSquaresMap, "robust": RobustMap}


def stressed(met: Met) -> dict[str, Estimate]:
    """R² on held-out states, and κ, for maps from few pairs and from mismatched ones."""
    fit, score = met.split
    a, b = (leading(side["h"], fit) for side in (met.a, met.b))
    order, held, found = numpy_generator(0, "pairs").permutation(fit), (a[score], b[score]), dict[str, float]()
    for pairs in budgets(len(fit)):
        for name, method in METHODS.items():
            found |= _scored(f"{name}_{pairs}", _fitted(method(), met, a, b, order[:pairs]), held)
    for share in SHARES:
        dealt = order[mismatch(len(order), share, numpy_generator(0, "mismatch"))]
        for name, method in ROBUST.items():
            found |= _scored(f"noise_{name}_{share:g}", method().fit(a[order], b[dealt]), held)
    most = f"noise_least squares_{SHARES[-1]:g}"
    found["lost"] = found["r2_noise_least squares_0"] - found[f"r2_{most}"]
    found["growth"] = found[f"kappa_{most}"] / found["kappa_noise_least squares_0"]
    found["gained"] = found[f"r2_ridge_{len(fit)}"] - found[f"r2_ridge_{budgets(len(fit))[0]}"]
    return {name: Estimate(value, value, value, len(score)) for name, value in found.items()}


def budgets(most: int) -> list[int]:
    """The published ones that there are pairs for, and all pairs.

    >>> budgets(700)
    [50, 100, 200, 500, 700]
    """
    return [*(budget for budget in BUDGETS if budget < most), most]


def _fitted(method: Plain, met: Met, a: np.ndarray, b: np.ndarray, rows: np.ndarray) -> FittedMap:
    """Ridge chooses its penalty by whole groups, of which few pairs may have one alone."""
    if isinstance(method, RidgeMap) and len(np.unique(met.groups[rows])) > 1:
        return method.fit(a[rows], b[rows], groups=met.groups[rows])
    return method.fit(a[rows], b[rows])


def _scored(name: str, fitted: FittedMap, score: tuple[np.ndarray, np.ndarray]) -> dict[str, float]:
    kappa = fitted.conditioning_.condition
    return {f"r2_{name}": r2(score[1], fitted.transform(score[0])), f"kappa_{name}": kappa}
