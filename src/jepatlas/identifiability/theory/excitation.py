"""Persistent excitation: whether the data determine A and B of h' = A h + B u.

    λ = the smallest eigenvalue of Corr(h, u)

The variance of a least-squares coefficient is at most 1/λ times that for uncorrelated columns. λ = 0 if a column is
constant, or if an action is a function of the latent, as under a deterministic policy: then many A and B fit equally
well.

Latents with more dimensions than the state hardly vary in some directions. These surplus directions are left out, as
long as the remaining ones are at least as many as the state's. If the dimension of the state is unknown, surplus
directions and unexplored directions of the state cannot be distinguished, and the number has no threshold.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jepatlas.core.records import Verdict
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.covariance import WeightedCovariance

__all__ = ["excitation", "varying_directions"]

EXCITED = 0.1
"""Smallest eigenvalue that counts as exciting: a variance inflation of 10 is the usual limit of collinearity."""
NAMED = 0.3  # columns with a smaller share of the largest coefficient are not named
MAX_NAMED = 5
MAX_DIRECTIONS = 3


def varying_directions(h: np.ndarray) -> np.ndarray:
    """Directions (d, k) of standardised latents with eigenvalue at least `EXCITED`, scaled to unit variance."""
    values, vectors = np.linalg.eigh(_correlation(WeightedCovariance(h)(np.ones(len(h)))))
    kept = values >= EXCITED
    return vectors[:, kept] / np.sqrt(values[kept])


def excitation(
    h: np.ndarray,
    u: np.ndarray,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
    states: int | None = None,
) -> Verdict:
    """The verdict `persistent_excitation`, which names the directions that were not excited if it fails.

    `states` is the dimension of the state, if known.
    """
    axes = varying_directions(h)
    latents = h.shape[1]
    surplus = latents - axes.shape[1] if axes.shape[1] >= (states or 1) else 0
    columns = h
    to_h = np.eye(latents)
    if surplus:
        spread = h.std(0)
        columns = (h - h[0]) / np.where(spread > 0, spread, 1.0) @ axes
        to_h = axes.T
    covariance = WeightedCovariance(np.concatenate([columns, u], axis=1).astype(np.float64))

    def smallest(weights: np.ndarray) -> dict[str, float]:
        return {"smallest": max(float(np.linalg.eigvalsh(_correlation(covariance(weights)))[0]), 0.0)}

    found = bootstrap(smallest, len(h), rng, groups=groups, replicates=replicates, centred=True)["smallest"]
    weakest = _describe_weakest(_correlation(covariance(np.ones(len(h)))), to_h)
    verdict = Verdict.judge(
        "persistent_excitation",
        found,
        direction="higher",
        threshold=EXCITED,
        null=0.0,
        good="Latents and actions vary in all directions, so the rows determine the dynamics.",
        bad=f"{weakest} The dynamics along this are not determined. Explore with random actions that do not "
        "depend on the observation.",
    )
    return _mention_surplus(verdict, surplus, latents, states) if surplus else verdict


def _mention_surplus(verdict: Verdict, surplus: int, latents: int, states: int | None) -> Verdict:
    if verdict.passed is False:
        return verdict
    left_out = f"{surplus} of {latents} directions of the latents hardly vary and were left out"
    varies = "Latents and actions vary in all others, so the rows determine the dynamics there."
    if states is not None:
        return replace(verdict, advice=f"{left_out}: surplus dimensions, since the state has {states}. {varies}")
    why = "surplus dimensions, or directions of the state that were not explored"
    return replace(verdict, passed=None, threshold=None, advice=f"{left_out}: {why}. {varies}")


def _correlation(covariance: np.ndarray) -> np.ndarray:
    """Correlation matrix; constant columns are zero, and so is their eigenvalue."""
    spread = np.sqrt(np.maximum(np.diag(covariance), 0))
    units = np.where(spread > 0, spread, 1.0)
    return covariance / units[:, None] / units


def _describe_weakest(correlation: np.ndarray, to_h: np.ndarray) -> str:
    """The directions that hardly vary, in latents and actions; `to_h` (k, d) expresses the columns in latents."""
    columns, latents = to_h.shape
    constant = np.flatnonzero(np.diag(correlation) == 0).tolist()
    sentences = []
    if constant:
        names = [_name(i if i < columns else i - columns + latents, latents) for i in constant]
        sentences.append(f"{', '.join(names)} never {'varies' if len(names) == 1 else 'vary'}.")
    varying = np.diag(correlation) > 0
    values, vectors = np.linalg.eigh(correlation[np.ix_(varying, varying)])
    count = max(int((values < EXCITED).sum()), 0 if constant else 1)
    terms = []
    for vector in vectors[:, :count].T[:MAX_DIRECTIONS]:
        weakest = np.zeros(len(correlation))
        weakest[varying] = vector
        terms.append(_terms(np.append(weakest[:columns] @ to_h, weakest[columns:]), latents))
    if terms:
        more = f" and {count - len(terms)} more" if count > len(terms) else ""
        form = "direction {} (in standard deviations) hardly varies."
        if count > 1:
            form = "directions {} (in standard deviations) hardly vary."
        sentences.append(f"The {form.format('; '.join(terms) + more)}")
    return " ".join(sentences)


def _terms(direction: np.ndarray, latents: int) -> str:
    """The largest coefficients of a direction, such as `0.71·h[0] − 0.70·u[1]`."""
    named = np.abs(direction) > NAMED * np.abs(direction).max()
    order = [i for i in np.argsort(-np.abs(direction), kind="stable").tolist() if named[i]]
    sign = np.sign(direction[order[0]])
    text = ""
    for i in order[:MAX_NAMED]:
        mark = "−" if sign * direction[i] < 0 else "+"
        text += f" {mark} {abs(direction[i]):.2f}·{_name(i, latents)}"
    more = " + …" if len(order) > MAX_NAMED else ""
    return f"{text.removeprefix(' + ')}{more}"


def _name(column: int, latents: int) -> str:
    return f"h[{column}]" if column < latents else f"u[{column - latents}]"
