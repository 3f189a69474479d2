"""A chart of an atlas: how one model's latents h enter the common frame, F = t + Q S(h), and what is known about them.

S, the standardiser, gives the coordinates in which charts of one world are rotations of each other: h about its mean
where a certificate says that h = Qz, whitened latents otherwise (or where the certificate speaks of those).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from jepatlas.alignment.maps.conditioning import lacks_one_mean
from jepatlas.alignment.splits import plain_ids
from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.linear import whitener
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate
from jepatlas.core.sealing import sha256_of_bytes

__all__ = ["Attachment", "CertificateSummary", "Chart", "ChartLatents", "check_name", "standardiser"]

CONDITION = 1e7
"""Whitening keeps variances down to 1e-12 of the largest, so what is below this on the way back is rounding."""


@dataclass(frozen=True)
class CertificateSummary:
    """What a certificate says of a chart: min_Q E‖h − Qz‖² ≤ bound, for h centred (or, `whitened`, for S(h))."""

    bound: Estimate
    identified: bool | None
    """None where the certificate is undecided."""
    whitened: bool = False


@dataclass(frozen=True)
class ChartLatents:
    """A model's latents (N, d) of the states `ids` (N,): whole numbers or texts, each once. What a chart is made from.

    States of one group (an episode, an object) are held out together.
    """

    name: str
    latents: np.ndarray
    ids: np.ndarray
    certificate: CertificateSummary | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    groups: np.ndarray | None = None

    def __post_init__(self) -> None:
        check_name("chart", self.name)
        latents, ids = np.asarray(self.latents), np.asarray(self.ids)
        if latents.ndim != 2 or latents.shape[1] == 0:
            raise InputError(f"The latents of '{self.name}' must have the shape (N, d), but have {latents.shape}.")
        check_finite(f"latents of {self.name}", latents)
        for label, array in (("ids", ids), ("groups", self.groups)):
            if array is not None and np.shape(array) != latents.shape[:1]:
                raise InputError(
                    f"'{self.name}' has {len(latents)} rows, but its {label} have shape {np.shape(array)}."
                )
        object.__setattr__(self, "latents", latents.astype(np.float64))
        object.__setattr__(self, "ids", _plain_ids(self.name, ids))

    def take(self, rows: np.ndarray) -> ChartLatents:
        groups = None if self.groups is None else np.asarray(self.groups)[rows]
        return replace(self, latents=self.latents[rows], ids=self.ids[rows], groups=groups)


@dataclass(frozen=True)
class Attachment:
    """Something that reads a chart's latents and travels with it, as bytes: a probe, an energy, ..."""

    kind: str
    name: str
    data: bytes

    def __post_init__(self) -> None:
        check_name("kind", self.kind)
        check_name(self.kind, self.name)

    @property
    def sha256(self) -> str:
        return sha256_of_bytes(self.data)


@dataclass(frozen=True)
class Chart:
    """One model in the atlas."""

    name: str
    standardiser: LinearMap  # h (d) → u (d)
    to_frame: LinearMap  # u (d) → F (D); Q has orthonormal columns
    tied: int
    """Directions that the sample of shared states holds in place, be it by noise; the rest of Q could turn freely."""
    states: int
    """Shared states that Q was fitted on."""
    certificate: CertificateSummary | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    attachments: tuple[Attachment, ...] = ()

    def __post_init__(self) -> None:
        check_name("chart", self.name)

    @property
    def width(self) -> int:
        return len(self.standardiser.x_mean)

    @cached_property
    def normed(self) -> bool:
        """Whether whitening found one direction dead, and it is the one that a last layer normalisation takes.

        The covariance is read off the whitener, so every atlas can tell; latents that are only centred are not asked.
        """
        if self.tied == self.width:
            return False
        root = self.standardiser.invert(CONDITION).raw_weight
        root = root / max(np.abs(root).max(), np.finfo(np.float64).tiny)
        covariance = root @ root.T
        still = np.diag(covariance) <= CONDITION**-2 * np.diag(covariance).max()
        covariance[still] = covariance[:, still] = 0  # what rounding leaves of a constant column
        return lacks_one_mean(covariance)

    @property
    def full(self) -> int:
        """Directions that other charts could tie."""
        return self.width - self.normed

    @cached_property
    def into(self) -> LinearMap:
        """h → F."""
        return self.standardiser.compose(self.to_frame)

    @cached_property
    def out(self) -> LinearMap:
        """F → h: by Qᵀ, then back from the standardised coordinates; what the chart does not see stays at its mean."""
        return self.to_frame.invert().compose(self.standardiser.invert(CONDITION))

    def attach(self, attachment: Attachment) -> Chart:
        """With the attachment, in place of one of the same kind and name."""
        key = (attachment.kind, attachment.name)
        others = tuple(old for old in self.attachments if (old.kind, old.name) != key)
        return replace(self, attachments=(*others, attachment))

    def attachment(self, kind: str, name: str) -> Attachment:
        for one in self.attachments:
            if (one.kind, one.name) == (kind, name):
                return one
        known = ", ".join(f"{one.kind} '{one.name}'" for one in self.attachments) or "none"
        raise InputError(f"The chart '{self.name}' carries no {kind} '{name}'. It carries: {known}.")


def standardiser(chart: ChartLatents) -> LinearMap:
    """S: about the mean where a certificate speaks of the latents as they are, whitened otherwise."""
    certificate = chart.certificate
    if len(chart.latents) < 2:
        raise InputError(f"A chart is made from at least 2 states, but '{chart.name}' has {len(chart.latents)}.")
    if (chart.latents == chart.latents[0]).all():
        raise InputError(
            f"The latents of '{chart.name}' do not vary at all: {len(chart.latents)} states have one "
            "latent, which says nothing of them. Is the model collapsed, or the file wrong?"
        )
    if certificate is not None and certificate.identified and not certificate.whitened:
        d = chart.latents.shape[1]
        return LinearMap(np.eye(d), chart.latents.mean(0), np.zeros(d))
    return whitener(chart.latents)


def check_name(what: str, name: str) -> None:
    """Names become file names, on every system and in both directions."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name):
        raise InputError(
            f"'{name}' cannot name a {what} of an atlas. Use up to 64 letters, digits, '-' and '_', and begin with a "
            "letter or digit."
        )


def _plain_ids(name: str, ids: np.ndarray) -> np.ndarray:
    """As int64 or text; refused where they are neither, or name a state twice."""
    ids = plain_ids(f"ids of '{name}'", ids)
    found, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        twice, many = ", ".join(map(str, found[counts > 1][:5])), int((counts > 1).sum())
        raise InputError(
            f"The ids of '{name}' name {many} state{'s' * (many > 1)} more than once: {twice}. "
            "Keep one row for each state."
        )
    return ids
