"""Stress by mismatched pairs and by few pairs.

Expected R² of least squares on n Gaussian pairs, where R²₀ belongs to the best map W*:

    a share s mismatched    W → (1 − s) W*,   R² → (1 − s²) R²₀
    few pairs               E (1 − R²) = (1 − R²₀) (1 + 1/n) (n − 2) / (n − d_a − 2)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.alignment.maps import ProcrustesMap, RidgeMap
from jepatlas.alignment.stress.stress_curve import StressCurve
from jepatlas.alignment.stress.stress_trial import (
    FITS,
    Case,
    Fits,
    Protocol,
    Trial,
    run_cases,
    split_by_seed,
    split_for_probe,
    stress_pairs,
)
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split

__all__ = ["BUDGETS", "PRIORS", "SHARES", "mismatched_partners", "pair_budget", "pair_noise"]

PRIORS: Fits = {**FITS, "ridge": RidgeMap(), "Procrustes": ProcrustesMap(scaled=True)}
"""`FITS` and two fits with a prior on the map, for few pairs."""
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
    """Pair a share of the fitted rows with rows of other groups; score on correct pairs.

    With a `split`, seeds differ only in the mismatched pairs. `labels` add the accuracy of migrated probes.
    """
    latents = stress_pairs(a, b, labels, groups)
    protocol = protocol or Protocol()
    if invalid := [share for share in shares if not 0 <= share <= 1]:
        raise InputError(f"'shares' of mismatched pairs must be in [0, 1], but {invalid[0]} was given.")
    draw_split = split_by_seed(latents, split, protocol)
    numbered = latents.groups
    assert numbered is not None  # see `stress_pairs`

    def trials(share: float, rng: np.random.Generator) -> dict[str, Trial]:
        rows = draw_split(rng)
        fit, probe_rows = split_for_probe(latents, rows.fit, rng)
        chosen = rng.permutation(len(fit))[: round(share * len(fit))]
        partners = fit.copy()
        partners[chosen] = mismatched_partners(fit, numbered[fit], chosen, rng)
        return {"": Trial(latents, Split(fit, rows.score), partners, probe_rows)}

    cases = [Case(share, f"{share:g}", lambda rng, share=share: trials(share, rng)) for share in shares]
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
    """Fit on random subsets of the pairs; budgets above the number of pairs are left out.

    The source's probe is trained on half of the rows at every budget.
    """
    latents = stress_pairs(a, b, labels, groups)
    protocol = protocol or Protocol()
    draw_split = split_by_seed(latents, split, protocol)
    seeds = protocol.draw(rng)

    def parts(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        fit, score = draw_split(rng)
        map_rows, probe_rows = split_for_probe(latents, fit, rng)
        return map_rows, probe_rows, score

    most = min(len(parts(np.random.default_rng(seed))[0]) for seed in seeds)
    within = sorted({budget for budget in budgets if 2 <= budget <= most})
    if not within:
        raise InputError(
            f"'budgets' must have a number from 2 to {most}, the number of pairs to fit on, but {list(budgets)} was "
            "given."
        )

    def trials(budget: int, rng: np.random.Generator) -> dict[str, Trial]:
        map_rows, probe_rows, score = parts(rng)
        few = rng.permutation(map_rows)[:budget]
        return {"": Trial(latents, Split(few, score), few, probe_rows)}

    cases = [Case(budget, str(budget), lambda rng, budget=budget: trials(budget, rng)) for budget in within]
    points = run_cases(cases, fits, protocol, seeds)
    return StressCurve("Pair budget", "pairs to fit on", points, protocol.seeds, log_x=True)


def mismatched_partners(
    rows: np.ndarray, groups: np.ndarray, chosen: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """For each chosen position a uniformly drawn row of another group."""
    labels = np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    if len(sizes) < 2:
        raise InputError("Pairs are mismatched between groups, but all rows to fit on belong to one group.")
    own = labels[chosen]
    starts = np.cumsum(sizes) - sizes
    place = rng.integers(len(rows) - sizes[own])
    return rows[order[place + np.where(place >= starts[own], sizes[own], 0)]]
