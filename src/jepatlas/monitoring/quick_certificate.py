"""A quick certificate of a few thousand pairs, for use during training: about a second in 16 dimensions.

It uses the procedures of `certify`, with fewer candidates in the spectral solver and fewer bootstrap replicates, and
leaves out the diagnosis and the audit. Use it to watch training, and `certify` to decide.
"""

from __future__ import annotations

import math

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import hold_out, whitener
from jepatlas.core.normality import epps_pulley_null
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability import certify, recovery, recovery_null
from jepatlas.identifiability.dimension.rank import effective_rank
from jepatlas.identifiability.linear_recovery import recovery_verdicts
from jepatlas.identifiability.spectral.pair_ladder import fit_pair_ladder
from jepatlas.identifiability.spectral.solver import SpectrumSettings
from jepatlas.monitoring.metrics import SIGRegStatistic

__all__ = ["quick_verdicts"]

REPLICATES = 20  # of the bootstrap: 500 would take most of a minute in 384 dimensions
MOST_FUNCTIONS = 16
SLICES_SEED = 0  # the same slices at every step, so that values can be compared


def quick_verdicts(
    h: np.ndarray, h_next: np.ndarray, z: np.ndarray | None = None, *, rho: float | None = None, seed: int = 0
) -> list[Verdict]:
    """`r2` (with the true state), `bound`, `bound_whitened`, `rho`, `dimension`, `effective_rank` and `sigreg`.

    Without ρ, the bounds use the upper limit of its estimate. In more than 32 dimensions, `rho` and `dimension` are
    those of the 32 principal components. A verdict that the pairs do not give, for example the bound of collapsed
    latents, is missing; latents that are not finite have none.

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 2000, 2))
    >>> found = quick_verdicts(z, 0.9 * z + np.sqrt(1 - 0.9**2) * noise, z)
    >>> [verdict.name for verdict in found if verdict.passed]
    ['r2', 'dimension', 'effective_rank']
    """
    if not (np.isfinite(h).all() and np.isfinite(h_next).all()):
        return []
    h = h.astype(np.float64)
    h_next = h_next.astype(np.float64)
    verdicts = [] if z is None else _recovery(h, z.astype(np.float64), seed)
    width = h.shape[1]
    functions = min(width + width * (width + 1) // 2, MOST_FUNCTIONS)
    settings = SpectrumSettings(
        functions=functions,
        features=64,
        length_scales=(0.35, 0.7, 1.6),
        ridges=(1e-5, 1e-3, 1e-1),
        replicates=REPLICATES,
    )
    ladder = fit_pair_ladder(h, h_next, settings=settings, seed=seed)
    rate = rho
    if rate is None and ladder.rho is not None:
        rate = ladder.rho.high
    if rate is not None:
        verdicts += _bounds(h, h_next, rate, seed)
    verdicts += [verdict for verdict in ladder.verdicts(width, rho) if verdict.name in ("rho", "dimension")]
    verdicts.append(effective_rank(h, h_next))
    verdicts.append(_sigreg(h, h_next))
    return verdicts


def _recovery(h: np.ndarray, z: np.ndarray, seed: int) -> list[Verdict]:
    try:
        split = hold_out(len(h), numpy_generator(seed, "split"))
        rng = numpy_generator(seed, "recovery")
        found = recovery(h, z, split, rng, white=whitener(h[split.fit]), replicates=REPLICATES)
        null = recovery_null(h, z, split, numpy_generator(seed, "null"))
    except InputError:
        return []
    return [verdict for verdict in recovery_verdicts(found, null) if verdict.name == "r2"]


def _bounds(h: np.ndarray, h_next: np.ndarray, rho: float, seed: int) -> list[Verdict]:
    try:
        verdicts = certify(h, h_next, rho=rho, seed=seed, replicates=REPLICATES)
    except InputError:
        return []
    return [verdict for verdict in verdicts if verdict.name in ("bound", "bound_whitened")]


def _sigreg(h: np.ndarray, h_next: np.ndarray) -> Verdict:
    values = []
    for view in (h, h_next):
        metric = SIGRegStatistic(seed=SLICES_SEED)
        metric.update(view)
        values.append(metric.compute())
    return Verdict.judge(
        "sigreg",
        Estimate.exact(math.fsum(values) / 2, len(h)),
        direction="lower",
        null=epps_pulley_null(),
        good="SIGReg statistic of the latents, mean over both views. For latents that are not N(0, I) it grows with "
        "the number of pairs.",
    )
