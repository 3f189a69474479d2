"""The certificate: is this latent space the world's own coordinates? From plain arrays, whoever made them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out, whitener
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.certificate.degrees import degree_verdicts
from jepatlas.identifiability.certificate.diagnosis import diagnose, diagnosis_verdict
from jepatlas.identifiability.certificate.further import unwarped_verdicts, varying_verdicts
from jepatlas.identifiability.checks import as_arrays, check_halves, check_pairs
from jepatlas.identifiability.dimension.coverage import coverage
from jepatlas.identifiability.dimension.mismatch import narrow_verdicts, wide_verdicts
from jepatlas.identifiability.dimension.own_ladder import OwnLadder, own_ladder
from jepatlas.identifiability.dimension.rank import effective_rank, repeated_coordinates
from jepatlas.identifiability.spectral.rho import nonlinear_rho
from jepatlas.identifiability.theory.bound import bound, bound_verdicts, epsilon_null, theorem_verdicts
from jepatlas.identifiability.truth.composition import composition
from jepatlas.identifiability.truth.explained import Explained, explain, nonlinear_r2
from jepatlas.identifiability.truth.halves import Halves
from jepatlas.identifiability.truth.recovery import recovery, recovery_null
from jepatlas.identifiability.truth.verdicts import recovery_verdicts
from jepatlas.identifiability.truth.worst_direction import worst_direction

__all__ = ["certify"]


def certify(
    h: np.ndarray,
    h_next: np.ndarray,
    z: np.ndarray | None = None,
    *,
    rho: float | Estimate | None = None,
    groups: np.ndarray | None = None,
    ladder: OwnLadder | None = None,
    seed: int = 0,
    replicates: int = 500,
) -> list[Verdict]:
    """Verdicts on latents `h` and those of the paired views, `h_next`; rows are samples.

    With the true states `z`: held-out recovery, a diagnosis that names what is wrong, and, where there are more or
    fewer latents than states, what these hold (`ladder` is that of the latents, where it was read already). With the
    pairs' correlation `rho`: the bound of Theorem 3, before and after whitening; of an estimate (see `nonlinear_rho`)
    the upper limit is taken. With both: whether the measured error keeps to the bound. With neither, rho is estimated.
    Rows of one group (an episode, an object) are split and resampled together.

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 4000, 2))
    >>> z_next = 0.9 * z + np.sqrt(1 - 0.9**2) * noise
    >>> turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> verdicts = certify(z @ turn.T, z_next @ turn.T, z, rho=0.9)
    >>> verdicts[0].name, all(verdict.passed is not False for verdict in verdicts)
    ('diagnosis', True)
    """
    h, h_next, z, groups = as_arrays(h=h, h_next=h_next, z=z, groups=groups)
    check_pairs(h, h_next, z, groups)
    h, h_next = h.astype(np.float64), h_next.astype(np.float64)
    split = hold_out(len(h), numpy_generator(seed, "split"), groups=groups)
    check_halves(split, h.shape[1] if z is None else max(h.shape[1], z.shape[1]))
    white = whitener(np.concatenate([h[split.fit], h_next[split.fit]]))
    sample = _Sample(h, h_next, white, split, groups, ladder, seed, replicates)
    if z is None and rho is None:
        rho = sample.rho()
    terms, bounded = ({}, []) if rho is None else sample.bounds(rho)
    if z is None:
        return bounded
    errors, recovered = sample.recovered(z.astype(np.float64))
    found = diagnose(recovered)
    if found is not None and found.kind == "warp":
        recovered += sample.unwarped(z.astype(np.float64))
    return [diagnosis_verdict(recovered), *recovered, *bounded, *theorem_verdicts(errors, terms)]


@dataclass(frozen=True)
class _Sample:
    """Pairs of latents in halves, and the map that whitens them, from the half to fit on."""

    h: np.ndarray
    h_next: np.ndarray
    white: LinearMap
    split: Split
    groups: np.ndarray | None
    ladder: OwnLadder | None
    seed: int
    replicates: int

    def rng(self, name: str) -> np.random.Generator:
        return numpy_generator(self.seed, name)

    def rho(self) -> Estimate:
        try:
            return nonlinear_rho(self.h, self.h_next, groups=self.groups, seed=self.seed)
        except InputError as refusal:
            raise InputError(f"ρ cannot be estimated: {refusal} Else give the true states 'z', or 'rho'.") from refusal

    def bounds(self, rho: float | Estimate) -> tuple[dict[str, dict[str, Estimate]], list[Verdict]]:
        """Theorem 3's terms by form, and the verdicts on them."""
        rate, source = (rho.high, _source(rho)) if isinstance(rho, Estimate) else (rho, "")
        (fit, held), dim, terms, verdicts = self.split, self.h.shape[1], {}, []
        groups = None if self.groups is None else self.groups[held]
        h, h_next, white = self.h[held], self.h_next[held], self.white
        for form, (a, b) in {"": (h, h_next), "_whitened": (white.apply(h), white.apply(h_next))}.items():
            terms[form] = bound(a, b, rho, self.rng("bound"), groups=groups, replicates=self.replicates)
            # The whitening map was estimated on the other half: its noise comes on top.
            pairs = 1 / (1 / len(held) + (1 / len(fit) if form else 0))
            verdicts += bound_verdicts(terms[form], dim, epsilon_null(dim, pairs, rate), form=form, estimated=source)
        return terms, verdicts

    def recovered(self, z: np.ndarray) -> tuple[dict[str, Estimate], list[Verdict]]:
        """The rotation error by form, and all verdicts that the truth allows but the diagnosis."""
        replicates, halves = self.replicates, Halves(self.h, z, self.split, self.groups)
        found = recovery(
            self.h, z, self.split, self.rng("recovery"), white=self.white, groups=self.groups, replicates=replicates
        )
        null = recovery_null(self.h, z, self.split, self.rng("null"))
        explained = explain(halves, self.rng("functions"))
        covered = coverage(explained.halves, explained.decoded, self.rng("coverage"), replicates)
        complete = covered.value == covered.threshold
        verdicts = [
            *recovery_verdicts(found, null),
            effective_rank(self.h, self.h_next),
            repeated_coordinates(self.h, self.h_next),
            covered,
            nonlinear_r2(explained, self.rng("nonlinear"), replicates),
            *composition(explained, self.rng("composition"), complete=complete, replicates=replicates),
            *worst_direction(explained, self.rng("worst direction"), complete=complete, replicates=replicates),
            *degree_verdicts(halves, self.seed, replicates),
            *varying_verdicts(halves, self.h_next, self.seed, replicates),
            *self._mismatch(halves, explained),
        ]
        return {"": found["procrustes"], "_whitened": found["procrustes_whitened"]}, verdicts

    def unwarped(self, z: np.ndarray) -> list[Verdict]:
        return unwarped_verdicts(Halves(self.h, z, self.split, self.groups), self.white, self.seed, self.replicates)

    def _mismatch(self, halves: Halves, explained: Explained) -> list[Verdict]:
        """What more, or fewer, latents than states hold; nothing where there are as many."""
        latents, states = halves.h.shape[1], halves.z.shape[1]
        if latents < states:
            return narrow_verdicts(explained, self.seed, self.replicates)
        if latents == states:
            return []
        own = self.ladder or own_ladder(self.h, self.h_next, groups=self.groups, seed=self.seed)
        return wide_verdicts(halves, self.h_next, own, self.seed, self.replicates)


def _source(rho: Estimate) -> str:
    return (
        f" ρ was not given: {rho.high:.4f} was used, the upper limit for the function, linear or not, that was slowest "
        f"in the fit (it keeps {rho.value:.4f} over pairs that were held out): a larger ρ makes the bound looser."
    )
