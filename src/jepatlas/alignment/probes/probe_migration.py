"""Probe migration: carry a linear probe to another model through the map between them, without training.

With the map  b ≈ m_b + s_b W((a − m_a)/s_a)  and the probe  logits(a) = V((a − m)/s) + bias,  put a = map⁻¹(b):

    logits(b) = V' ((b − m_b)/s_b) + bias'      V' = V (s_a/s) W⁺      bias' = bias + V((m_a − m)/s)

W⁺ drops singular values below σ_max / limit. If a map shrinks weak directions, as a ridge map of noisy pairs does, W⁺
amplifies the noise in them. A map b → a fitted on the same pairs does not, and needs no inverse:

    logits(b) = V((back(b) − m)/s) + bias

The migrated probe cannot use directions that the map does not carry. With P = W⁺W, the share of the logits' variance
in (I − P)a is measured, and a migration that loses too much is refused.

Knowledge distillation is the alternative: a head of the target that is fitted to the source probe's logits,

    V = argmin Σ ‖logits(a) − V b‖² + λ‖V‖²        over pairs of rows (a, b) of the same states

It needs no labels but latents of both models, as a map does, and carries this one probe only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.alignment.maps import RidgeMap
from jepatlas.alignment.maps.conditioning import carried_rank
from jepatlas.alignment.probes.linear_probe import LinearProbe
from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import CONDITION_LIMIT, LinearMap
from jepatlas.core.linear_moments import PairMoments

__all__ = ["LOST", "Support", "check_widths", "distil", "migrate", "migrate_back", "support"]

LOST = 0.5
"""Largest share of the logits' variance that a migration may lose."""


@dataclass(frozen=True)
class Support:
    """How much of a probe a map carries."""

    condition: float  # κ(W) = σ_max / σ_min; infinite if σ_min is at rounding level
    width: int  # dimensions that the probe reads
    carried: int  # directions among them that the inverse restores
    truncated: int  # singular values that were dropped
    lost: float  # share of the logits' variance in directions that are not restored
    limit: float  # condition number above which singular values are dropped

    @property
    def sufficient(self) -> bool:
        """Whether most of the logits' variance is carried."""
        return self.lost <= LOST


def support(
    probe: LinearProbe, translation: LinearMap, *, limit: float = CONDITION_LIMIT, latents: np.ndarray | None = None
) -> Support:
    """Measured on source latents; without them all directions of the map's coordinates are assumed to vary alike."""
    check_widths(probe, translation)
    check_finite("weight of the map", translation.weight)
    if not limit > 1:
        raise InputError(f"'limit', of the condition number, must be above 1, but {limit} was given.")
    _, sigma, vt = np.linalg.svd(translation.weight, full_matrices=False)
    kept = sigma > sigma.max() / limit
    lost = _lost_share(probe, translation.x_scale, vt[kept], latents)
    moments = None if latents is None else PairMoments.of(latents, latents)
    full = carried_rank(translation, sigma, moments) == len(sigma)
    condition = sigma[0] / sigma[-1] if full else np.inf
    return Support(float(condition), len(probe.x_mean), int(kept.sum()), int((~kept).sum()), lost, limit)


def _lost_share(probe: LinearProbe, scale: np.ndarray, carried: np.ndarray, latents: np.ndarray | None) -> float:
    """Share of the logits' variance outside the carried directions (rows, of latents divided by `scale`)."""
    weight = probe.weight * (scale / probe.x_scale)
    weight = weight - weight.mean(0)  # what all classes share does not affect decisions
    lost = weight - weight @ carried.T @ carried
    if latents is not None:
        if latents.ndim != 2 or latents.shape[1] != len(scale):
            raise InputError(f"The probe reads {len(scale)} dimensions, but 'latents' has shape {latents.shape}.")
        centred = (latents - latents.mean(0)) / scale
        weight, lost = centred @ weight.T, centred @ lost.T
    total = np.square(weight).sum()
    return float(np.square(lost).sum() / total) if total > 0 else 0.0


def migrate(
    probe: LinearProbe,
    translation: LinearMap,
    *,
    limit: float = CONDITION_LIMIT,
    latents: np.ndarray | None = None,
    most_lost: float = LOST,
) -> LinearProbe:
    """Migrate a probe of a to b through the inverse of the map a → b.

    Raises InputError if more than `most_lost` of the logits' variance is lost.
    """
    found = support(probe, translation, limit=limit, latents=latents)
    if found.lost > most_lost:
        raise InputError(
            f"The map carries {found.carried} of the {found.width} directions that the probe's latents have, and "
            f"{found.lost:.0%} of what the probe reads lies in the others (at most {most_lost:.0%} is allowed). Fit "
            "the map on more pairs or into a wider model, raise the condition limit, or train a probe on the target."
        )
    return _composed(probe, translation.invert(limit))


def migrate_back(probe: LinearProbe, back: LinearMap) -> LinearProbe:
    """Migrate a probe of a to b through a map b → a."""
    if len(probe.x_mean) != len(back.y_mean):
        raise InputError(
            f"The probe reads {len(probe.x_mean)} dimensions, but the map leads to {len(back.y_mean)}. 'back' must go "
            "from the target to the model that the probe was trained on."
        )
    check_finite("weight of the map", back.weight)
    return _composed(probe, back)


def _composed(probe: LinearProbe, back: LinearMap) -> LinearProbe:
    weight = probe.weight * (back.y_scale / probe.x_scale) @ back.weight
    bias = probe.logits(back.y_mean[None])[0]
    return LinearProbe(probe.classes, weight, bias, back.x_mean, back.x_scale)


def distil(probe: LinearProbe, a: np.ndarray, b: np.ndarray, groups: np.ndarray | None = None) -> LinearProbe:
    """Fit a head on b's latents to the logits of a probe on a's; λ is chosen on held-out `groups`."""
    head = RidgeMap().fit(b, probe.logits(a), groups=groups).map_
    return LinearProbe(probe.classes, head.y_scale[:, None] * head.weight, head.y_mean, head.x_mean, head.x_scale)


def check_widths(probe: LinearProbe, translation: LinearMap, target: int | None = None) -> None:
    """Raise InputError if probe, map and target latents do not have matching dimensions."""
    d_out, d_in = translation.weight.shape
    if len(probe.x_mean) != d_in:
        raise InputError(
            f"The probe reads {len(probe.x_mean)} dimensions, but the map goes from {d_in} to {d_out}. "
            "It must go from the model that the probe was trained on; invert it if it goes the other way."
        )
    if target is not None and target != d_out:
        raise InputError(f"The map goes to {d_out} dimensions, but the target's latents have {target}.")
