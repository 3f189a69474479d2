"""More latents than the state has dimensions (m > n): what repeats, what bends, and the few that are the state.

An encoder with m > n white latents has n for the state. What does it do with the rest? It repeats some (the covariance
loses rank), or it fills them with functions of the others: of all functions of the state that are uncorrelated with it
the slowest are harmonics, at ρ² where the state is at ρ. From pairs (h, h') alone:

    rank       directions of the latents that vary (`rank.py`): more latents than that repeat linearly
    ladder     the spectrum of h (`ladder.py`): how many directions generate all the functions that h holds
    minimal    S v = λ C₀₀ v over *linear* functions of h: n of them, white, slowest first, harmonics left out
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.checks import check_matrices, check_same_shape
from jepatlas.identifiability.dimension.rank import FLOOR, linear_rank, principal_axes
from jepatlas.identifiability.spectral.features import Features
from jepatlas.identifiability.spectral.held_out import BlockMoments
from jepatlas.identifiability.spectral.ladder import Ladder, Step, read_ladder
from jepatlas.identifiability.spectral.pair_chunks import PairArrays, PairChunks
from jepatlas.identifiability.spectral.selection import SCORE
from jepatlas.identifiability.spectral.solver import SpectrumSettings
from jepatlas.identifiability.spectral.spectral_encoder import SpectralEncoder
from jepatlas.identifiability.spectral.spectrum import spectrum
from jepatlas.identifiability.spectral.transfer import TransferMoments, eigenfunctions

__all__ = ["Redundancy", "redundancy"]

BEYOND = 6  # functions to compute beyond the latents: the ladder ends where a harmonic is seen
LADDER_ROWS = 8000


@dataclass(frozen=True)
class Redundancy:
    """What m latents are made of."""

    rank: Estimate  # linearly independent latents
    dim: int | None  # directions that generate the rest; None where the ladder is undecided
    ladder: Ladder  # of all functions of h
    linear: Ladder  # of the linear ones, slowest first: what each of them is
    minimal: LinearMap  # h → the directions of the state; where dim is None, as many as `linear` shows
    rates: tuple[Estimate, ...]  # held out, of each of the map's outputs


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
    """From latents h and those of the paired views (b, m); `dim` where the state's dimension is known.

    `ladder` is that of all functions of h, where it was read already.

    Which outputs `minimal` takes: the slowest linear functions of h, without those that are polynomials of the ones
    before them, so that a harmonic that outlives a fast direction does not take its place. What it cannot give is a
    direction that h holds in bent form only: `minimal_recovery` tells how much is lost by that.

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
    kept = principal_axes(h, h_next, floor).whitener
    rank = linear_rank(
        h, h_next, numpy_generator(seed, "rank"), groups=groups, floor=floor, replicates=settings.replicates
    )
    views = kept.apply(h), kept.apply(h_next)
    if ladder is None:
        wide = replace(settings, functions=max(settings.functions, len(kept.weight) + BEYOND))
        ladder = spectrum(*views, groups=groups, settings=wide, seed=seed).ladder
    encoder, values, linear = _linear_ladder(*views, groups, settings.replicates, seed)
    taken = _directions(linear.steps, ladder.dim if dim is None else dim)
    minimal = LinearMap(encoder.weight[taken], encoder.mean, np.zeros(len(taken)))
    return Redundancy(rank, dim or ladder.dim, ladder, linear, kept.compose(minimal), tuple(values[i] for i in taken))


def _linear_ladder(
    u: np.ndarray, u_next: np.ndarray, groups: np.ndarray | None, replicates: int, seed: int
) -> tuple[SpectralEncoder, tuple[Estimate, ...], Ladder]:
    """All linear functions of u, slowest first, fitted on the rows that are not scored; and what each of them is."""
    pairs, r = PairChunks(PairArrays(u, u_next, groups), seed), u.shape[1]
    fit = (rows.within(0, SCORE) for rows in pairs)
    moments = reduce(TransferMoments.merge, (TransferMoments.of(rows.x, rows.x_next) for rows in fit))
    (found,) = eigenfunctions(moments, [0.0], r)
    features = Features(LinearMap(np.eye(r), np.zeros(r), np.zeros(r)), np.zeros((0, r)))
    encoder = SpectralEncoder(features, found.vectors.T, moments.mean, found.values)
    values = BlockMoments.of(encoder, pairs, SCORE).rates(seed, replicates)
    functions = encoder.apply(pairs.sample(LADDER_ROWS, SCORE, 1.0).x)
    return encoder, values, read_ladder(values, found.values.tolist(), functions)


def _directions(steps: Sequence[Step], dim: int | None) -> list[int]:
    """So many of the slowest that are no harmonics; harmonics only where there is nothing else."""
    if dim is None:
        return [i for i, step in enumerate(steps) if step.kind == "direction"] or [0]
    order = sorted(range(len(steps)), key=lambda i: (steps[i].kind == "harmonic", i))
    return sorted(order[:dim])
