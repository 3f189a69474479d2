"""Rows that do not belong to the rest: outliers, and rows whose arrays were matched wrongly.

Two rules find them; at most 1% of the rows are set aside.

*Outliers* are far outside the bulk of a column: |x − median| > 20 q, with q the 98% quantile of |x − median|. Smooth
heavy tails do not reach that (a Gaussian's cube has 10 q at most in a million rows).

*Mismatched* rows violate the linear relation a → b of the others (h → z, or h → h'). Their residuals r come from one of
two Gaussians,

    p(r, b) = (1 − π) N(r; 0, Σ_r) + π N(b; 0, Σ_b)        Σ_r: of the other rows' residuals;  Σ_b: of all b

so a mismatched row has any value of b, whatever a predicts. Expectation maximisation gives π; rows with a posterior
above one half are mismatched. They are set aside only if π > 0 increases the likelihood significantly, and if their b
is unrelated to the prediction: a heavy-tailed relation, such as a warp, also has large residuals, but these rows still
follow the prediction. A warp therefore keeps its tails and its diagnosis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from jepatlas.core.linear_moments import PairMoments, least_squares_of

__all__ = ["BadRows", "find_bad_rows"]

MAX_SHARE = 0.01
"""Largest share of rows that are set aside. With more, the rest is not what was measured."""
TAILS = 0.25  # good rows in the tails that look mismatched, relative to the largest number of bad ones
FAR = 20.0
BULK = 0.98
MIN_ROWS = 200  # with fewer, one row is more than half a percent
CENTRAL = 0.9  # share of the rows, by their distance from the median, that the first fit uses
ROUNDS = 8
EXACT = 1e-4  # relative variance of a residual below which a relation counts as exact
SIGNIFICANT = 15.0  # gain in log-likelihood
STILL_RELATED = 0.25  # slope of b on its prediction among mismatched rows from which they follow the relation
MAX_LISTED = 5


@dataclass(frozen=True)
class BadRows:
    """Which rows are set aside, and why."""

    rows: np.ndarray  # (b,) mask
    reasons: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return int(self.rows.sum())

    @property
    def note(self) -> str:
        """A sentence with the number of rows, their indices and the reasons; empty if there is none."""
        if not self.reasons:
            return ""
        indices = np.flatnonzero(self.rows)
        listed = ", ".join(map(str, indices[:MAX_LISTED]))
        more = ", …" if len(indices) > MAX_LISTED else ""
        reasons = "; ".join(self.reasons)
        share = f"{self.count} of {len(self.rows)} rows" if self.count > 1 else f"1 of {len(self.rows)} rows"
        return f"Set aside {share} ({listed}{more}): {reasons}. Everything below is about the rest."


def find_bad_rows(h: np.ndarray, h_next: np.ndarray, z: np.ndarray | None = None) -> BadRows:
    """Rows of latents, of those of the other view, and of true states that do not belong to the rest.

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 1000, 2))
    >>> h, h_next = z.copy(), 0.9 * z + 0.43 * noise
    >>> h[7] = 1e4
    >>> find_bad_rows(h, h_next, z).note
    'Set aside 1 of 1000 rows (7): 1 outlier in h. Everything below is about the rest.'
    """
    none = BadRows(np.zeros(len(h), bool))
    if len(h) < MIN_ROWS:
        return none
    named = {"h": h, "h_next": h_next} if z is None else {"h": h, "h_next": h_next, "z": z}
    bad = none.rows.copy()
    reasons = []
    for name, rows in named.items():
        far = _outliers(rows)
        if 0 < far.sum() <= MAX_SHARE * len(h):
            bad |= far
            reasons.append(f"{far.sum()} outlier{'s' if far.sum() > 1 else ''} in {name}")
    relations = {"z does not belong to h": z, "h_next does not belong to h": h_next}
    for reason, target in relations.items():
        if target is None:
            continue
        wrong = _mismatched(h, target, ~bad)
        if wrong.sum() > 0 and (wrong | bad).sum() <= (1 + TAILS) * MAX_SHARE * len(h):
            bad |= wrong
            reasons.append(f"{wrong.sum()} where {reason}")
    return BadRows(bad, tuple(reasons))


def _outliers(rows: np.ndarray) -> np.ndarray:
    distance = np.abs(rows - np.median(rows, axis=0))
    bulk = np.quantile(distance, BULK, axis=0)
    varies = bulk > 0
    return np.any(distance[:, varies] > FAR * bulk[varies], axis=1)


def _mismatched(a: np.ndarray, b: np.ndarray, usable: np.ndarray) -> np.ndarray:
    """Mask of the usable rows whose b does not belong to a."""
    varies = b[usable].std(0) > 0
    none = np.zeros(len(a), bool)
    if not varies.any() or usable.sum() < MIN_ROWS + 10 * (a.shape[1] + b.shape[1]):
        return none
    b = b[:, varies]
    kept = usable & _central(a, usable)
    share = MAX_SHARE / 2
    posterior = np.zeros(len(a))
    gain = 0.0
    predicted = b
    for _ in range(ROUNDS):
        fitted = least_squares_of(PairMoments.of(a[kept], b[kept]))
        predicted = fitted.apply(a)
        residual = _log_density(b - predicted, b - predicted, kept, floor=_spread(b, kept))
        independent = _log_density(b, b, usable, floor=_spread(b, usable))
        odds = np.clip(independent - residual + np.log(share / (1 - share)), -700, 700)
        posterior = np.where(usable, 1 / (1 + np.exp(-odds)), 0.0)
        gain = float(np.sum(np.logaddexp(0, odds[usable]) + np.log1p(-share)))
        share = float(np.clip(posterior[usable].mean(), 1e-6, 0.5))
        kept = usable & (posterior < 0.5)
        if kept.sum() < usable.sum() / 2:
            return none
    wrong = usable & (posterior > 0.5)
    if gain < SIGNIFICANT or not wrong.any():
        return none
    return none if _follow(predicted[wrong] - b[kept].mean(0), b[wrong] - b[kept].mean(0)) else wrong


def _central(a: np.ndarray, usable: np.ndarray) -> np.ndarray:
    """Rows near the median, on which outliers of a have no leverage."""
    distance = np.abs(a - np.median(a[usable], axis=0))
    unit = np.median(distance[usable], axis=0)
    largest = np.where(unit > 0, distance / np.where(unit > 0, unit, 1.0), 0.0).max(1)
    return largest <= np.quantile(largest[usable], CENTRAL)


def _spread(b: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Covariance of a residual that counts as exact."""
    return EXACT * np.diag(b[rows].var(0))


def _log_density(values: np.ndarray, sample: np.ndarray, rows: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """Log-density of rows under a Gaussian fitted to some of the sample, up to a constant."""
    mean = sample[rows].mean(0)
    covariance = np.atleast_2d(np.cov(sample[rows], rowvar=False, bias=True)) + floor
    root = scipy.linalg.cholesky(covariance, lower=True)
    white = scipy.linalg.solve_triangular(root, (values - mean).T, lower=True)
    return -np.square(white).sum(0) / 2 - np.log(np.diag(root)).sum()


def _follow(predicted: np.ndarray, b: np.ndarray) -> bool:
    """Whether rows still follow the prediction: the slope of b on it, each row weighted alike."""
    norm = np.square(predicted).sum(1)
    slopes = np.sum(predicted * b, axis=1) / np.where(norm > 0, norm, 1.0)
    return bool(len(slopes) >= MAX_LISTED and np.median(slopes) > STILL_RELATED)
