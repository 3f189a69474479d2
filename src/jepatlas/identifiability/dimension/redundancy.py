"""More latents than state dimensions (m > n): repeated latents, harmonics, and the minimal subspace with the state.

An encoder with m > n white latents uses n for the state. It may repeat some in the others (the covariance loses rank),
or fill them with functions of the state: the slowest functions uncorrelated with it are harmonics, at ρ² where the
state is at ρ. From pairs (h, h') alone:

    rank       latent directions that vary (`rank.py`): more latents than that repeat linearly
    ladder     the spectrum of h (`ladder.py`): the number of directions that generate all functions in h
    minimal    S v = λ C₀₀ v over *linear* functions of h: n of them, white, slowest first, without harmonics
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.linear import Split, least_squares
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap, explained_share
from jepatlas.identifiability.dimension.rank import FLOOR, linear_rank, principal_axes
from jepatlas.identifiability.resampling import Halves
from jepatlas.identifiability.spectral.held_out import BlockMoments
from jepatlas.identifiability.spectral.ladder import Ladder, Step, read_ladder
from jepatlas.identifiability.spectral.pair_rows import SCORE, SplitPairs
from jepatlas.identifiability.spectral.sfa import linear_functions
from jepatlas.identifiability.spectral.solver import SpectrumSettings
from jepatlas.identifiability.spectral.spectral_encoder import SpectralEncoder
from jepatlas.identifiability.spectral.spectrum import spectrum
from jepatlas.identifiability.standards import UNEXPLAINED
from jepatlas.identifiability.validation import check_matrices, check_same_shape

__all__ = [
    "Redundancy",
    "minimal_r2_lost",
    "minimal_recovery",
    "missing_directions",
    "redundancy",
    "state_directions",
    "undecided",
]

EXTRA_FUNCTIONS = 6  # functions computed beyond the number of latents: the ladder must include a harmonic
LADDER_ROWS = 8000


@dataclass(frozen=True)
class Redundancy:
    """How m latents depend on each other."""

    rank: Estimate  # linearly independent latents
    dim: int | None  # directions that generate the rest; None if the ladder is undecided
    ladder: Ladder  # of all functions of h
    linear: Ladder  # of the linear ones, slowest first
    minimal: LinearMap  # h → the directions of the state; if dim is None, as many as `linear` shows
    rates: tuple[Estimate, ...]  # held out, of each output of the map


def redundancy(
    h: np.ndarray,
    h_next: np.ndarray,
    *,
    dim: int | None = None,
    groups: np.ndarray | None = None,
    floor: float = FLOOR,
    ladder: Ladder | None = None,
    settings: SpectrumSettings | None = None,
    seed: int = 0,
) -> Redundancy:
    """From the latents h and h_next of paired views (b, m); `dim` is the state's dimension, if known.

    `ladder` is an existing ladder of all functions of h.

    The outputs of `minimal` are the slowest linear functions of h that are not polynomials of earlier ones, so that a
    harmonic that is slower than a fast direction does not replace it. A direction that h contains only in nonlinear
    form cannot be recovered; `minimal_recovery` measures how much is lost.

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 4000, 2))
    >>> z_next = 0.9 * z + np.sqrt(1 - 0.9**2) * noise
    >>> h, h_next = (np.c_[s, s[:, :1] * s[:, 1:], s[:, :1] + s[:, 1:]] for s in (z, z_next))
    >>> found = redundancy(h, h_next, settings=SpectrumSettings(features=64, replicates=50))
    >>> found.rank.value, found.dim, found.minimal.weight.shape
    (3.0, 2, (2, 4))
    """
    check_matrices(groups, h=h, h_next=h_next)
    check_same_shape(h=h, h_next=h_next)
    settings = settings or SpectrumSettings()
    white = principal_axes(h, h_next, floor).whitener
    rng = numpy_generator(seed, "rank")
    rank = linear_rank(h, h_next, rng, groups=groups, floor=floor, replicates=settings.replicates)
    u = white.apply(h)
    u_next = white.apply(h_next)
    if ladder is None:
        wide = replace(settings, functions=max(settings.functions, len(white.weight) + EXTRA_FUNCTIONS))
        ladder = spectrum(u, u_next, groups=groups, settings=wide, seed=seed).ladder
    encoder, values, linear = _linear_ladder(u, u_next, groups, settings.replicates, seed)
    kept = _select(linear.steps, ladder.dim if dim is None else dim)
    whole = encoder.features.whitening.compose(LinearMap(encoder.weight, encoder.mean, np.zeros(encoder.dim)))
    minimal = LinearMap(whole.weight[kept], whole.x_mean, whole.y_mean[kept])
    rates = tuple(values[i] for i in kept)
    return Redundancy(rank, dim or ladder.dim, ladder, linear, white.compose(minimal), rates)


def _linear_ladder(
    u: np.ndarray, u_next: np.ndarray, groups: np.ndarray | None, replicates: int, seed: int
) -> tuple[SpectralEncoder, tuple[Estimate, ...], Ladder]:
    """All linear functions of u, slowest first, fitted on the rows that are not scored, with rates and ladder."""
    pairs = SplitPairs(u, u_next, groups=groups, seed=seed)
    encoder = linear_functions(pairs, SCORE)
    values = BlockMoments.of(encoder, pairs, SCORE).rates(seed, replicates)
    functions = encoder.apply(pairs.sample(LADDER_ROWS, SCORE, 1.0).x)
    return encoder, values, read_ladder(values, encoder.rates.tolist(), functions)


def _select(steps: Sequence[Step], dim: int | None) -> list[int]:
    """Indices of the `dim` slowest steps, harmonics last; of all directions if `dim` is None."""
    if dim is None:
        return [i for i, step in enumerate(steps) if step.kind == "direction"] or [0]
    order = sorted(range(len(steps)), key=lambda i: (steps[i].kind == "harmonic", i))
    return sorted(order[:dim])


def minimal_recovery(
    h: np.ndarray,
    minimal: LinearMap,
    z: np.ndarray,
    split: Split,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> dict[str, Estimate]:
    """Recovery of the state from the minimal subspace and from all latents, held out, with group-bootstrap intervals:

    r2                   R² of the true states z from all of h, by least squares
    r2_minimal           from the minimal subspace alone
    r2_lost              r2 − r2_minimal
    r2_inverse           R² of h from z
    r2_inverse_minimal   R² of the minimal subspace from z: 1 if it is a linear function of the state
    """
    check_matrices(groups, h=h, z=z)
    h = h.astype(np.float64)
    z = z.astype(np.float64)
    small = minimal.apply(h)
    fit, score = split
    tasks = {}
    for name, x, y in (
        ("r2", h, z),
        ("r2_inverse", z, h),
        ("r2_minimal", small, z),
        ("r2_inverse_minimal", z, small),
    ):
        tasks[name] = y[score], y[score] - least_squares(x[fit], y[fit]).apply(x[score])

    def statistic(weights: np.ndarray) -> dict[str, float]:
        scores = {name: _explained(target, residual, weights) for name, (target, residual) in tasks.items()}
        return scores | {"r2_lost": scores["r2"] - scores["r2_minimal"]}

    score_groups = None if groups is None else groups[score]
    return bootstrap(statistic, len(score), rng, groups=score_groups, replicates=replicates)


def _explained(target: np.ndarray, residual: np.ndarray, weights: np.ndarray) -> float:
    """R² from residuals; NaN for a constant target."""
    mean = weights @ target / weights.sum()
    return explained_share(weights @ np.square(residual).sum(1), weights @ np.square(target - mean).sum(1))


def state_directions(found: Redundancy, rows: int) -> Verdict:
    """The number of directions that generate the latents, compared with the linearly independent latents."""
    width = len(found.minimal.x_mean)
    rank = int(found.rank.value)
    n = found.dim
    if n is None:
        return undecided("state_directions", rows, f"The number of directions is undecided. {found.ladder.advice}")
    if n > rank:
        advice = (
            f"{n} directions are folded into {rank} latents, so a linear map recovers at most {rank} of them. Use more "
            "latents."
        )
        return Verdict.judge(
            "state_directions", Estimate.exact(n, rows), direction="lower", threshold=rank, good="", bad=advice
        )
    rates = ", ".join(f"{rate.value:.3f}" for rate in found.rates)
    if rank == width:
        good = f"{n} directions generate the latents; none is a function of the others. Their correlations: {rates}."
    else:
        good = (
            f"{n} directions generate all {width} latents, which are linear combinations of them. Their correlations: "
            f"{rates}."
        )
    bad = (
        f"{_describe_others(found, rank - n, rank)} The other {n} have correlations {rates} (directions below "
        f"{found.ladder.min_rate:.2f} were not searched). Use the minimal subspace, or train with {n} latents."
    )
    return Verdict.judge(
        "state_directions", Estimate.exact(n, rows), direction="higher", threshold=rank, good=good, bad=bad
    )


def _describe_others(found: Redundancy, count: int, rank: int) -> str:
    """What the latents are that are not independent directions, as far as the ladder of linear functions shows."""
    others = f"{count} of {rank} independent latents"
    function = "is a function" if count == 1 else "are functions"
    have = "has" if count == 1 else "have"
    fast = f"{have} a correlation below {found.ladder.min_rate:.2f} between views, like noise or rough functions"
    kinds = [step.kind for step in found.linear.steps]
    if kinds.count("harmonic") == count:
        return f"{others} {function} of the other directions."
    if kinds.count("unread") == count:
        return f"{others} {fast}."
    return f"{others} {function} of the other directions, or {fast}."


def minimal_r2_lost(halves: Halves, found: Redundancy, seed: int, replicates: int) -> Verdict:
    """R² of the state that the minimal subspace loses relative to all latents."""
    rng = numpy_generator(seed, "dimension/minimal")
    scores = minimal_recovery(
        halves.h, found.minimal, halves.z, halves.split, rng, groups=halves.groups, replicates=replicates
    )
    minimal = scores["r2_minimal"].value
    every = scores["r2"].value
    return Verdict.judge(
        "minimal_r2_lost",
        scores["r2_lost"],
        direction="lower",
        threshold=UNEXPLAINED,
        good=f"The minimal subspace recovers the state as well as all latents do: R² {minimal:.3f} and {every:.3f}.",
        bad=f"The minimal subspace recovers the state with R² {minimal:.3f}, all latents with {every:.3f}: part of the "
        "state is contained only in nonlinear form, or the ladder was misread.",
    )


def missing_directions(world: Ladder, found: Redundancy, rows: int) -> Verdict:
    """Directions in the ladder of the observations that the latents lack."""
    if world.dim is None:
        return undecided("missing_directions", rows, f"The directions of the observations: {world.advice}")
    latents = int(found.rank.value) if found.dim is None else found.dim
    missing = max(world.dim - latents, 0)
    compared = f"The observations have {world.dim} directions with ρ above {world.min_rate:.2f}, the latents {latents}"
    return Verdict.judge(
        "missing_directions",
        Estimate.exact(missing, rows),
        direction="lower",
        threshold=0.0,
        good=f"{compared}: none is missing.",
        bad=f"{compared}: {missing} {'is' if missing == 1 else 'are'} missing. Train with more latents. Give the true "
        "states z to find out which are missing.",
    )


def undecided(name: str, rows: int, advice: str) -> Verdict:
    return Verdict.judge(name, Estimate.exact(np.nan, rows), direction="lower", good=advice)
