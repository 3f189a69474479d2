"""The rates that N pairs of d directions show where all have one: how far apart sampling alone drives them.

With p = (h + h')/√(2(1+ρ)) and q = (h − h')/√(2(1−ρ)), Gaussian pairs of one rate ρ are two independent white samples.
P = Σ ppᵀ and Q = Σ qqᵀ are Wishart matrices with N − 1 degrees of freedom, and the sampled rates are

    λ = ((1+ρ)θ − (1−ρ)) / ((1+ρ)θ + (1−ρ))        θ: the eigenvalues of P against Q

so that a draw costs d³, whatever N is. Where rows hang together, or have heavy tails, the pairs are worth fewer:

    N = n² E‖m‖² / Σ_g ‖Σ_{i∈g} m_i‖²        m = ½(h h'ᵀ + h' hᵀ) − ½ρ(h hᵀ + h' h'ᵀ),  E‖m‖² = ½ d(d+1)(1−ρ²)²

The first is what the entries of S − ρ C₀₀ vary by in a Gaussian world, the second what they do here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg

__all__ = ["effective_pairs", "sampled_rates"]


def effective_pairs(h: np.ndarray, h_next: np.ndarray, labels: np.ndarray, rho: float) -> float:
    """N for white rows (b, d), of which those with one label hang together; at most b."""
    plus, minus = (view - view.mean(0) for view in (h + h_next, h - h_next))
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    n, dim, groups, square, whole = len(h), h.shape[1], len(starts), 0.0, np.zeros((h.shape[1],) * 2)
    if groups == n:
        lengths = [np.square(view).sum(1) for view in (plus, minus)]
        crossed = np.square((plus * minus).sum(1))
        each = (1 - rho) ** 2 * lengths[0] ** 2 + (1 + rho) ** 2 * lengths[1] ** 2 - 2 * (1 - rho**2) * crossed
        square, whole = float(each.sum()) / 16, _part(plus, minus, rho)
        square -= float(np.square(whole).sum()) / n
    else:
        whole = _part(plus, minus, rho) / n
        for rows in np.split(order, starts[1:]):
            square += float(np.square(_part(plus[rows], minus[rows], rho) - len(rows) * whole).sum())
    expected = dim * (dim + 1) * (1 - rho**2) ** 2 / 2
    return float(min(n**2 * expected * (groups - 1) / (groups * max(square, 1e-300)), n))


def _part(plus: np.ndarray, minus: np.ndarray, rho: float) -> np.ndarray:
    """Σ m over some rows: ¼((1−ρ)(h+h')(h+h')ᵀ − (1+ρ)(h−h')(h−h')ᵀ)."""
    return ((1 - rho) * plus.T @ plus - (1 + rho) * minus.T @ minus) / 4


def sampled_rates(rho: float, dim: int, pairs: float, rng: np.random.Generator, draws: int) -> Iterator[np.ndarray]:
    """So many draws of the d rates, ascending; none where pairs are too few for d directions."""
    for _ in range(draws if pairs - 1 > dim else 0):
        theta = scipy.linalg.eigvalsh(*(_wishart(dim, pairs - 1, rng) for _ in range(2)))
        yield ((1 + rho) * theta - (1 - rho)) / ((1 + rho) * theta + (1 - rho))


def _wishart(dim: int, freedom: float, rng: np.random.Generator) -> np.ndarray:
    """Σ ppᵀ of white Gaussian rows, by Bartlett's decomposition."""
    root = np.tril(rng.standard_normal((dim, dim)), -1)
    np.fill_diagonal(root, np.sqrt(rng.chisquare(freedom - np.arange(dim))))
    return root @ root.T
