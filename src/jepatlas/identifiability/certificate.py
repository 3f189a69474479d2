"""Certificate: are these latents the world's own coordinates? From plain arrays of any model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out, whitener
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.composition import (
    Explained,
    composition,
    explain,
    nonlinear_r2,
    rounding,
    worst_direction,
)
from jepatlas.identifiability.diagnosis import diagnose, diagnosis_verdict
from jepatlas.identifiability.dimension.captured import coverage
from jepatlas.identifiability.dimension.mismatch import narrow_verdicts, wide_verdicts
from jepatlas.identifiability.dimension.rank import (
    effective_rank,
    principal_axes,
    repeated_coordinates,
    varying_coordinates,
)
from jepatlas.identifiability.dimension.redundancy import minimal_recovery
from jepatlas.identifiability.linear_recovery import r2_of_parts, recovery, recovery_null, recovery_verdicts
from jepatlas.identifiability.resampling import Halves
from jepatlas.identifiability.spectral.pair_ladder import PairLadder, fit_pair_ladder
from jepatlas.identifiability.spectral.spectrum import nonlinear_rho
from jepatlas.identifiability.standards import epsilon_of_sampling
from jepatlas.identifiability.theory.bound import bound, bound_verdicts, theorem_verdicts, whitened_bound
from jepatlas.identifiability.theory.hermite import degree_verdicts
from jepatlas.identifiability.validation import as_arrays, check_halves, check_pairs
from jepatlas.identifiability.warps.warp import fit_sides
from jepatlas.identifiability.warps.warp_recovery import warp_recovery

__all__ = ["certify"]


def certify(
    h: np.ndarray,
    h_next: np.ndarray,
    z: np.ndarray | None = None,
    *,
    rho: float | Estimate | None = None,
    groups: np.ndarray | None = None,
    ladder: PairLadder | None = None,
    seed: int = 0,
    replicates: int = 500,
    spectral: bool = True,
) -> list[Verdict]:
    """Verdicts on latents `h` and those of the paired views, `h_next`; rows are samples.

    With the true states `z`: held-out recovery, a diagnosis that names the corruption, and, if there are more or fewer
    latents than states, what they contain (`ladder` is that of the latents, if it exists already). With the pairs'
    correlation `rho`: the bound of Theorem 3, before and after whitening; for an estimate (see `nonlinear_rho`), its
    upper limit is used. With both: whether the measured error respects the bound. With neither, rho is estimated.
    Rows of one group (an episode, an object) are split and resampled together. `spectral=False` leaves out what needs
    a ladder that does not exist yet: the directions that generate surplus latents.

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
    h = h.astype(np.float64)
    h_next = h_next.astype(np.float64)
    split = hold_out(len(h), numpy_generator(seed, "split"), groups=groups)
    check_halves(split, h.shape[1] if z is None else max(h.shape[1], z.shape[1]))
    white = whitener(np.concatenate([h[split.fit], h_next[split.fit]]))
    sample = _Sample(h, h_next, white, split, groups, seed, replicates, spectral)
    if z is None:
        return sample.bound_verdicts(sample.estimate_rho() if rho is None else rho)[1]
    terms, bounded = ({}, []) if rho is None else sample.bound_verdicts(rho)
    halves = Halves(h, z.astype(np.float64), split, groups)
    errors, recovered = sample.recovery_verdicts(halves, ladder)
    found = diagnose(recovered)
    if found is not None and found.kind == "warp":
        recovered += sample.unwarped_verdicts(halves)
    return [diagnosis_verdict(recovered), *recovered, *bounded, *theorem_verdicts(errors, terms)]


@dataclass(frozen=True)
class _Sample:
    """Pairs of latents, split in halves, and the whitening map fitted on the first half."""

    h: np.ndarray
    h_next: np.ndarray
    white: LinearMap
    split: Split
    groups: np.ndarray | None
    seed: int
    replicates: int
    spectral: bool

    def rng(self, name: str) -> np.random.Generator:
        return numpy_generator(self.seed, name)

    def estimate_rho(self) -> Estimate:
        try:
            return nonlinear_rho(self.h, self.h_next, groups=self.groups, seed=self.seed)
        except InputError as error:
            raise InputError(f"ρ cannot be estimated: {error} Give 'rho', or the true states 'z'.") from error

    def bound_verdicts(self, rho: float | Estimate) -> tuple[dict[str, dict[str, Estimate]], list[Verdict]]:
        """The terms of Theorem 3 and their verdicts, for latents as they are ("") and whitened ("_whitened")."""
        rate = rho.high if isinstance(rho, Estimate) else rho
        source = _source_of(rho) if isinstance(rho, Estimate) else ""
        rows, dim = self.h.shape
        rng = self.rng("bound")
        chosen = {"groups": self.groups, "replicates": self.replicates}
        terms = {
            "": bound(self.h, self.h_next, rho, rng, **chosen),
            "_whitened": whitened_bound(self.h, self.h_next, rho, self.split, rng, **chosen),
        }
        fit, score = (len(side) for side in self.split)
        pairs = {"": rows, "_whitened": 1 / (1 / fit + 1 / score)}  # the map has the noise of the other half
        verdicts = []
        for form, found in terms.items():
            null = epsilon_of_sampling(dim, pairs[form], rate)
            verdicts += bound_verdicts(found, dim, null, form=form, estimated=source)
        return terms, verdicts

    def recovery_verdicts(self, halves: Halves, ladder: PairLadder | None) -> tuple[dict[str, Estimate], list[Verdict]]:
        """The rotation error by form, and all verdicts that use the true state, without the diagnosis."""
        h = halves.h
        z = halves.z
        split = halves.split
        groups = halves.groups
        replicates = self.replicates
        rng = self.rng("recovery")
        found = recovery(h, z, split, rng, white=self.white, groups=groups, replicates=replicates)
        null = recovery_null(h, z, split, self.rng("null"))
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
            *self.varying_verdicts(halves),
            *self.mismatch_verdicts(halves, explained, ladder),
        ]
        if not all(verdict.passed for verdict in verdicts if verdict.name in ("r2", "r2_inverse")):
            verdicts += [rounding(self.h), r2_of_parts(halves)]
        return {"": found["procrustes"], "_whitened": found["procrustes_whitened"]}, verdicts

    def varying_verdicts(self, halves: Halves) -> list[Verdict]:
        """If some directions are constant: how many coordinates vary, and the R² of the state from the rest."""
        axes = principal_axes(self.h, self.h_next)
        if not 0 < len(axes.values) < self.h.shape[1]:
            return []
        scores = minimal_recovery(
            halves.h,
            axes.whitener,
            halves.z,
            halves.split,
            self.rng("varying"),
            groups=halves.groups,
            replicates=self.replicates,
        )
        good = "R² of the state from the latent directions that vary, by least squares."
        return [
            varying_coordinates(axes, len(self.h)),
            Verdict.judge("r2_varying", scores["r2_minimal"], direction="higher", good=good),
        ]

    def mismatch_verdicts(self, halves: Halves, explained: Explained, ladder: PairLadder | None) -> list[Verdict]:
        """If latents and states differ in number: what the latents contain."""
        latents = halves.h.shape[1]
        states = halves.z.shape[1]
        if latents == states:
            return []
        if latents < states:
            return narrow_verdicts(explained, self.seed, self.replicates)
        if ladder is None and not self.spectral:
            return []
        if ladder is None:
            ladder = fit_pair_ladder(self.h, self.h_next, groups=self.groups, seed=self.seed)
        return wide_verdicts(halves, self.h_next, ladder, self.seed, self.replicates)

    def unwarped_verdicts(self, halves: Halves) -> list[Verdict]:
        """R² of the state, and the remaining stretch, after undoing one warp shared by all coordinates."""
        h = halves.h
        z = halves.z
        split = halves.split
        groups = halves.groups
        fits = fit_sides(h[split.fit], z[split.fit], self.white)
        found = warp_recovery(h, z, split, self.rng("unwarped"), fits=fits, groups=groups, replicates=self.replicates)
        straight_h, straight_z = fits.straightened(h, z)
        remaining = recovery(
            straight_h, straight_z, split, self.rng("straightened"), groups=groups, replicates=self.replicates
        )
        advice = {
            "r2_unwarped": "R² of the state after undoing one warp shared by all coordinates of the "
            f"{fits.better}, the better of the two forms.",
            "r2_unwarped_states": "R² of the state from whitened latents after undoing one warp of the states' "
            "coordinates, h = Qw(z) (fit_warp).",
            "r2_unwarped_latents": "R² of the state after undoing one warp of the latents' coordinates, h = w(Qz) "
            "(fit_latent_warp).",
        }
        verdicts = [Verdict.judge(name, found[name], direction="higher", good=good) for name, good in advice.items()]
        stretch = "Stretch of the linear map that remains after undoing the warp."
        verdicts.append(Verdict.judge("stretch_unwarped", remaining["stretch"], direction="lower", good=stretch))
        return verdicts


def _source_of(rho: Estimate) -> str:
    return (
        f" ρ was estimated: {rho.high:.4f}, the upper limit for the slowest function found, linear or not (its "
        f"held-out correlation is {rho.value:.4f}). A larger ρ makes the bound looser."
    )
