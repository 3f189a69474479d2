"""Classification of eigenfunctions into directions of the state and harmonics of earlier directions.

In a Gaussian world with rates ρ₁ ≥ … ≥ ρ_n the eigenvalues are all products Π ρ_i^{k_i}. Two criteria separate degrees:
- *value*: no harmonic exceeds ρ₁², so whatever does is a direction. If ρ_n > ρ₁² (the window), this finds all.
- *function*: a harmonic is a polynomial in earlier directions, a direction is independent of them. The held-out R² of
  a function on polynomials of them decides, also outside the window (compare Dsilva et al. 2018).
Where the two disagree, or a function is a mixture, the ladder is undecided. Directions with a rate below ρ₁^2.75,
between the second and the third degree, are not searched: functions there are too rough for most samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from typing import Literal

import numpy as np

from jepatlas.core.linear import r2, ridge
from jepatlas.core.records import Estimate

__all__ = ["Ladder", "Step", "polynomials", "read_ladder"]

Kind = Literal["direction", "harmonic", "undecided", "unread"]

DIRECTION = 0.3
"""R² up to which a function counts as a direction."""
CERTAINLY_NEW = 0.1
"""R² up to which a function counts as a direction although its value may be below the minimal rate."""
HARMONIC = 0.5
"""R² from which a function counts as a harmonic."""
CERTAINLY_HARMONIC = 0.7
"""R² from which a function counts as a harmonic although its value is that of a direction."""
OVERFIT = 2.0
"""Ratio of held-out 1 − λ to fitted 1 − λ above which a function fits its sample and not the process."""
MIN_RATE_POWER = 2.75
CLIP = 5.0  # standard deviations: limits the influence of outliers on the polynomial fit
ROWS_PER_TERM = 10


@dataclass(frozen=True)
class Step:
    """One eigenfunction of the ladder."""

    kind: Kind
    eigenvalue: Estimate  # held out
    explained: float  # held-out R² from polynomials of the directions before it


@dataclass(frozen=True)
class Ladder:
    """All steps, and the dimension of the state that they imply."""

    steps: tuple[Step, ...]
    dim: int | None  # of the state; None if undecided
    directions: tuple[int, ...]  # indices of the steps that are directions; if dim is None, of those that are certain
    min_rate: float  # directions with a smaller ρ were not searched
    advice: str

    @property
    def second(self) -> Estimate | None:
        """The slowest harmonic: ρ₁² in a Gaussian world; a larger value indicates heavy tails."""
        return next((step.eigenvalue for step in self.steps if step.kind == "harmonic"), None)


def read_ladder(
    eigenvalues: Sequence[Estimate],
    fitted: Sequence[float],
    functions: np.ndarray,
    leading: Estimate | None = None,
    *,
    columns: int | None = None,
) -> Ladder:
    """Read the ladder from held-out eigenvalues, fitted ones, and values (b, m) of the functions on held-out rows.

    `leading` is a better estimate of ρ₁, if there is one: few functions are fitted more exactly than many. `columns` is
    the number of components of x, which have no more directions than that; a further function that looks like a
    direction makes the ladder undecided.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.standard_normal((2000, 2))
    >>> psi = np.c_[z, z[:, 0] * z[:, 1], z[:, 0] ** 2 - 1]
    >>> rates = [0.9, 0.85, 0.81, 0.76]
    >>> ladder = read_ladder([Estimate(rate, rate - 0.01, rate + 0.01, 2000) for rate in rates], rates, psi)
    >>> ladder.dim, [step.kind for step in ladder.steps]
    (2, ['direction', 'direction', 'harmonic', 'harmonic'])
    """
    leading = max(eigenvalues[0], leading or eigenvalues[0], key=lambda estimate: estimate.value)
    min_rate = max(leading.value, 0.0) ** MIN_RATE_POWER
    window = max(leading.high, 0.0) ** 2
    spread = functions.std(0)
    functions = np.clip((functions - functions.mean(0)) / np.where(spread > 0, spread, 1.0), -CLIP, CLIP)
    steps: list[Step] = []
    known: list[int] = []
    surplus = False
    for index, (value, fit) in enumerate(zip(eigenvalues, fitted, strict=True)):
        explained, resolved = _explained(functions[:, known], functions[:, index])
        kind = _kind(value, fit, explained, window, resolved=resolved)
        # Below the minimal rate only harmonics are read: they show that the second degree is resolved at all.
        searched = value.value > min_rate
        if kind == "direction" and value.low <= min_rate:  # harmonics of the third degree are near
            searched = searched and explained <= CERTAINLY_NEW
        if min(value.low, leading.low) <= 0 or (not searched and kind != "harmonic"):
            kind = "unread"
        if kind == "direction" and len(known) == columns:
            kind = "undecided"
            surplus = True
        steps.append(Step(kind, value, explained))
        if kind == "direction":
            known.append(index)
    if surplus:
        dim = None
        advice = (
            f"Undecided: more functions look like independent directions than there are components ({columns}). Some "
            "must be harmonics, or the state is folded."
        )
    else:
        dim, advice = _conclude(steps, len(known), min_rate, columns)
    return Ladder(tuple(steps), dim, tuple(known), min_rate, advice)


def _kind(value: Estimate, fitted: float, explained: float, window: float, *, resolved: bool) -> Kind:
    """`resolved`: all harmonics of degree two would have been recognised, so that a function that is none is new."""
    if explained >= HARMONIC and value.low <= window:
        return "harmonic"
    if explained >= CERTAINLY_HARMONIC or 1 - value.value > OVERFIT * (1 - fitted):
        return "undecided"
    return "direction" if (explained <= DIRECTION and resolved) or value.low > window else "undecided"


def _explained(known: np.ndarray, function: np.ndarray) -> tuple[float, bool]:
    """Held-out R² of a function from polynomials of the known directions, fitted on the first half of the rows.

    Also whether these are all polynomials of degree two. With too few rows for that, they are the linear ones and the
    quadratic form of low rank that fits the function best.
    """
    if known.shape[1] == 0:
        return 0.0, True
    half = len(function) // 2
    degree = 1
    for candidate in (3, 2):  # degree 3 if the rows allow it: learned directions are slightly nonlinear
        if comb(known.shape[1] + candidate, candidate) <= half / ROWS_PER_TERM:
            degree = candidate
            break
    terms = polynomials(known, degree)
    if degree == 1:
        terms = np.c_[terms, _quadratic_form(known, function, half)]
    target = function[:, None]
    fit = ridge(terms[:half], target[:half], penalty=1e-3 * half)
    return r2(target[half:], fit.apply(terms[half:])), degree > 1


def _quadratic_form(u: np.ndarray, function: np.ndarray, fit: int) -> np.ndarray:
    """uᵀMu with M = E[f uuᵀ] on the first rows, for its eigenvalues beyond what sampling alone gives.

    For Gaussian u this is the projection of f on degree two, f ≈ ½ uᵀMu − ½ tr M.
    """
    moment = (u[:fit] * function[:fit, None]).T @ u[:fit] / fit
    values, vectors = np.linalg.eigh(moment - function[:fit].mean() * np.eye(u.shape[1]))
    noise = 2 * np.sqrt(2 * u.shape[1] / fit)
    kept = np.abs(values) > noise
    return np.square(u @ vectors[:, kept]) @ values[kept]


def polynomials(h: np.ndarray, degree: int) -> np.ndarray:
    """All monomials of the columns up to a total degree, without the constant.

    >>> polynomials(np.array([[2.0, 3.0]]), 2)
    array([[2., 3., 4., 6., 9.]])
    """
    columns = []
    for d in range(1, degree + 1):
        for chosen in combinations_with_replacement(range(h.shape[1]), d):
            columns.append(h[:, list(chosen)].prod(1))
    return np.stack(columns, axis=1)


def _conclude(steps: Sequence[Step], found: int, min_rate: float, columns: int | None) -> tuple[int | None, str]:
    kinds = [step.kind for step in steps]
    if all(kind == "unread" for kind in kinds):  # the first one alone may have been fitted to noise
        return (
            None,
            "Undecided: no function is correlated between the views. Nothing is slow, or the pairs are too few.",
        )
    if "undecided" in kinds:
        number = kinds.index("undecided") + 1
        return None, (
            f"Undecided: function {number} is neither clearly an independent direction nor a harmonic, or it overfits. "
            "Give more pairs, or more features."
        )
    if "harmonic" not in kinds and found != columns:
        return None, (
            f"Undecided: {found} functions look like directions, but no harmonic was found, so there may be more "
            "directions. Compute more functions, or give more pairs or features."
        )
    return found, f"{found} directions with ρ above {min_rate:.2f}; faster ones were not searched."
