"""Theorem 3 of "When Does LeJEPA Learn a World Model?": a bound on the distance of h from a rotation of z, without z.

    ε = ‖Cov h − I‖_F        δ = E‖h − h'‖² − 2(1−ρ) tr Cov h        D = δ / (2ρ(1−ρ))
    min_Q E‖h − Qz‖²  ≤  D + (ε + D)²

The theorem assumes a Gaussian world with one rate ρ for all directions and zero mean, so h is centred first. A sampled
δ can be negative; D is then clipped at zero. Intervals are centred, because ε is a norm and resampling inflates it.

Whitened latents have ε = 0 on the rows that the whitening map was fitted on, whatever its error. `whitened_bound`
therefore whitens each half of the rows by a map fitted on the other half, and averages the terms of both halves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, whitener
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.covariance import WeightedCovariance, resampling_units
from jepatlas.identifiability.standards import UNEXPLAINED
from jepatlas.identifiability.validation import (
    as_arrays,
    check_matrices,
    check_same_shape,
    check_split,
    check_weights,
    rates,
)

__all__ = ["bound", "bound_terms", "bound_verdicts", "theorem_verdicts", "whitened_bound"]

SIGNED = ("delta", "gap")  # the other terms are non-negative
Terms = Mapping[str, Estimate]


def bound(
    h: np.ndarray,
    h_next: np.ndarray,
    rho: float | Estimate,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> dict[str, Estimate]:
    """Estimates of `epsilon`, `delta`, `gap` (D) and `bound`, with intervals.

    All terms but ε increase with ρ. If ρ is an estimate, values and upper limits use its upper limit, and lower limits
    its lower limit.
    """
    h, h_next, groups = as_arrays(h=h, h_next=h_next, groups=groups)
    check_matrices(groups, h=h, h_next=h_next)
    check_same_shape(h=h, h_next=h_next)
    labels = resampling_units(len(h), groups, h.shape[1])
    return _estimates([_BlockSums.of(h, h_next, labels)], len(h), rho, rng, replicates)


def whitened_bound(
    h: np.ndarray,
    h_next: np.ndarray,
    rho: float | Estimate,
    split: Split,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> dict[str, Estimate]:
    """The same for whitened latents; the rows of each side of `split` are whitened by those of the other side."""
    h, h_next, groups = as_arrays(h=h, h_next=h_next, groups=groups)
    check_matrices(groups, h=h, h_next=h_next)
    check_same_shape(h=h, h_next=h_next)
    check_split(split, len(h))
    labels = resampling_units(len(h), groups, h.shape[1])
    parts = []
    for fit, score in (split, split[::-1]):
        white = whitener(np.concatenate([h[fit], h_next[fit]]))
        parts.append(_BlockSums.of(white.apply(h[score]), white.apply(h_next[score]), labels[score], labels.max() + 1))
    return _estimates(parts, len(h), rho, rng, replicates)


def bound_terms(h: np.ndarray, h_next: np.ndarray, rho: float, weights: np.ndarray | None = None) -> dict[str, float]:
    """All terms of the theorem on weighted rows. The covariance is of both views, about their common mean."""
    if weights is None:
        weights = np.ones(len(h))
    h, h_next, row_weights = as_arrays(h=h, h_next=h_next, weights=weights)
    check_matrices(h=h, h_next=h_next)
    check_same_shape(h=h, h_next=h_next)
    check_weights(row_weights, len(h))
    if not row_weights.sum() > 0:
        raise InputError("'weights' must not all be zero.")
    covariance = WeightedCovariance(np.concatenate([h, h_next]))(np.concatenate([row_weights, row_weights]))
    loss = row_weights @ np.square(h - h_next).sum(1) / row_weights.sum()
    return _terms(covariance, float(loss), float(rates(rho, 1)[0]))


def _terms(covariance: np.ndarray, loss: float, rho: float) -> dict[str, float]:
    epsilon = float(np.linalg.norm(covariance - np.eye(len(covariance))))
    delta = float(loss - 2 * (1 - rho) * np.trace(covariance))
    gap = delta / (2 * rho * (1 - rho))
    excess = max(gap, 0.0)
    return {"epsilon": epsilon, "delta": delta, "gap": gap, "bound": excess + (epsilon + excess) ** 2}


@dataclass(frozen=True)
class _BlockSums:
    """Sums over the pairs of each block. A resample then costs as much as the blocks, not as much as the rows."""

    pairs: np.ndarray  # (blocks,)
    total: np.ndarray  # (blocks, d)  Σ (h + h')
    products: np.ndarray  # (blocks, d²)  Σ hhᵀ + h'h'ᵀ
    losses: np.ndarray  # (blocks,)  Σ ‖h − h'‖²

    @classmethod
    def of(cls, h: np.ndarray, h_next: np.ndarray, labels: np.ndarray, blocks: int | None = None) -> Self:
        count = int(labels.max()) + 1 if blocks is None else int(blocks)
        centre = (h.mean(0) + h_next.mean(0)) / 2
        dim = h.shape[1]
        total = np.zeros((count, dim))
        products = np.zeros((count, dim**2))
        order = np.argsort(labels, kind="stable")
        pairs = np.bincount(labels, minlength=count)
        for block, rows in enumerate(np.split(order, np.cumsum(pairs)[:-1])):
            both = np.concatenate([h[rows], h_next[rows]]) - centre
            total[block] = both.sum(0)
            products[block] = (both.T @ both).ravel()
        losses = np.bincount(labels, np.square(h - h_next).sum(1), minlength=count)
        return cls(pairs.astype(np.float64), total, products, losses)

    def terms(self, weights: np.ndarray, rho: float) -> dict[str, float]:
        pairs = weights @ self.pairs
        mean = weights @ self.total / (2 * pairs)
        second = (weights @ self.products / (2 * pairs)).reshape(len(mean), len(mean))
        return _terms(second - np.outer(mean, mean), float(weights @ self.losses / pairs), rho)


def _estimates(
    parts: Sequence[_BlockSums], rows: int, rho: float | Estimate, rng: np.random.Generator, replicates: int
) -> dict[str, Estimate]:
    """Intervals of the terms, means over parts, at a known ρ, or at both limits of an estimate."""
    if isinstance(rho, Estimate):
        smallest = float(np.clip(rho.low, 1e-3, rho.high))
        low = _estimates(parts, rows, smallest, rng, replicates)
        high = _estimates(parts, rows, rho.high, rng, replicates)
        return {name: replace(term, low=min(term.low, low[name].low)) for name, term in high.items()}
    rate = float(rates(rho, 1)[0])

    def statistic(weights: np.ndarray) -> dict[str, float]:
        shares = [float(weights @ part.pairs) for part in parts]
        means = dict.fromkeys(("epsilon", "delta", "gap", "bound"), 0.0)
        for part, share in zip(parts, shares, strict=True):
            if share > 0:  # a resample of few groups may leave out all of a part
                for name, value in part.terms(weights, rate).items():
                    means[name] += share / sum(shares) * value
        return means

    blocks = len(parts[0].pairs)
    estimates = bootstrap(statistic, blocks, rng, replicates=replicates, centred=True)
    for name, term in estimates.items():
        low = term.low if name in SIGNED else max(term.low, 0.0)
        estimates[name] = replace(term, low=low, n=rows)
    return estimates


def bound_verdicts(terms: Terms, dim: int, null: float, *, form: str = "", estimated: str = "") -> list[Verdict]:
    """Verdicts on ε, δ, D and the bound, of latents as they are or (`form` "_whitened") after whitening.

    `null` is the ε due to sampling alone. A bound that is too loose only because of it, or because ρ is uncertain, is
    undecided. `estimated` explains where ρ comes from, if it was not given.
    """
    after = " after whitening" if form else ""
    return [
        Verdict.judge(
            f"epsilon{form}",
            terms["epsilon"],
            direction="lower",
            null=null,
            good=f"ε = ‖Cov h − I‖: distance of the latent covariance from the identity{after}.",
        ),
        Verdict.judge(
            f"delta{form}",
            terms["delta"],
            direction="lower",
            null=0.0,
            good=f"δ: alignment loss above the minimum for a linear map{after}.",
        ),
        Verdict.judge(
            f"gap{form}",
            terms["gap"],
            direction="lower",
            null=0.0,
            good=f"D = δ/2ρ(1−ρ): upper bound on the nonlinear variance of the latents{after}.",
        ),
        _bound_verdict(terms, UNEXPLAINED * dim, null, form=form, estimated=estimated),
    ]


def _bound_verdict(terms: Terms, limit: float, null: float, *, form: str, estimated: str) -> Verdict:
    after = " after whitening" if form else ""
    condition = ", provided that the data ρ was estimated from determine the state" if estimated else ""
    remedy = "Train longer to improve the alignment." if form else "Whitening may tighten it."
    verdict = Verdict.judge(
        f"bound{form}",
        terms["bound"],
        direction="lower",
        threshold=limit,
        good=f"Theorem 3 certifies the latents{after} without the true state{condition}.{estimated}",
        bad=f"The bound{after} is too loose to certify the latents. {remedy}{estimated}",
    )
    gap = max(terms["gap"].low, 0.0)
    epsilon = np.sqrt(max(terms["epsilon"].low ** 2 - null**2, 0.0))
    if verdict.passed is not False or gap + (epsilon + gap) ** 2 > limit:
        return verdict
    if estimated:
        advice = f"Undecided: the estimate of ρ is too uncertain. Give ρ, or more pairs.{estimated}"
    else:
        advice = f"Undecided: the bound{after} is too uncertain. Give more pairs."
    return replace(verdict, passed=None, advice=advice)


def theorem_verdicts(errors: Mapping[str, Estimate], bounds: Mapping[str, Terms]) -> list[Verdict]:
    """The ratio of the measured error to the bound, for each form.

    Informative, unless the lower limit of the error exceeds the upper limit of the bound, which contradicts the
    theorem beyond noise.
    """
    verdicts = [_ratio_verdict(form, errors[form], bounds[form]["bound"]) for form in errors.keys() & bounds.keys()]
    return sorted(verdicts, key=lambda verdict: verdict.name)


def _ratio_verdict(form: str, error: Estimate, limit: Estimate) -> Verdict:
    low = _ratio(error.low, limit.high)
    high = _ratio(error.high, limit.low)
    violated = low > 1.0
    if violated:
        advice = "The measured error exceeds the bound, so an assumption of the theorem is violated."
    else:
        advice = "Measured error divided by the bound: consistent with the theorem."
    return Verdict(
        f"error_to_bound{form}",
        _ratio(error.value, limit.value),
        low,
        high,
        error.n,
        null=None,
        threshold=1.0 if violated else None,
        direction="lower",
        passed=False if violated else None,
        advice=advice,
    )


def _ratio(error: float, limit: float) -> float:
    """error / limit; infinite where the bound may be zero."""
    if limit > np.finfo(float).eps:
        return error / limit
    return float("inf") if error > 0 else 0.0
