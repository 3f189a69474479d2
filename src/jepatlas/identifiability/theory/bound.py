"""Theorem 3 of "When Does LeJEPA Learn a World Model?": the distance of h from a rotation of z, without z.

    ε = ‖Cov h − I‖_F        δ = E‖h − h'‖² − 2(1−ρ) tr Cov h        D = δ / (2ρ(1−ρ))
    min_Q E‖h − Qz‖²  ≤  D + (ε + D)²

It presumes a Gaussian world with one rate ρ for all directions, and zero mean: so h is centred first. A sampled δ
can be negative; D counts as zero then. Intervals are centred: ε is a norm, and resampling makes it larger than it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.checks import as_arrays, check_matrices, check_same_shape, rates
from jepatlas.identifiability.covariance import WeightedCovariance

__all__ = ["bound", "bound_terms", "bound_verdicts", "epsilon_null", "theorem_verdicts"]

UNEXPLAINED = 0.1
"""Share of the state's variance that a bound may leave open and still certify."""
SIGNED = ("delta", "gap")  # the others are not below zero
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

    All but ε grow with ρ. Where that is an estimate, values and upper ends are taken at its upper limit, lower ends at
    its lower one.
    """
    h, h_next, groups = as_arrays(h=h, h_next=h_next, groups=groups)
    if isinstance(rho, Estimate):
        low = bound(h, h_next, float(np.clip(rho.low, 1e-3, rho.high)), rng, groups=groups, replicates=replicates)
        high = bound(h, h_next, rho.high, rng, groups=groups, replicates=replicates)
        return {name: replace(term, low=min(term.low, low[name].low)) for name, term in high.items()}
    check_matrices(groups, h=h, h_next=h_next)
    terms = _Terms(h, h_next, float(rates(rho, 1)[0]))
    found = bootstrap(terms, len(h), rng, groups=groups, replicates=replicates, centred=True)
    return {name: term if name in SIGNED else replace(term, low=max(term.low, 0.0)) for name, term in found.items()}


def bound_terms(h: np.ndarray, h_next: np.ndarray, rho: float, weights: np.ndarray | None = None) -> dict[str, float]:
    """Every term of the theorem; the covariance is that of both views about their common mean."""
    h, h_next, given = as_arrays(h=h, h_next=h_next, weights=np.ones(len(h)) if weights is None else weights)
    check_matrices(h=h, h_next=h_next)
    if given.shape != (len(h),) or not (given >= 0).all() or not 0 < given.sum() < np.inf:
        raise InputError(f"There must be a weight for each of {len(h)} rows, none negative and not all of them zero.")
    return _Terms(h, h_next, float(rates(rho, 1)[0]))(given)


class _Terms:
    def __init__(self, h: np.ndarray, h_next: np.ndarray, rho: float) -> None:
        check_same_shape(h=h, h_next=h_next)
        self.rho = rho
        self.covariance = WeightedCovariance(np.concatenate([h, h_next]))
        self.distances = np.square(h - h_next).sum(1)

    def __call__(self, weights: np.ndarray) -> dict[str, float]:
        rho, covariance = self.rho, self.covariance(np.concatenate([weights, weights]))
        loss = weights @ self.distances / weights.sum()
        epsilon = float(np.linalg.norm(covariance - np.eye(len(covariance))))
        delta = float(loss - 2 * (1 - rho) * np.trace(covariance))
        gap = delta / (2 * rho * (1 - rho))
        excess = max(gap, 0.0)
        return {"epsilon": epsilon, "delta": delta, "gap": gap, "bound": excess + (epsilon + excess) ** 2}


def epsilon_null(dim: int, pairs: float, rho: float = 0.0) -> float:
    """What sampling alone makes of ε for white Gaussian latents: √(d(d+1)(1+ρ²) / 2 pairs).

    The two rows of a pair are worth 2/(1+ρ²) independent ones, because their products correlate by ρ².
    """
    return float(np.sqrt(dim * (dim + 1) * (1 + rho**2) / (2 * pairs)))


def bound_verdicts(terms: Terms, dim: int, null: float, *, form: str = "", estimated: str = "") -> list[Verdict]:
    """Verdicts on ε, δ, D and the bound of latents as they are, or (`form` "_whitened") after whitening.

    `null` is what sampling alone makes of ε. `estimated` says where ρ is from, if nobody gave it: then a bound that is
    too loose only because ρ is not known well enough speaks neither for the latents nor against them.
    """
    after, limit = " after whitening" if form else "", UNEXPLAINED * dim
    condition = ", if what ρ was estimated from determines the state" if estimated else ""
    remedy = ": alignment is not good enough yet." if form else "; whitening may tighten it."
    certified = Verdict.judge(
        f"bound{form}",
        terms["bound"],
        direction="lower",
        threshold=limit,
        good=f"Theorem 3 certifies the latents{after}, without looking at the truth{condition}.{estimated}",
        bad=f"The bound is too loose to certify anything{after}{remedy}{estimated}",
    )
    if estimated and certified.passed is False and certified.low <= limit:
        advice = f"Undecided: ρ is not known well enough from these pairs. Give ρ, or more pairs.{estimated}"
        certified = replace(certified, passed=None, advice=advice)
    elif certified.passed is False and certified.value <= limit:
        advice = f"Undecided: the bound{after} keeps to its limit, but not beyond doubt. Give more pairs."
        certified = replace(certified, passed=None, advice=advice)
    return [
        Verdict.judge(
            f"epsilon{form}",
            terms["epsilon"],
            direction="lower",
            null=null,
            good=f"ε: distance of the latents' covariance from the identity{after}.",
        ),
        Verdict.judge(
            f"delta{form}",
            terms["delta"],
            direction="lower",
            null=0.0,
            good=f"δ: alignment loss above the least that a linear map could have{after}.",
        ),
        Verdict.judge(
            f"gap{form}",
            terms["gap"],
            direction="lower",
            null=0.0,
            good=f"D = δ/2ρ(1−ρ): bounds the nonlinear share of the latents{after}.",
        ),
        certified,
    ]


def theorem_verdicts(errors: Mapping[str, Estimate], bounds: Mapping[str, Terms]) -> list[Verdict]:
    """The error against the bound, by form: it informs, and fails only where the error's lower limit is above the
    bound's upper. Noise must not refute a theorem."""
    verdicts = []
    for form in errors.keys() & bounds.keys():
        error, limit = errors[form], bounds[form]["bound"]
        slack = Estimate(
            _ratio(error.value, limit.value), _ratio(error.low, limit.high), _ratio(error.high, limit.low), error.n
        )
        broken = slack.low > 1.0
        verdicts.append(
            Verdict(
                f"error_to_bound{form}",
                slack.value,
                slack.low,
                slack.high,
                slack.n,
                None,
                1.0 if broken else None,
                "lower",
                False if broken else None,
                "The measured error exceeds the bound: an assumption of the theorem does not hold here."
                if broken
                else "The measured error over the bound; nothing speaks against the theorem here.",
            )
        )
    return sorted(verdicts, key=lambda verdict: verdict.name)


def _ratio(error: float, limit: float) -> float:
    """Infinite where the bound may be zero: then there is no saying how often the error holds it."""
    return error / limit if limit > np.finfo(float).eps else float("inf") if error > 0 else 0.0
