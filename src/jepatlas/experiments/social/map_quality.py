"""Held-out R² and condition number of maps that are fitted on few pairs, or on mismatched ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jepatlas.alignment import PairedLatents
from jepatlas.alignment.maps import FittedMap, LeastSquaresMap, ProcrustesMap, RidgeMap, RobustMap
from jepatlas.core.linear import r2
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.alignment.pair_noise import SHARES, mismatch
from jepatlas.experiments.engine.rules import point_estimates
from jepatlas.experiments.social.agent_pairs import groups_of_pair, split_of
from jepatlas.experiments.social.pair_measures import leading_directions

__all__ = ["METHODS", "NOISE_METHODS", "budgets", "measure_budgets_and_noise"]

BUDGETS = (50, 100, 200, 500, 1000, 5000, 20_000)
METHODS: dict[str, Callable[[], LeastSquaresMap | RidgeMap | ProcrustesMap]] = {
    "least squares": LeastSquaresMap,
    "ridge": RidgeMap,
    "Procrustes": lambda: ProcrustesMap(scaled=True),
}
NOISE_METHODS = {"least squares": LeastSquaresMap, "robust": RobustMap}


def measure_budgets_and_noise(pair: PairedLatents) -> dict[str, Estimate]:
    """Held-out R² and κ of maps fitted on few pairs, and on mismatched ones."""
    fit, score = split_of(pair)
    groups = groups_of_pair(pair)
    a, b = (leading_directions(side.h, fit) for side in (pair.a, pair.b))
    order = numpy_generator(0, "pairs").permutation(fit)
    held = a[score], b[score]
    found = {}
    for count in budgets(len(fit)):
        rows = order[:count]
        for name, method in METHODS.items():
            fitted = _fit(method(), a[rows], b[rows], groups[rows])
            found |= _scores(f"{name}_{count}", fitted, held)
    for share in SHARES:
        partners = order[mismatch(len(order), share, numpy_generator(0, "mismatch"))]
        for name, method in NOISE_METHODS.items():
            found |= _scores(f"noise_{name}_{share:g}", method().fit(a[order], b[partners]), held)
    most = f"noise_least squares_{SHARES[-1]:g}"
    found["lost"] = found["r2_noise_least squares_0"] - found[f"r2_{most}"]
    found["growth"] = found[f"kappa_{most}"] / found["kappa_noise_least squares_0"]
    found["gained"] = found[f"r2_ridge_{len(fit)}"] - found[f"r2_ridge_{budgets(len(fit))[0]}"]
    return point_estimates(found, len(score))


def budgets(most: int) -> list[int]:
    """The published budgets below the number of pairs, and all pairs.

    >>> budgets(700)
    [50, 100, 200, 500, 700]
    """
    return [*(budget for budget in BUDGETS if budget < most), most]


def _fit(
    method: LeastSquaresMap | RidgeMap | ProcrustesMap, a: np.ndarray, b: np.ndarray, groups: np.ndarray
) -> FittedMap:
    """Ridge chooses its penalty by whole groups; few pairs may all be of one group."""
    if isinstance(method, RidgeMap) and len(np.unique(groups)) > 1:
        return method.fit(a, b, groups=groups)
    return method.fit(a, b)


def _scores(name: str, fitted: FittedMap, held: tuple[np.ndarray, np.ndarray]) -> dict[str, float]:
    a, b = held
    return {f"r2_{name}": r2(b, fitted.transform(a)), f"kappa_{name}": fitted.conditioning_.condition}
