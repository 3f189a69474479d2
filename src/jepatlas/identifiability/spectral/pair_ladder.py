"""What pairs show without the true state: ρ and the number of directions, from their spectrum."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.linalg import LinAlgWarning

from jepatlas.core.errors import InputError
from jepatlas.core.figures import Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.spectral.quadratic import slowest_quadratic
from jepatlas.identifiability.spectral.solver import SpectrumSettings
from jepatlas.identifiability.spectral.spectrum import Spectrum, nonlinear_rho, rho_of_spectrum, spectrum
from jepatlas.identifiability.standards import UNEXPLAINED, epsilon_of_sampling

__all__ = ["PairLadder", "fit_pair_ladder", "ladder_rows"]

Source = Literal["latents", "observations"]

MAX_PAIRS = 20_000
PAIRS_PER_DIMENSION = 800
WIDE = 24  # latents from which no more functions are computed than there are latents
RESOLVED = 0.5
"""Share of the fastest harmonic's correlation from which a held-out quadratic function counts as resolved."""
UNRELATED = 0.1  # correlation that pairs called unrelated cannot have
SLOWER = 0.1
"""How much slower than a given ρ pairs may be, relative to 1 − ρ, before that ρ counts as wrong."""


@dataclass(frozen=True)
class PairLadder:
    """The spectrum of latents, or of the observations they are computed from; or the reason why there is none."""

    source: Source
    spectrum: Spectrum | None
    reason: str = ""
    rho_of_all: Estimate | None = None  # ρ from all pairs, if the spectrum is from a subsample
    quadratic: Estimate | None = None  # the slowest quadratic function, where no harmonic was resolved

    @property
    def rho(self) -> Estimate | None:
        """ρ for the bound; None if no function is correlated between the views."""
        rho = self._slowest
        return rho if rho is not None and 0 < rho.high < 1 else None

    @property
    def _slowest(self) -> Estimate | None:
        if self.spectrum is None:
            return None
        rho = self.rho_of_all or rho_of_spectrum(self.spectrum)
        if self.quadratic is None or not self.quadratic.low > 0:
            return rho
        return replace(rho, high=max(rho.high, math.sqrt(self.quadratic.low)))  # harmonics are at most ρ²

    @property
    def sentence(self) -> str:
        if self.spectrum is None:
            return f"The spectrum of the {self.source} could not be computed: {self.reason}"
        ladder = self.spectrum.ladder
        if ladder.dim is None:
            return f"Spectrum of the {self.source}: {ladder.advice[0].lower()}{ladder.advice[1:]}"
        rates = [rate.value for rate in self.spectrum.rates]
        if ladder.dim == 1:
            found = f"1 independent direction, with correlation {rates[0]:.3f} between views (held out)"
        else:
            span = f"{min(rates):.3f} to {max(rates):.3f}"
            found = f"{ladder.dim} independent directions, with correlations {span} between views (held out)"
        harmonics = f"; harmonics start at {ladder.second.value:.3f}" if ladder.second else ""
        return f"The {self.source} have {found}{harmonics}."

    def verdicts(self, latents: int, given_rho: float | None = None) -> list[Verdict]:
        """`rho` and `dimension`, compared with the given ρ and the number of latents."""
        if self.spectrum is None or self._slowest is None:
            return []
        verdicts = [
            _paired_verdict(self._slowest),
            _rho_verdict(self._slowest, self.source, given_rho),
            _dimension_verdict(self.spectrum, latents, self.source),
        ]
        if self.quadratic is not None:
            verdicts.append(_quadratic_verdict(self.quadratic, self.spectrum.rates[0].high, self.source))
        slowest = self.spectrum.rates[0]
        as_given = given_rho is None or slowest.high >= given_rho - SLOWER * (1 - given_rho)
        if self.spectrum.excess is not None and as_given:
            verdicts.append(rates_bound_verdict(self.spectrum, self.source, self.quadratic))
        return verdicts

    @property
    def table(self) -> Table:
        """The ladder, step by step; directions with the rates of the encoder that is fitted to them alone."""
        steps = () if self.spectrum is None else self.spectrum.ladder.steps
        rates = iter(() if self.spectrum is None else self.spectrum.rates)
        rows = []
        for number, step in enumerate(steps, 1):
            value = next(rates, step.eigenvalue) if step.kind == "direction" else step.eigenvalue
            interval = f"[{value.low:.3f}, {value.high:.3f}]"
            rows.append([number, step.kind, f"{value.value:.3f}", interval, f"{step.explained:.2f}"])
        return Table(
            f"Spectrum of the {self.source}: functions by their correlation between views",
            ["function", "kind", "correlation", "95% interval", "R² from the directions before it"],
            rows,
        )


def fit_pair_ladder(
    x: np.ndarray,
    x_next: np.ndarray,
    source: Source = "latents",
    *,
    groups: np.ndarray | None = None,
    seed: int = 0,
    exact: bool = False,
    settings: SpectrumSettings | None = None,
    latents: tuple[np.ndarray, np.ndarray] | None = None,
) -> PairLadder:
    """The ladder of a subsample of the pairs, by default with as many features and functions as they support.

    More pairs do not make it easier to read, but determine ρ better: `exact` estimates ρ from all pairs, for a bound.
    If the spectrum cannot be computed (too few pairs or groups, constant rows), the result contains the reason.
    """
    if not (x != x[0]).any():
        return PairLadder(source, None, "all rows are equal.")
    kept = ladder_rows(len(x), seed, x.shape[1])
    kept_groups = None if groups is None else groups[kept]
    settings = settings or _settings(x.shape[1], len(kept), source)
    with warnings.catch_warnings():
        # with few distinct rows some features are dependent; those are not selected
        warnings.simplefilter("ignore", LinAlgWarning)
        try:
            compared = None if latents is None else (latents[0][kept], latents[1][kept])
            found = spectrum(x[kept], x_next[kept], groups=kept_groups, latents=compared, settings=settings, seed=seed)
            rho_of_all = None
            if exact and len(kept) < len(x):
                rho_of_all = nonlinear_rho(x, x_next, groups=groups, settings=settings, seed=seed)
            quadratic = None
            if source == "latents" and x.shape[1] > 1 and found.ladder.second is None:
                quadratic = slowest_quadratic(x, x_next, groups=groups, seed=seed)
        except InputError as error:
            return PairLadder(source, None, str(error))
    return PairLadder(source, found, rho_of_all=rho_of_all, quadratic=quadratic)


def _settings(dim: int, pairs: int, source: Source) -> SpectrumSettings:
    # no more functions than the first two degrees have: further ones are rough and could pass for directions
    most = 16
    if source == "latents" and dim > 8:
        most = 2 * dim if dim <= WIDE else dim
    functions = min(dim + dim * (dim + 1) // 2, most)
    features = min(max(64, pairs // 20), 512)
    components = SpectrumSettings.components
    if source == "latents":
        components = max(dim, components)
    return SpectrumSettings(functions=functions, features=features, components=components)


def ladder_rows(rows: int, seed: int, dim: int = 1) -> np.ndarray:
    """The pairs that a ladder is read from: all of them, or 20,000 at random, more in many dimensions."""
    most = max(MAX_PAIRS, PAIRS_PER_DIMENSION * dim)
    return np.sort(numpy_generator(seed, "ladder/pairs").permutation(rows)[:most])


def rates_bound_verdict(found: Spectrum, source: Source, quadratic: Estimate | None = None) -> Verdict:
    """Theorem 3 with a rate for each direction, of whitened latents, with the rates of the spectrum.

    With rates r_1 ≥ … ≥ r_n and harmonics below r_1², whitened latents h = Az + e, E‖e‖² = D, have

        tr S ≤ Σ r_i − (r_n − r_1²) D        so        D ≤ (Σ r_i − tr S) / (r_n − r_1²)

    because A lacks variance D at rates of at least r_n, and e has rates of at most r_1². Equal rates give Theorem 3's
    D. The rest of its proof does not depend on the rates: min_Q E‖h − Qz‖² ≤ D + (ε + D)², with the ε of sampling.

    It passes only if nonlinear functions were resolved at all: a harmonic, or in wide latents a `quadratic` function.
    """
    assert found.excess is not None
    dim = len(found.rates)
    slowest = max(found.rates[0].high, float(found.encoder.rates[0]))
    window = min(rate.low for rate in found.rates) - slowest**2
    limit = UNEXPLAINED * dim
    excess = found.excess
    null = epsilon_of_sampling(dim, excess.n, found.rates[0].value)
    low, value, high = (_rates_bound(part, window, null) for part in (excess.low, excess.value, excess.high))
    least = _rates_bound(excess.low, window, 0.0)  # without the ε of sampling
    span = f"{min(rate.value for rate in found.rates):.3f} to {max(rate.value for rate in found.rates):.3f}"
    passed: bool | None = None
    fastest = min(rate.value for rate in found.rates)
    resolved = found.ladder.second is not None or (quadratic is not None and quadratic.low > RESOLVED * fastest**2)
    if window <= 0:
        advice = (
            f"Undecided: the rates of the directions, {span}, are so different that a harmonic of a slow one may be "
            "slower than a fast one. Use a shorter stride between views, or give the true states."
        )
    elif high <= limit and not resolved:
        advice = (
            f"Undecided: no nonlinear function of the {dim} latents was resolved, not even a harmonic, so others could "
            "be missed. Give ρ, observations x and x_next, or the true states z."
        )
    elif high <= limit:
        passed = True
        advice = (
            f"Theorem 3, with one estimated rate for each direction ({span}), certifies the whitened latents, provided "
            f"that the {source} determine the state: no function of them is slower than their linear functions."
        )
    elif least > limit:
        passed = False
        advice = (
            f"Nonlinear functions of the {source} are slower than all linear functions of the latents, so the latents "
            "are not linear in the state. Train longer to improve the alignment."
        )
    else:
        advice = f"Undecided: the rates of the directions ({span}) are too uncertain. Give more pairs."
    return Verdict("bound_rates", value, low, high, excess.n, None, limit, "lower", passed, advice)


def _rates_bound(excess: float, window: float, epsilon: float) -> float:
    gap = max(excess, 0.0) / window if window > 0 else math.inf
    return gap + (epsilon + gap) ** 2


def _quadratic_verdict(found: Estimate, slowest: float, source: Source) -> Verdict:
    limit = slowest**2
    passed = not found.low > limit
    if passed:
        advice = f"The slowest quadratic function of the {source} is not slower than harmonics can be."
    else:
        advice = (
            f"A quadratic function of the {source} is slower than harmonics of a rate of {slowest:.3f} can be, so a "
            "slower function was missed: the latents are not linear in the state of a Gaussian world. Train longer."
        )
    return Verdict(
        "slowest_quadratic", found.value, found.low, found.high, found.n, None, limit, "lower", passed, advice
    )


def _paired_verdict(slowest: Estimate) -> Verdict:
    """Whether anything is shared by the two views."""
    passed: bool | None = True
    advice = "The two views of a pair are related."
    if slowest.low <= 0:
        passed = False if slowest.value < UNRELATED else None
        advice = (
            "The pairs are unrelated: no function of one view is correlated with the same function of the other. Check "
            "that rows of h and h_next belong together."
        )
        if passed is None:
            advice = "Undecided: the pairs are too few to show a relation between the two views. Give more pairs."
    numbers = (slowest.value, slowest.low, slowest.high, slowest.n)
    return Verdict("paired", *numbers, 0.0, 0.0, "higher", passed, advice)


def _rho_verdict(rho: Estimate, source: Source, given: float | None) -> Verdict:
    numbers = (rho.value, rho.low, rho.high, rho.n)
    if given is None:
        advice = f"Largest correlation between views of any function of the {source}, linear or not."
        return Verdict("rho", *numbers, None, None, "lower", None, advice)
    limit = given + SLOWER * (1 - given)
    passed = bool(rho.low <= limit)
    if not passed:
        advice = (
            f"A function of the {source} is slower than ρ = {given:g} allows, so the bound computed with that ρ is too "
            "small. Check ρ."
        )
    elif rho.high < given:
        advice = f"All functions of the {source} are faster than ρ = {given:g}: a smaller ρ gives a tighter bound."
    else:
        advice = f"No function of the {source} is slower than ρ = {given:g} allows."
    return Verdict("rho", *numbers, None, limit, "lower", passed, advice)


def _dimension_verdict(found: Spectrum, latents: int, source: Source) -> Verdict:
    """Latents with fewer directions are functions of each other; observations with more have some that latents lack."""
    ladder = found.ladder
    rows = found.rates[0].n
    if ladder.dim is None:
        return Verdict("dimension", math.nan, math.nan, math.nan, rows, None, None, "higher", None, ladder.advice)
    if source == "latents":
        direction = "higher"
        bad = (
            f"The {latents} latents have only {ladder.dim} independent directions: the others are functions of those, "
            f"are constant, or decay faster than ρ = {ladder.min_rate:.2f}."
        )
    else:
        direction = "lower"
        missing = ladder.dim - latents
        bad = (
            f"The observations have {ladder.dim} directions, but there are {latents} latents: at least {missing} "
            f"{'is' if missing == 1 else 'are'} missing. Use more latents."
        )
    dim = float(ladder.dim)
    count = Estimate.exact(dim, rows)
    return Verdict.judge("dimension", count, direction=direction, threshold=latents, good=ladder.advice, bad=bad)
