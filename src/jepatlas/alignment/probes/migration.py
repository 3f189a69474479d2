"""A probe goes from one model to another through the map between them, with no gradient step.

With the map  b ≈ m_b + s_b W((a − m_a)/s_a)  and the probe  logits(a) = V((a − m)/s) + bias,  put a = map⁻¹(b):

    logits(b) = V' ((b − m_b)/s_b) + bias'      V' = V (s_a/s) W⁺      bias' = bias + V((m_a − m)/s)

W⁺ leaves out what lies below σ_max / limit. Of a map that shrinks faint directions, as a ridge map of noisy pairs does,
W⁺ stretches the noise in them; a map b → a that is fitted backwards on the same pairs does not, and needs no inverse:

    logits(b) = V((back(b) − m)/s) + bias

What the map does not carry, the probe does not see any more: with P = W⁺W,
the share of the logits' variance that lies in (I − P)a is measured, and too large a share is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.alignment.maps.conditioning import carried_rank
from jepatlas.alignment.probes.probe import LinearProbe
from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import CONDITION_LIMIT, LinearMap
from jepatlas.core.pair_moments import PairMoments

__all__ = ["LOST", "Support", "check_widths", "migrate", "migrate_back", "support"]

LOST = 0.5
"""Share of the logits' variance from which on a migrated probe says more about the map than about the input."""


@dataclass(frozen=True)
class Support:
    """What of a probe a map can carry."""

    condition: float  # κ(W) = σ_max / σ_min; infinite where σ_min is but rounding
    width: int  # dimensions that the probe reads
    carried: int  # directions of them that come back through the map
    truncated: int  # singular values that were left out
    lost: float  # share of the logits' variance in directions that do not come back
    limit: float  # of the condition number, above which singular values are left out

    @property
    def enough(self) -> bool:
        """Whether a migrated probe says more about the input than about the map."""
        return self.lost <= LOST


def support(
    probe: LinearProbe, translation: LinearMap, *, limit: float = CONDITION_LIMIT, latents: np.ndarray | None = None
) -> Support:
    """Measured on source latents where there are any; else all directions of the map's coordinates vary alike."""
    check_widths(probe, translation)
    check_finite("weight of the map", translation.weight)
    if not limit > 1:
        raise InputError(f"The limit of the condition number must be above 1, but {limit} was given.")
    _, sigma, vt = np.linalg.svd(translation.weight, full_matrices=False)
    kept = sigma > sigma.max() / limit
    lost = _lost(probe, translation.x_scale, vt[kept], latents)
    moments = None if latents is None else PairMoments.of(latents, latents)
    full = carried_rank(translation, sigma, moments) == len(sigma)
    condition = sigma[0] / sigma[-1] if full else np.inf
    return Support(float(condition), len(probe.x_mean), int(kept.sum()), int((~kept).sum()), lost, limit)


def _lost(probe: LinearProbe, scale: np.ndarray, carried: np.ndarray, latents: np.ndarray | None) -> float:
    """Share of the logits' variance outside the carried directions (rows, of latents divided by `scale`)."""
    reads = probe.weight * (scale / probe.x_scale)
    reads = reads - reads.mean(0)  # what is common to all classes decides nothing
    missed = reads - reads @ carried.T @ carried
    if latents is not None:
        if latents.ndim != 2 or latents.shape[1] != len(scale):
            raise InputError(f"The probe reads {len(scale)} dimensions, but the latents are {latents.shape}.")
        centred = (latents - latents.mean(0)) / scale
        reads, missed = centred @ reads.T, centred @ missed.T
    total = np.square(reads).sum()
    return float(np.square(missed).sum() / total) if total > 0 else 0.0


def migrate(
    probe: LinearProbe,
    translation: LinearMap,
    *,
    limit: float = CONDITION_LIMIT,
    latents: np.ndarray | None = None,
    most_lost: float = LOST,
) -> LinearProbe:
    """The probe of a's latents, for b's, through the map a → b; refused where the map does not carry what it reads."""
    found = support(probe, translation, limit=limit, latents=latents)
    if found.lost > most_lost:
        raise InputError(
            f"The map carries {found.carried} of the {found.width} directions that the probe's latents have, and "
            f"{found.lost:.0%} of what the probe reads lies in the others (at most {most_lost:.0%} is allowed). Fit "
            "the map on more pairs or into a wider model, raise the condition limit, or train a probe on the target."
        )
    return _composed(probe, translation.invert(limit))


def migrate_back(probe: LinearProbe, back: LinearMap) -> LinearProbe:
    """The probe of a's latents, for b's, through a map b → a that was fitted so: its logits of what b tells of a."""
    if len(probe.x_mean) != len(back.y_mean):
        raise InputError(
            f"The probe reads {len(probe.x_mean)} dimensions, but the map leads to {len(back.y_mean)}. One that is "
            "fitted backwards goes from the target to the model that the probe was trained on."
        )
    check_finite("weight of the map", back.weight)
    return _composed(probe, back)


def _composed(probe: LinearProbe, back: LinearMap) -> LinearProbe:
    weight = probe.weight * (back.y_scale / probe.x_scale) @ back.weight
    bias = probe.logits(back.y_mean[None])[0]
    return LinearProbe(probe.classes, weight, bias, back.x_mean, back.x_scale)


def check_widths(probe: LinearProbe, translation: LinearMap, target: int | None = None) -> None:
    """Refuse a map that does not begin where the probe reads, or does not end at the target's latents."""
    d_out, d_in = translation.weight.shape
    if len(probe.x_mean) != d_in:
        raise InputError(
            f"The probe reads {len(probe.x_mean)} dimensions, but the map goes from {d_in} to {d_out}. "
            "It must go from the model that the probe was trained on; invert it if it goes the other way."
        )
    if target is not None and target != d_out:
        raise InputError(f"The map goes to {d_out} dimensions, but the target's latents have {target}.")
