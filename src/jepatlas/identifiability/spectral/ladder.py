"""Reading the ladder: which eigenfunctions are directions of the state, and which are harmonics of those before them.

In a Gaussian world with rates ρ₁ ≥ … ≥ ρ_n the eigenvalues are all products Π ρ_i^{k_i}. Two signs tell degrees apart:
- *value*: no harmonic is above ρ₁². What is above it is a direction; if ρ_n > ρ₁² (the window), that finds all of them.
- *function*: a harmonic is a polynomial in the directions before it, a direction is independent of them. The held-out
  R² of a function on polynomials of them tells, outside the window too (compare Dsilva et al. 2018).
Where the two disagree, or a function is a mixture, the ladder is undecided, and says so. Below ρ₁^2.75, between the
second and the third degree, no direction is looked for: functions there are too rough for most samples.
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

DIRECTION, HARMONIC, CERTAINLY_HARMONIC = 0.3, 0.5, 0.7
"""R² up to which a function counts as a direction, and from which as a harmonic; where the value says that it is a
direction, only the last speaks against it."""
OVERFIT = 2.0
"""1 − λ held out, relative to 1 − λ fitted, from which a function has learned its sample and not the process."""
REACH = 2.75
CLIP = 5.0  # standard deviations: a few far rows must not decide a polynomial fit
ROWS_PER_TERM = 10
SURPLUS = (
    "Undecided: more functions look like directions of their own than the {} components that they are made from. Some "
    "of them must be harmonics, or the state is folded."
)


@dataclass(frozen=True)
class Step:
    """One eigenfunction on the ladder."""

    kind: Kind
    eigenvalue: Estimate  # held out
    explained: float  # held-out R² from polynomials of the directions before it


@dataclass(frozen=True)
class Ladder:
    """What the steps say together."""

    steps: tuple[Step, ...]
    dim: int | None  # of the state; None where undecided
    directions: tuple[int, ...]  # the steps that are directions; where dim is None, those that are known to be
    reach: float  # directions with a smaller ρ than this were not looked for
    advice: str

    @property
    def second(self) -> Estimate | None:
        """The slowest harmonic: ρ₁² in a Gaussian world; more is a sign of heavy tails."""
        return next((step.eigenvalue for step in self.steps if step.kind == "harmonic"), None)


def read_ladder(
    eigenvalues: Sequence[Estimate],
    fitted: Sequence[float],
    functions: np.ndarray,
    leading: Estimate | None = None,
    *,
    columns: int | None = None,
) -> Ladder:
    """From held-out eigenvalues, fitted ones, and the functions' values (b, m) on held-out rows.

    `leading` is a better estimate of ρ₁, where there is one: few functions are fitted more exactly than many.
    `columns` is the number of components of x that functions were sought in: these have no more directions than that,
    so a further function that looks like one leaves the ladder undecided.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.standard_normal((2000, 2))
    >>> psi = np.c_[z, z[:, 0] * z[:, 1], z[:, 0] ** 2 - 1]
    >>> rates = [0.9, 0.85, 0.81, 0.76]
    >>> ladder = read_ladder([Estimate(rate, rate - 0.01, rate + 0.01, 2000) for rate in rates], rates, psi)
    >>> ladder.dim, [step.kind for step in ladder.steps]
    (2, ['direction', 'direction', 'harmonic', 'harmonic'])
    """
    leading = max(eigenvalues[0], leading or eigenvalues[0], key=lambda estimate: estimate.value)
    reach, window = max(leading.value, 0.0) ** REACH, max(leading.high, 0.0) ** 2
    spread = functions.std(0)
    functions = np.clip((functions - functions.mean(0)) / np.where(spread > 0, spread, 1.0), -CLIP, CLIP)
    steps: list[Step] = []
    known: list[int] = []
    surplus = False
    for index, (value, fit) in enumerate(zip(eigenvalues, fitted, strict=True)):
        explained = _explained(functions[:, known], functions[:, index])
        kind = _kind(value, fit, explained, window)
        # below the reach only harmonics are read: they show that the second degree can be seen at all
        if min(value.low, leading.low) <= 0 or (value.value <= reach and kind != "harmonic"):
            kind = "unread"
        if kind == "direction" and len(known) == columns:
            kind, surplus = "undecided", True
        steps.append(Step(kind, value, explained))
        known += [index] if kind == "direction" else []
    dim, advice = (None, SURPLUS.format(columns)) if surplus else _conclude(steps, len(known), reach)
    return Ladder(tuple(steps), dim, tuple(known), reach, advice)


def _kind(value: Estimate, fitted: float, explained: float, window: float) -> Kind:
    if explained >= HARMONIC and value.low <= window:
        return "harmonic"
    if explained >= CERTAINLY_HARMONIC or 1 - value.value > OVERFIT * (1 - fitted):
        return "undecided"
    return "direction" if explained <= DIRECTION or value.low > window else "undecided"


def _explained(known: np.ndarray, function: np.ndarray) -> float:
    """Held-out R² of a function from polynomials of the known directions, fitted on the first half of the rows."""
    if known.shape[1] == 0:
        return 0.0
    half = len(function) // 2
    # of the third degree where the rows allow: learned directions are a little bent
    degree = next((d for d in (3, 2) if comb(known.shape[1] + d, d) <= half / ROWS_PER_TERM), 1)
    terms, target = polynomials(known, degree), function[:, None]
    fit = ridge(terms[:half], target[:half], penalty=1e-3 * half)
    return r2(target[half:], fit.apply(terms[half:]))


def polynomials(h: np.ndarray, degree: int) -> np.ndarray:
    """All monomials of the columns up to a total degree, without the constant.

    >>> polynomials(np.array([[2.0, 3.0]]), 2)
    array([[2., 3., 4., 6., 9.]])
    """
    chosen = (c for d in range(1, degree + 1) for c in combinations_with_replacement(range(h.shape[1]), d))
    return np.stack([h[:, c].prod(1) for c in map(list, chosen)], axis=1)


def _conclude(steps: Sequence[Step], found: int, reach: float) -> tuple[int | None, str]:
    kinds = [step.kind for step in steps]
    if kinds[0] == "unread":
        return None, "No function keeps a correlation over a pair: there is nothing slow here, or too few pairs."
    if "undecided" in kinds:
        where = kinds.index("undecided")
        return None, (
            f"Undecided: function {where + 1} is neither clearly a direction of its own nor a harmonic of those before "
            "it, or it has learned the sample. Give more pairs, or more features."
        )
    if "harmonic" not in kinds:
        return None, (
            f"Undecided: {found} functions look like directions, but no harmonic of them was seen, so there may be "
            "more. Compute more functions, or give more pairs or features."
        )
    return found, f"{found} directions with ρ above {reach:.2f}; faster ones were not looked for."
