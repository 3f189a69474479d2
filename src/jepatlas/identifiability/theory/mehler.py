"""Mehler's formula in a Gaussian world, z' = ρz + √(1−ρ²)η: a view keeps ρ^d of what the other has at degree d.

    E ψ_k(z) ψ_l(z') = 1[k = l] Π_i ρ_i^{k_i}          (ρ^|k| where all dimensions have one rate)
    L = E‖h − h'‖² = 2 Σ_k (1 − Π_i ρ_i^{k_i}) ‖c_k‖²  (2 Σ_d (1 − ρ^d) v_d)

So no function keeps more correlation than ρ, and only linear ones keep that much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.checks import check_matrices, check_same_shape, rates
from jepatlas.identifiability.theory.hermite import HermiteFit, hermite_basis

__all__ = ["decays", "loss_decomposition", "mehler_ladder", "mehler_verdicts"]

LADDER = 0.05
"""How far a measured correlation may be from ρ^d, its interval included."""
LOSS = 0.05
"""How far the measured loss may be from the decomposed one, relatively, its interval included."""

Rho = float | Sequence[float] | np.ndarray


def decays(indices: np.ndarray, rho: Rho) -> np.ndarray:
    """Π_i ρ_i^{k_i}: the correlation that each multi-index keeps across views.

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
    """For d = 1 … degree, `correlation_d`, what the degree-d part of h keeps from z to z', and `gap_d`, minus ρ^d.

    The part is fitted on two thirds of the samples and its correlation measured on the last, in turn. It is NaN where
    h has nothing at that degree. With one rate for each dimension, the prediction is that for the part as fitted.
    """
    check_matrices(groups, h=h, z=z, z_next=z_next)
    check_same_shape(z=z, z_next=z_next)
    fit = HermiteFit(h, z, degree, rng, groups)
    across, within, predicted = _components(fit, z, z_next, decays(fit.indices, rho))

    def statistic(weights: np.ndarray) -> dict[str, float]:
        kept = (weights @ across) / (weights @ within)
        correlations = {f"correlation_{d}": float(kept[d - 1]) for d in range(1, degree + 1)}
        return correlations | {f"gap_{d}": float(kept[d - 1] - predicted[d - 1]) for d in range(1, degree + 1)}

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
    """The alignment loss, measured, and as its degrees make it up:

    loss                 E‖h − h'‖²
    loss_1 … loss_D      2 Σ_{|k|=d} (1 − Π ρ_i^{k_i}) ‖c_k‖²
    predicted_least      their sum, and what lies beyond taken to be of degree D+1
    predicted_most       their sum, and what lies beyond taken to be lost entirely, as noise is
    gap                  how far the loss lies outside these two (negative: below), as a share of it

    Where nothing lies beyond, the two agree and the decomposition is exact.
    """
    check_matrices(groups, h=h, h_next=h_next, z=z)
    check_same_shape(h=h, h_next=h_next)
    fit = HermiteFit(h, z, degree, rng, groups)
    lost = 1 - decays(fit.indices, rho)
    lost_beyond = 1 - rates(rho, z.shape[1]).max() ** (degree + 1)
    distances = np.square(h.astype(np.float64) - h_next).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        parts, beyond = 2 * lost * fit.energies(weights), fit.beyond(weights)
        loss = float(np.average(distances, weights=weights))
        least, most = parts.sum() + 2 * lost_beyond * beyond, parts.sum() + 2 * beyond
        outside = loss - np.clip(loss, min(least, most), max(least, most))
        by_degree = {f"loss_{d}": float(parts[fit.degrees == d].sum()) for d in range(1, degree + 1)}
        totals = {"loss": loss, "predicted_least": float(least), "predicted_most": float(most)}
        return totals | by_degree | {"gap": float(outside / loss) if loss > 0 else float("nan")}

    return bootstrap(statistic, len(h), rng, groups=groups, replicates=replicates)


def mehler_verdicts(ladder: Mapping[str, Estimate], decomposition: Mapping[str, Estimate]) -> list[Verdict]:
    """Whether correlations and loss are those of a Gaussian world with this ρ, noise included."""
    verdicts: list[Verdict] = []
    for d in range(1, sum(name.startswith("gap_") for name in ladder) + 1):
        kept, gap = ladder[f"correlation_{d}"].value, ladder[f"gap_{d}"]
        if np.isnan(kept):  # nothing at this degree, so nothing to judge
            continue
        good = f"Degree {d} keeps correlation {kept:.3f} across views; Mehler's formula says {kept - gap.value:.3f}."
        bad = f"{good} Check ρ, and whether the states are Gaussian; or the pairs are too few to tell."
        far = _distance(gap)
        verdicts += [Verdict.judge(f"ladder_{d}", far, direction="lower", threshold=LADDER, good=good, bad=bad)]
    loss, least, most = (decomposition[name].value for name in ("loss", "predicted_least", "predicted_most"))
    good = f"The alignment loss is {loss:.4g}; its Hermite degrees make up {least:.4g} to {most:.4g}."
    bad = f"{good} Check ρ, and whether the states are Gaussian; or the pairs are too few to tell."
    far = _distance(decomposition["gap"])
    return [*verdicts, Verdict.judge("loss_decomposition", far, direction="lower", threshold=LOSS, good=good, bad=bad)]


def _components(
    fit: HermiteFit, z: np.ndarray, z_next: np.ndarray, kept: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """⟨a, a'⟩ and (‖a‖² + ‖a'‖²)/2 of each row and degree, (b, D), and the ratio of their expectations, (D,)."""
    top = int(fit.degrees[-1])
    now, after = hermite_basis(z, top), hermite_basis(z_next, top)
    across, within = np.full((2, len(z), top), np.nan)
    expected = np.zeros((2, top))
    for part, others in ((p, np.delete(fit.coefficients, p, axis=0).mean(0)) for p in np.unique(fit.parts)):
        rows = fit.parts == part
        size = np.square(others).sum(1)
        for d in range(1, top + 1):
            terms = fit.degrees == d
            expected[:, d - 1] += rows.sum() * np.array([kept[terms] @ size[terms], size[terms].sum()])
            if size[terms].sum() <= 1e-24 * size.sum():  # rounding of a polynomial that ends below this degree
                continue
            a, b = now[np.ix_(rows, terms)] @ others[terms], after[np.ix_(rows, terms)] @ others[terms]
            across[rows, d - 1] = np.sum(a * b, axis=1)
            within[rows, d - 1] = (np.square(a).sum(1) + np.square(b).sum(1)) / 2
    return across, within, expected[0] / np.maximum(expected[1], np.finfo(float).tiny)


def _distance(gap: Estimate) -> Estimate:
    """|gap|: zero is within reach if the interval holds it."""
    low = 0.0 if gap.low <= 0 <= gap.high else min(abs(gap.low), abs(gap.high))
    return Estimate(abs(gap.value), low, float(np.max(np.abs([gap.low, gap.high, gap.value]))), gap.n)
