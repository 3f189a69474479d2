"""Persistent excitation: whether what was done, and where, leaves A and B of h' = A h + B u no choice.

    λ = the smallest eigenvalue of Corr(h, u)

A least-squares coefficient is at most 1/λ times as uncertain, in variance, as it would be were all columns
uncorrelated. λ = 0 where a column never varies, or where an action always follows from the latent, as under a
deterministic policy: then many A and B fit equally well.
"""

from __future__ import annotations

import numpy as np

from jepatlas.base.records import Verdict
from jepatlas.base.stats import bootstrap
from jepatlas.identify.covariance import WeightedCovariance

__all__ = ["EXCITED", "excitation"]

EXCITED = 0.1
"""From this eigenvalue on rows count as exciting: a variance inflation of 10 is where regressions are said to be
collinear."""
NAMED = 0.3  # share of the largest coefficient below which a column is not named


def excitation(
    h: np.ndarray, u: np.ndarray, rng: np.random.Generator, *, groups: np.ndarray | None = None, replicates: int = 500
) -> Verdict:
    """The verdict `persistent_excitation`, which names the direction that is least excited where that is too little."""
    covariance = WeightedCovariance(np.concatenate([h, u], axis=1).astype(np.float64))

    def smallest(weights: np.ndarray) -> dict[str, float]:
        return {"smallest": max(float(np.linalg.eigvalsh(_correlation(covariance(weights)))[0]), 0.0)}

    found = bootstrap(smallest, len(h), rng, groups=groups, replicates=replicates, centred=True)["smallest"]
    return Verdict.judge(
        "persistent_excitation", found, direction="higher", threshold=EXCITED, null=0.0,
        good="Latents and actions vary in all directions, so that the rows leave the dynamics no choice.",
        bad=f"{_missing(_correlation(covariance(np.ones(len(h)))), h.shape[1])} The dynamics along it are not "
            "determined: explore with actions that are drawn at random there, and do not follow from what is seen.",
    )  # fmt: skip


def _correlation(covariance: np.ndarray) -> np.ndarray:
    """Of columns that vary; those that do not are zero, and so is their eigenvalue."""
    spread = np.sqrt(np.maximum(np.diag(covariance), 0))
    units = np.where(spread > 0, spread, 1.0)
    return covariance / units[:, None] / units


def _missing(correlation: np.ndarray, latents: int) -> str:
    still = [_name(i, latents) for i in np.flatnonzero(np.diag(correlation) == 0).tolist()]
    if still:
        return f"{', '.join(still)} never {'varies' if len(still) == 1 else 'vary'}."
    weakest = np.linalg.eigh(correlation)[1][:, 0]
    named = np.abs(weakest) > NAMED * np.abs(weakest).max()
    order = [i for i in np.argsort(-np.abs(weakest), kind="stable").tolist() if named[i]]
    sign = np.sign(weakest[order[0]])
    terms = "".join(
        f" {'−' if sign * weakest[i] < 0 else '+'} {abs(weakest[i]):.2f}·{_name(i, latents)}" for i in order
    )
    return f"The direction{terms.replace(' +', '', 1)} (in standard deviations) hardly varies."


def _name(column: int, latents: int) -> str:
    return f"h[{column}]" if column < latents else f"u[{column - latents}]"
