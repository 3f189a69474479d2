"""What an alignment withstands: mismatched pairs, and few of them.

What to expect of least squares on n Gaussian pairs, R²₀ being that of the best map W*:

    a share s mismatched    W → (1 − s) W*,   R² → (1 − s²) R²₀
    few pairs               E (1 − R²) = (1 − R²₀) (1 + 1/n) (n − 2) / (n − d_a − 2)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.alignment.maps.estimators import ProcrustesMap, RidgeMap
from jepatlas.alignment.stress.curve import StressCurve
from jepatlas.alignment.stress.runs import FITS, Case, Protocol, divider, run_cases
from jepatlas.alignment.stress.trial import Fits, LatentPairs, Trial, shared_out
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split

__all__ = ["BUDGETS", "PRIORS", "SHARES", "pair_budget", "pair_noise"]

PRIORS: Fits = {**FITS, "ridge": RidgeMap(), "Procrustes": ProcrustesMap(scaled=True)}
"""With fits that expect something of the map, for when pairs are few."""
SHARES = (0.0, 0.1, 0.2, 0.3)
BUDGETS = (50, 100, 500, 1000, 5000, 20_000)


def pair_noise(
    a: np.ndarray,
    b: np.ndarray,
    rng: np.random.Generator,
    *,
    shares: Sequence[float] = SHARES,
    fits: Fits = FITS,
    labels: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    split: Split | None = None,
    protocol: Protocol | None = None,
) -> StressCurve:
    """A share of the fitted pairs gets the partner of another group's row; scores are those of right pairs.

    With a `split`, seeds differ by the mismatched pairs alone. `labels` add the accuracy of migrated probes.
    """
    latents, protocol = LatentPairs.of(a, b, labels, groups), protocol or Protocol()
    if strange := [share for share in shares if not 0 <= share <= 1]:
        raise InputError(f"A share of mismatched pairs lies between 0 and 1, but {strange[0]} was given.")
    divide = divider(latents, split, protocol)

    def trials(share: float, own: np.random.Generator) -> dict[str, Trial]:
        rows = divide(own)
        fit, probed = shared_out(latents, rows.fit, own)
        chosen = own.permutation(len(fit))[: round(share * len(fit))]
        partners = fit.copy()
        partners[chosen] = _strangers(fit, latents.groups[fit], chosen, own)
        return {"": Trial(latents, Split(fit, rows.score), partners, probed)}

    cases = [Case(share, f"{share:g}", lambda own, share=share: trials(share, own)) for share in shares]
    points = run_cases(cases, fits, protocol, protocol.draw(rng))
    return StressCurve("Mismatched pairs", "share of mismatched pairs", points, protocol.seeds)


def pair_budget(
    a: np.ndarray,
    b: np.ndarray,
    rng: np.random.Generator,
    *,
    budgets: Sequence[int] = BUDGETS,
    fits: Fits = PRIORS,
    labels: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    split: Split | None = None,
    protocol: Protocol | None = None,
) -> StressCurve:
    """Only so many of the pairs to fit on, drawn at random; budgets that are more than there are, are left out.

    The source's probe has half of the rows, whatever the budget: labels are not what is short.
    """
    latents, protocol = LatentPairs.of(a, b, labels, groups), protocol or Protocol()
    divide, seeds = divider(latents, split, protocol), protocol.draw(rng)

    def shared(own: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        fit, score = divide(own)
        return *shared_out(latents, fit, own), score

    most = min(len(shared(np.random.default_rng(seed))[0]) for seed in seeds)
    within = sorted({budget for budget in budgets if 2 <= budget <= most})
    if not within:
        raise InputError(
            f"There are {most} pairs to fit on, and none of the budgets {list(budgets)} is from 2 to {most}."
        )

    def trials(budget: int, own: np.random.Generator) -> dict[str, Trial]:
        fit, probed, score = shared(own)
        few = own.permutation(fit)[:budget]
        return {"": Trial(latents, Split(few, score), few, probed)}

    cases = [Case(budget, str(budget), lambda own, budget=budget: trials(budget, own)) for budget in within]
    points = run_cases(cases, fits, protocol, seeds)
    return StressCurve("Pair budget", "pairs to fit on", points, protocol.seeds, log_x=True)


def _strangers(rows: np.ndarray, groups: np.ndarray, chosen: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """For each chosen place a row of another group, all equally likely."""
    labels = np.unique(groups, return_inverse=True)[1]
    sizes, order = np.bincount(labels), np.argsort(labels, kind="stable")
    if len(sizes) < 2:
        raise InputError("Pairs are mismatched between groups, but all rows to fit on are of one group.")
    own, starts = labels[chosen], np.cumsum(sizes) - sizes
    place = rng.integers(len(rows) - sizes[own])
    return rows[order[place + np.where(place >= starts[own], sizes[own], 0)]]
