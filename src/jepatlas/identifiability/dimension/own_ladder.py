"""What pairs say of themselves, with no truth at hand: ρ, the number of directions, and the ladder that shows them."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import LinAlgWarning

from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.spectral.rho import nonlinear_rho, rho_of_spectrum
from jepatlas.identifiability.spectral.solver import SpectrumSettings
from jepatlas.identifiability.spectral.spectrum import Spectrum, spectrum

__all__ = ["OwnLadder", "own_ladder", "some_pairs"]

Of = Literal["latents", "observations"]

PAIRS = 20_000
SLOWER = 0.1
"""How much slower than a given ρ pairs may be, relative to 1 − ρ, before that ρ counts as wrong."""


def own_ladder(
    x: np.ndarray,
    x_next: np.ndarray,
    of: Of = "latents",
    *,
    groups: np.ndarray | None = None,
    seed: int = 0,
    exact: bool = False,
) -> OwnLadder:
    """The ladder of at most 20,000 of the pairs, with as many features and functions as they are worth.

    More do not make it easier to read, but ρ is known better from all of them: `exact` takes the time for that, where
    a bound needs it. Where there is no ladder (too few pairs or groups, nothing that varies), it says why: that is a
    finding, not an error.
    """
    if not (x != x[0]).any():
        return OwnLadder(of, None, "all rows are the same.")
    kept, dim = some_pairs(len(x), seed), x.shape[1]
    # no more than the first two degrees have: further functions would be rough, and could pass for directions
    most = min(2 * dim, 48) if of == "latents" and dim > 8 else 16
    functions, features = min(dim + dim * (dim + 1) // 2, most), min(max(64, len(kept) // 20), 512)
    components = max(dim, SpectrumSettings.components) if of == "latents" else SpectrumSettings.components
    settings = SpectrumSettings(functions=functions, features=features, components=components)
    labels = None if groups is None else groups[kept]
    with warnings.catch_warnings():
        # few distinct rows make features dependent: those are not chosen
        warnings.simplefilter("ignore", LinAlgWarning)
        try:
            found = spectrum(x[kept], x_next[kept], groups=labels, settings=settings, seed=seed)
            further = exact and len(kept) < len(x)
            slowest = nonlinear_rho(x, x_next, groups=groups, settings=settings, seed=seed) if further else None
            return OwnLadder(of, found, slowest=slowest)
        except InputError as refusal:
            return OwnLadder(of, None, str(refusal))


def some_pairs(rows: int, seed: int) -> np.ndarray:
    """Which pairs a ladder is read from: all of them, or 20,000 at random."""
    return np.sort(numpy_generator(seed, "ladder/pairs").permutation(rows)[:PAIRS])


@dataclass(frozen=True)
class OwnLadder:
    """The spectrum of latents, or of the observations they are made from; or why there is none."""

    of: Of
    found: Spectrum | None
    refusal: str = ""
    slowest: Estimate | None = None  # ρ from all pairs, where the ladder is of some of them

    @property
    def rho(self) -> Estimate | None:
        """For the bound; None where no function keeps a correlation."""
        rho = None if self.found is None else self.slowest or rho_of_spectrum(self.found)
        return rho if rho is not None and 0 < rho.high < 1 else None

    @property
    def sentence(self) -> str:
        if self.found is None:
            return f"No ladder can be read off the {self.of}: {self.refusal}"
        ladder, rates = self.found.ladder, [rate.value for rate in self.found.rates]
        if ladder.dim is None:
            return f"The ladder of the {self.of}: {ladder.advice[0].lower()}{ladder.advice[1:]}"
        span = f"{min(rates):.3f}" if ladder.dim == 1 else f"{min(rates):.3f} to {max(rates):.3f}"
        harmonics = f", then harmonics from {ladder.second.value:.3f}" if ladder.second else ""
        plural = "" if ladder.dim == 1 else "s"
        return (
            f"The {self.of} show {ladder.dim} direction{plural} of their own, which keep{'s' * (ladder.dim == 1)} a "
            f"correlation of {span} over held-out pairs{harmonics}."
        )

    def verdicts(self, dim: int, given: float | None = None) -> list[Verdict]:
        """`rho` and `dimension`, held against the ρ that was given and the number of latents."""
        if self.found is None:
            return []
        return [_rho(self.slowest or rho_of_spectrum(self.found), self.of, given), _dimension(self.found, dim, self.of)]

    @property
    def table(self) -> dict[str, Any]:
        """The ladder, step by step; directions with the rates of the encoder that is fitted to them alone."""
        found, rows = self.found, []
        rates = iter(() if found is None else found.rates)
        for number, step in enumerate(() if found is None else found.ladder.steps, 1):
            value = next(rates, step.eigenvalue) if step.kind == "direction" else step.eigenvalue
            rows.append(
                [
                    number,
                    step.kind,
                    f"{value.value:.3f}",
                    f"[{value.low:.3f}, {value.high:.3f}]",
                    f"{step.explained:.2f}",
                ]
            )
        return {
            "title": f"The ladder of the {self.of}: functions by the correlation that they keep over a pair",
            "columns": ["function", "kind", "correlation", "95% interval", "R² from the directions before it"],
            "rows": rows,
        }


def _rho(rho: Estimate, of: Of, given: float | None) -> Verdict:
    numbers = (rho.value, rho.low, rho.high, rho.n)
    if given is None:
        advice = f"The correlation that the slowest function of the {of}, linear or not, keeps over a pair."
        return Verdict("rho", *numbers, None, None, "lower", None, advice)
    limit = given + SLOWER * (1 - given)
    passed = bool(rho.low <= limit)
    loose = f" The slowest keeps less than {given:g}: the bound is looser than need be." if rho.high < given else ""
    return Verdict(
        "rho",
        *numbers,
        None,
        limit,
        "lower",
        passed,
        (
            f"No function of the {of} was found that is slower than ρ = {given:g} allows.{loose}"
            if passed
            else f"A function of the {of} is slower than ρ = {given:g} allows: the bound, computed with that "
            f"ρ, is too small."
        ),
    )


def _dimension(found: Spectrum, dim: int, of: Of) -> Verdict:
    """Latents with fewer directions are functions of each other; observations with more have some that latents miss."""
    ladder, rows = found.ladder, found.rates[0].n
    if ladder.dim is None:
        return Verdict("dimension", math.nan, math.nan, math.nan, rows, None, None, "higher", None, ladder.advice)
    fault = (
        f"{dim} latents have only {ladder.dim} directions of their own: the others are functions of those, do not "
        f"vary, or decay faster than ρ = {ladder.reach:.2f}."
        if of == "latents"
        else f"The observations show {ladder.dim} directions, but there are {dim} latents: some must be missing."
    )
    count = Estimate(*[float(ladder.dim)] * 3, n=rows)
    direction: Literal["higher", "lower"] = "higher" if of == "latents" else "lower"
    return Verdict.judge("dimension", count, direction=direction, threshold=dim, good=ladder.advice, bad=fault)
