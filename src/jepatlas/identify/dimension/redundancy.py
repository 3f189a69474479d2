"""More latents than the state has dimensions (m > n): what repeats, what bends, and the few that are the state.

An encoder with m > n white latents has n for the state. What does it do with the rest? It repeats some (the covariance
loses rank), or it fills them with functions of the others: of all functions of the state that are uncorrelated with it
the slowest are harmonics, at ρ² where the state is at ρ. From pairs (h, h') alone:

    rank       eigenvalues of the latents' correlation matrix above a floor: more latents than that repeat linearly
    ladder     the spectrum of h (`ladder.py`): how many directions generate all the functions that h holds
    minimal    S v = λ C₀₀ v over *linear* functions of h: n of them, white, slowest first, harmonics left out
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import torch

from jepatlas.base.errors import InputError
from jepatlas.base.records import Estimate, LinearMap
from jepatlas.base.seeding import numpy_generator
from jepatlas.base.stats import Moments, bootstrap
from jepatlas.identify.checks import check_matrices, check_same_shape
from jepatlas.identify.covariance import WeightedCovariance
from jepatlas.identify.features import Features
from jepatlas.identify.held_out import BlockMoments
from jepatlas.identify.ladder import Ladder, Step, read_ladder
from jepatlas.identify.pair_chunks import PairArrays, PairChunks
from jepatlas.identify.selection import SCORE
from jepatlas.identify.solver import SpectrumSettings
from jepatlas.identify.spectral_encoder import SpectralEncoder
from jepatlas.identify.spectrum import spectrum
from jepatlas.identify.transfer import TransferMoments, eigenfunctions

__all__ = ["FLOOR", "Redundancy", "linear_rank", "redundancy"]

FLOOR = 1e-3
"""Variance of a direction, with every latent at variance one, up to which it counts as noise on a repetition."""
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
    settings: SpectrumSettings | None = None,
    seed: int = 0,
) -> Redundancy:
    """From latents h and those of the paired views (b, m); `dim` where the state's dimension is known.

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
    rank = linear_rank(h, h_next, numpy_generator(seed, "rank"), groups=groups, floor=floor,
                       replicates=settings.replicates)  # fmt: skip
    kept = _independent(h, h_next, floor)
    views = kept.apply(h), kept.apply(h_next)
    wide = replace(settings, functions=max(settings.functions, len(kept.weight) + BEYOND))
    ladder = spectrum(*views, groups=groups, settings=wide, seed=seed).ladder
    encoder, values, linear = _linear_ladder(*views, groups, settings.replicates, seed)
    taken = _directions(linear.steps, ladder.dim if dim is None else dim)
    minimal = LinearMap(encoder.weight[taken], encoder.mean, np.zeros(len(taken)))
    return Redundancy(rank, dim or ladder.dim, ladder, linear, kept.compose(minimal), tuple(values[i] for i in taken))


def linear_rank(
    h: np.ndarray,
    h_next: np.ndarray,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    floor: float = FLOOR,
    replicates: int = 500,
) -> Estimate:
    """The number of directions with a variance above the floor, where every latent that varies has variance one."""
    covariance = WeightedCovariance(np.concatenate([h, h_next], axis=1))
    m = h.shape[1]

    def statistic(weights: np.ndarray) -> dict[str, float]:
        joint = covariance(weights)
        return {"rank": float((_spectrum((joint[:m, :m] + joint[m:, m:]) / 2, floor)[0] > floor).sum())}

    return bootstrap(statistic, len(h), rng, groups=groups, replicates=replicates)["rank"]


def _spectrum(covariance: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and vectors (rows, of h itself) of the correlation matrix.

    A latent with less than `floor` of the widest one's standard deviation does not vary, and takes no part.
    """
    variance = np.diagonal(covariance)
    varies = variance > floor**2 * max(variance.max(), np.finfo(float).tiny)
    scale = np.where(varies, 1 / np.sqrt(np.where(varies, variance, 1)), 0)
    values, vectors = np.linalg.eigh(covariance * np.outer(scale, scale))
    return values[::-1], (vectors * scale[:, None]).T[::-1]


def _independent(h: np.ndarray, h_next: np.ndarray, floor: float) -> LinearMap:
    """Onto the directions above the floor, each with variance one."""
    moments = reduce(Moments.merge, (Moments.of(torch.from_numpy(np.asarray(v, np.float64))) for v in (h, h_next)))
    values, vectors = _spectrum(moments.covariance.numpy(), floor)
    kept = values > floor
    if not kept.any():
        raise InputError("The latents do not vary: all rows are the same, so they hold nothing.")
    weight = vectors[kept] / np.sqrt(values[kept])[:, None]
    return LinearMap(weight, moments.mean.numpy(), np.zeros(len(weight)))


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
