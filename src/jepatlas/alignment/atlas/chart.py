"""Charts: one model in an atlas, with its map to the common frame, F = t + Q S(h), and its certificate.

S, the standardiser, gives coordinates in which charts of one world are rotations of each other: centred latents if a
certificate says that h = Qz, whitened latents otherwise (or if the certificate applies to those).
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

STANDARDISER_LIMIT = 1e7
"""Condition limit of inverse standardisers: whitening keeps variances down to 1e-12 of the largest."""


@dataclass(frozen=True)
class CertificateSummary:
    """The bound of a certificate: min_Q E‖h − Qz‖² ≤ bound, for centred h (or, if `whitened`, for S(h))."""

    bound: Estimate
    identified: bool | None
    """None if the certificate is undecided."""
    whitened: bool = False


@dataclass(frozen=True)
class ChartLatents:
    """Latents (N, d) of one model for the states `ids` (N,), which are unique integers or strings.

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
    """Serialised probe, energy or similar that reads the latents of a chart and is stored with it."""

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
    """Rank of the cross-scatter with other charts (noise counts as well); Q is arbitrary in the other directions."""
    states: int
    """Number of shared states that Q was fitted on."""
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
        """Whether the latents lack exactly one direction, the one that a final layer normalisation removes.

        The covariance is computed from the whitener, so this works for stored atlases; it is False for centred latents.
        """
        if self.tied == self.width:
            return False
        root = self.standardiser.invert(STANDARDISER_LIMIT).raw_weight
        root = root / max(np.abs(root).max(), np.finfo(np.float64).tiny)
        covariance = root @ root.T
        still = np.diag(covariance) <= STANDARDISER_LIMIT**-2 * np.diag(covariance).max()
        covariance[still] = covariance[:, still] = 0  # rounding of constant columns
        return lacks_one_mean(covariance)

    @property
    def full(self) -> int:
        """Largest possible value of `tied`."""
        return self.width - self.normed

    @cached_property
    def into(self) -> LinearMap:
        """The map h → F."""
        return self.standardiser.compose(self.to_frame)

    @cached_property
    def out(self) -> LinearMap:
        """The map F → h: Qᵀ and the inverse standardiser. Directions that the chart lacks become the mean."""
        return self.to_frame.invert().compose(self.standardiser.invert(STANDARDISER_LIMIT))

    def attach(self, attachment: Attachment) -> Chart:
        """A copy with the attachment, which replaces one of the same kind and name."""
        key = (attachment.kind, attachment.name)
        others = tuple(old for old in self.attachments if (old.kind, old.name) != key)
        return replace(self, attachments=(*others, attachment))

    def attachment(self, kind: str, name: str) -> Attachment:
        for one in self.attachments:
            if (one.kind, one.name) == (kind, name):
                return one
        known = ", ".join(f"{one.kind} '{one.name}'" for one in self.attachments) or "none"
        raise InputError(f"The chart '{self.name}' has no {kind} '{name}'. It has: {known}.")


def standardiser(chart: ChartLatents) -> LinearMap:
    """S: centres latents if they are identified by a certificate, otherwise whitens them."""
    certificate = chart.certificate
    if len(chart.latents) < 2:
        raise InputError(f"A chart needs at least 2 states, but '{chart.name}' has {len(chart.latents)}.")
    if (chart.latents == chart.latents[0]).all():
        raise InputError(
            f"The latents of '{chart.name}' are the same for all {len(chart.latents)} states. Check whether the model "
            "has collapsed, and that this is the right file."
        )
    if certificate is not None and certificate.identified and not certificate.whitened:
        d = chart.latents.shape[1]
        return LinearMap(np.eye(d), chart.latents.mean(0), np.zeros(d))
    return whitener(chart.latents)


def check_name(what: str, name: str) -> None:
    """Raise InputError unless the name is a valid file name on every system."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name):
        raise InputError(
            f"'{name}' cannot be the name of a {what}. Use up to 64 letters, digits, '-' and '_', and begin with a "
            "letter or digit."
        )


def _plain_ids(name: str, ids: np.ndarray) -> np.ndarray:
    """Ids as int64 or text; raises InputError for other types and repeated ids."""
    ids = plain_ids(f"ids of '{name}'", ids)
    found, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        repeated = found[counts > 1]
        raise InputError(
            f"The ids of '{name}' name {len(repeated)} state{'s' * (len(repeated) > 1)} more than once: "
            f"{', '.join(map(str, repeated[:5]))}. Keep one row for each state."
        )
    return ids
