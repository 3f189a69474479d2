"""Mehler's formula for a Gaussian world, z' = ρz + √(1−ρ²)η: degree d has correlation ρ^d between views.

    E ψ_k(z) ψ_l(z') = 1[k = l] Π_i ρ_i^{k_i}          (ρ^|k| if all dimensions have one rate)
    L = E‖h − h'‖² = 2 Σ_k (1 − Π_i ρ_i^{k_i}) ‖c_k‖²  (2 Σ_d (1 − ρ^d) v_d)

So no function has a correlation above ρ, and only linear functions reach it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.theory.hermite import HermiteFit, hermite_basis
from jepatlas.identifiability.validation import check_matrices, check_same_shape, rates

__all__ = ["decays", "loss_decomposition", "mehler_ladder", "mehler_verdicts"]

MAX_CORRELATION_GAP = 0.05
"""Largest distance of a measured correlation from ρ^d, interval included."""
MAX_LOSS_GAP = 0.05
"""Largest relative distance of the measured loss from its decomposition, interval included."""
CHECK = "Check ρ, and whether the states are Gaussian, or give more pairs."

Rho = float | Sequence[float] | np.ndarray


def decays(indices: np.ndarray, rho: Rho) -> np.ndarray:
    """Π_i ρ_i^{k_i}: the correlation between views of each multi-index.

    >>> decays(np.array([[0, 0], [1, 0], [1, 2]]), [0.5, 0.25]).tolist()
    [1.0, 0.5, 0.03125]
    """
    return np.prod(rates(rho, indices.shape[1]) ** indices, axis=1)


def mehler_ladder(
    h: np.ndarray,
    z: np.ndarray,
    z_next: np.ndarray,
    rho: Rho,
    rng: np.random.Generator,
    *,
    degree: int,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> dict[str, Estimate]:
    """For d = 1 … degree, `correlation_d` of the degree-d part of h between z and z', and `gap_d`, its excess over ρ^d.

    The part is fitted on two thirds of the samples and its correlation measured on the last third, in turn. It is NaN
    where h has no degree-d part. With one rate per dimension, the prediction uses the fitted coefficients.
    """
    check_matrices(groups, h=h, z=z, z_next=z_next)
    check_same_shape(z=z, z_next=z_next)
    fit = HermiteFit(h, z, degree, rng, groups)
    across, within, predicted = _components(fit, z, z_next, decays(fit.indices, rho))

    def statistic(weights: np.ndarray) -> dict[str, float]:
        correlations = (weights @ across) / (weights @ within)
        values = {}
        for d in range(1, degree + 1):
            values[f"correlation_{d}"] = float(correlations[d - 1])
            values[f"gap_{d}"] = float(correlations[d - 1] - predicted[d - 1])
        return values

    return bootstrap(statistic, len(h), rng, groups=groups, replicates=replicates)


def loss_decomposition(
    h: np.ndarray,
    h_next: np.ndarray,
    z: np.ndarray,
    rho: Rho,
    rng: np.random.Generator,
    *,
    degree: int,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> dict[str, Estimate]:
    """The alignment loss, measured and predicted from its Hermite degrees:

    loss                 E‖h − h'‖²
    loss_1 … loss_D      2 Σ_{|k|=d} (1 − Π ρ_i^{k_i}) ‖c_k‖²
    predicted_least      their sum, if the rest of h has degree D+1
    predicted_most       their sum, if the rest of h is independent between views, as noise is
    gap                  relative distance of the loss from the interval of these two (negative: below it)

    If nothing lies beyond degree D, the two agree and the decomposition is exact.
    """
    check_matrices(groups, h=h, h_next=h_next, z=z)
    check_same_shape(h=h, h_next=h_next)
    fit = HermiteFit(h, z, degree, rng, groups)
    lost = 1 - decays(fit.indices, rho)
    lost_beyond = 1 - rates(rho, z.shape[1]).max() ** (degree + 1)
    distances = np.square(h.astype(np.float64) - h_next).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        parts = 2 * lost * fit.energies(weights)
        beyond = fit.beyond(weights)
        loss = float(np.average(distances, weights=weights))
        least = parts.sum() + 2 * lost_beyond * beyond
        most = parts.sum() + 2 * beyond
        outside = loss - np.clip(loss, min(least, most), max(least, most))
        values = {"loss": loss, "predicted_least": float(least), "predicted_most": float(most)}
        for d in range(1, degree + 1):
            values[f"loss_{d}"] = float(parts[fit.degrees == d].sum())
        values["gap"] = float(outside / loss) if loss > 0 else float("nan")
        return values

    return bootstrap(statistic, len(h), rng, groups=groups, replicates=replicates)


def mehler_verdicts(ladder: Mapping[str, Estimate], decomposition: Mapping[str, Estimate]) -> list[Verdict]:
    """Whether correlations and loss are those of a Gaussian world with this ρ, up to noise."""
    verdicts: list[Verdict] = []
    for d in range(1, sum(name.startswith("gap_") for name in ladder) + 1):
        correlation = ladder[f"correlation_{d}"].value
        gap = ladder[f"gap_{d}"]
        if np.isnan(correlation):  # h has no part of this degree
            continue
        expected = correlation - gap.value
        good = f"Degree {d} has correlation {correlation:.3f} between views; Mehler's formula predicts {expected:.3f}."
        verdicts.append(_judge(f"ladder_{d}", gap, MAX_CORRELATION_GAP, good))
    loss, least, most = (decomposition[name].value for name in ("loss", "predicted_least", "predicted_most"))
    good = f"The alignment loss is {loss:.4g}; its Hermite degrees predict {least:.4g} to {most:.4g}."
    verdicts.append(_judge("loss_decomposition", decomposition["gap"], MAX_LOSS_GAP, good))
    return verdicts


def _judge(name: str, gap: Estimate, threshold: float, good: str) -> Verdict:
    absolute = _absolute(gap)
    return Verdict.judge(name, absolute, direction="lower", threshold=threshold, good=good, bad=f"{good} {CHECK}")


def _components(
    fit: HermiteFit, z: np.ndarray, z_next: np.ndarray, decay: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """⟨a, a'⟩ and (‖a‖² + ‖a'‖²)/2 of each row and degree, (b, D), and the ratio of their expectations, (D,)."""
    top = int(fit.degrees[-1])
    now = hermite_basis(z, top)
    after = hermite_basis(z_next, top)
    across, within = np.full((2, len(z), top), np.nan)
    expected = np.zeros((2, top))
    for part in np.unique(fit.parts):
        others = np.delete(fit.coefficients, part, axis=0).mean(0)
        rows = fit.parts == part
        size = np.square(others).sum(1)
        for d in range(1, top + 1):
            terms = fit.degrees == d
            expected[:, d - 1] += rows.sum() * np.array([decay[terms] @ size[terms], size[terms].sum()])
            if size[terms].sum() <= 1e-24 * size.sum():  # rounding error of a polynomial of lower degree
                continue
            a = now[np.ix_(rows, terms)] @ others[terms]
            b = after[np.ix_(rows, terms)] @ others[terms]
            across[rows, d - 1] = np.sum(a * b, axis=1)
            within[rows, d - 1] = (np.square(a).sum(1) + np.square(b).sum(1)) / 2
    return across, within, expected[0] / np.maximum(expected[1], np.finfo(float).tiny)


def _absolute(gap: Estimate) -> Estimate:
    """|gap|, with lower limit zero if the interval contains zero."""
    low = 0.0 if gap.low <= 0 <= gap.high else min(abs(gap.low), abs(gap.high))
    high = float(np.max(np.abs([gap.low, gap.high, gap.value])))
    return Estimate(abs(gap.value), low, high, gap.n)
