"""Persistent excitation: whether what was done, and where, leaves A and B of h' = A h + B u no choice.

    λ = the smallest eigenvalue of Corr(h, u)

A least-squares coefficient is at most 1/λ times as uncertain, in variance, as it would be were all columns
uncorrelated. λ = 0 where a column never varies, or where an action always follows from the latent, as under a
deterministic policy: then many A and B fit equally well.

More latents than the state has dimensions hardly vary in some directions whatever is done. Such surplus directions are
left out, and λ is that of those that vary; so long as these are as many as the state's, or a direction of the state
was not explored. Where the state is not known the two cannot be told apart, and the number only informs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jepatlas.core.records import Verdict
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.covariance import WeightedCovariance

__all__ = ["EXCITED", "excitation", "varying_directions"]

EXCITED = 0.1
"""From this eigenvalue on rows count as exciting: a variance inflation of 10 is where regressions are said to be
collinear."""
NAMED = 0.3  # share of the largest coefficient below which a column is not named
MOST_NAMED = 5


def varying_directions(h: np.ndarray) -> np.ndarray:
    """Those of latents, at variance one each, whose variance counts as exciting; (d, k), so that it becomes one."""
    values, vectors = np.linalg.eigh(_correlation(WeightedCovariance(h)(np.ones(len(h)))))
    return vectors[:, values >= EXCITED] / np.sqrt(values[values >= EXCITED])


def excitation(
    h: np.ndarray,
    u: np.ndarray,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
    states: int | None = None,
) -> Verdict:
    """The verdict `persistent_excitation`, which names the direction that is least excited where that is too little.

    `states` is the number of the state's dimensions, where it is known.
    """
    axes, latents = varying_directions(h), h.shape[1]
    surplus = latents - axes.shape[1] if axes.shape[1] >= (states or 1) else 0
    spread = h.std(0)
    judged = (h - h[0]) / np.where(spread > 0, spread, 1.0) @ axes if surplus else h
    to_h = axes.T if surplus else np.eye(latents)
    covariance = WeightedCovariance(np.concatenate([judged, u], axis=1).astype(np.float64))

    def smallest(weights: np.ndarray) -> dict[str, float]:
        return {"smallest": max(float(np.linalg.eigvalsh(_correlation(covariance(weights)))[0]), 0.0)}

    found = bootstrap(smallest, len(h), rng, groups=groups, replicates=replicates, centred=True)["smallest"]
    verdict = Verdict.judge(
        "persistent_excitation",
        found,
        direction="higher",
        threshold=EXCITED,
        null=0.0,
        good="Latents and actions vary in all directions, so that the rows leave the dynamics no choice.",
        bad=f"{_missing(_correlation(covariance(np.ones(len(h)))), to_h)} The dynamics along it are not "
        "determined: explore with actions that are drawn at random there, and do not follow from what is seen.",
    )
    return _with_surplus(verdict, surplus, latents, states) if surplus else verdict


def _with_surplus(verdict: Verdict, surplus: int, latents: int, states: int | None) -> Verdict:
    """Say which directions were left out; where the state is not known they may be unexplored ones."""
    if verdict.passed is False:
        return verdict
    left = f"{surplus} of {latents} directions of the latents hardly vary and were left out:"
    varies = "In all others latents and actions vary, so that the rows leave the dynamics there no choice."
    if states is not None:
        return replace(verdict, advice=f"{left} surplus dimensions, since the state has {states}. {varies}")
    why = "surplus dimensions, or directions of the state that were not explored."
    return replace(verdict, passed=None, threshold=None, advice=f"{left} {why} {varies}")


def _correlation(covariance: np.ndarray) -> np.ndarray:
    """Of columns that vary; those that do not are zero, and so is their eigenvalue."""
    spread = np.sqrt(np.maximum(np.diag(covariance), 0))
    units = np.where(spread > 0, spread, 1.0)
    return covariance / units[:, None] / units


def _missing(correlation: np.ndarray, to_h: np.ndarray) -> str:
    """What hardly varies, in terms of latents and actions: `to_h` are the latents' part of the columns, (k, d)."""
    columns, latents = to_h.shape
    still = np.flatnonzero(np.diag(correlation) == 0)
    if len(still):
        names = [_name(i if i < columns else i - columns + latents, latents) for i in still.tolist()]
        return f"{', '.join(names)} never {'varies' if len(names) == 1 else 'vary'}."
    weakest = np.linalg.eigh(correlation)[1][:, 0]
    weakest = np.append(weakest[:columns] @ to_h, weakest[columns:])
    named = np.abs(weakest) > NAMED * np.abs(weakest).max()
    order = [i for i in np.argsort(-np.abs(weakest), kind="stable").tolist() if named[i]]
    sign = np.sign(weakest[order[0]])
    terms = "".join(
        f" {'−' if sign * weakest[i] < 0 else '+'} {abs(weakest[i]):.2f}·{_name(i, latents)}"
        for i in order[:MOST_NAMED]
    )
    more = " + …" if len(order) > MOST_NAMED else ""
    return f"The direction{terms.replace(' +', '', 1)}{more} (in standard deviations) hardly varies."


def _name(column: int, latents: int) -> str:
    return f"h[{column}]" if column < latents else f"u[{column - latents}]"
