"""Members of a federation: settings, data that they can send, and data that never leaves their folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.alignment import Atlas, pca_control, untrained_control
from jepatlas.alignment.atlas import check_name
from jepatlas.core.errors import InputError
from jepatlas.core.records import Verdict
from jepatlas.core.sealing import sha256_of_bytes
from jepatlas.core.seeding import numpy_generator
from jepatlas.recipes import Part
from jepatlas.workflows.align import PCA, RANDOM, UNTRAINED, read_latents
from jepatlas.workflows.federation.agreed_states import FEWEST
from jepatlas.workflows.federation.exchange_folder import Exchange
from jepatlas.workflows.vision import VisionAgent, latents_of, load_agent

__all__ = ["CONTROLS", "Federation", "Member", "Offer", "offer_of"]

CONTROLS = {"pca": PCA, "untrained": UNTRAINED, "random": RANDOM}
"""Controls by file name. The random network replaces the untrained one if a member has none."""


@dataclass(frozen=True)
class Member:
    """Settings of one member. There is no server, and all members are equal."""

    name: str
    """Name of its chart and of its folders in the exchange."""
    exchange: Path
    """The folder that all members share."""
    out: Path
    """Its own folder."""
    members: int = 2
    """Number of members."""
    anchors: int = 1024
    """Largest number of states whose latents are sent; the smallest number of all members applies."""
    phrase: str = ""
    """Secret of the members, with which ids of states are hashed."""
    controls: bool = False
    """Whether to send controls. They are sent only if all members send them."""
    groups: bool = True
    """Whether to send group numbers of agreed states."""
    timeout: float = 3600.0
    """Seconds to wait for partners in each round."""
    seed: int = 0
    """Selects the anchors that are held out; the same for all members."""

    def __post_init__(self) -> None:
        check_name("member", self.name)
        if self.members < 2:
            raise InputError(f"'members' must be at least 2, but {self.members} was given.")
        if self.anchors < FEWEST:
            raise InputError(f"'anchors' must be at least {FEWEST}, but {self.anchors} was given.")
        if self.timeout <= 0:
            raise InputError(f"'timeout' must be above 0 seconds, but {self.timeout:g} was given.")
        if self.out.resolve() == self.exchange.resolve():
            raise InputError(f"{self.out} is the exchange folder, which all members see. Choose another --out.")

    @property
    def channel(self) -> Exchange:
        """The exchange folder as this member sees it."""
        return Exchange(self.exchange, self.out / "sent", self.name, self.timeout)

    @property
    def terms(self) -> dict[str, Any]:
        """The settings that it announces."""
        return {"member": self.name, "members": self.members, "anchors": self.anchors, "seed": self.seed}


@dataclass(frozen=True)
class Federation:
    """The result for one member."""

    atlas: Atlas
    founders: tuple[str, ...]
    agreed: int
    """Number of states whose latents the founders sent, or by which a later member was placed."""
    controls: Mapping[str, Mapping[str, Verdict]]
    """Verdicts on the same maps between controls, by control and translation."""

    @property
    def shortage_note(self) -> str:
        """A sentence if there are too few agreed states to determine the maps; otherwise empty."""
        widest = max(chart.width for chart in self.atlas.charts)
        if self.agreed > widest:
            return ""
        return (
            f"{self.agreed} agreed states do not determine maps of latents with {widest} dimensions: share more "
            "states, and raise --anchors."
        )


@dataclass(frozen=True)
class Offer:
    """Latents of a member by state, with groups and controls if there are any."""

    ids: np.ndarray  # (n,)
    h: np.ndarray  # (n, d) float32
    groups: np.ndarray | None = None  # (n,)
    controls: Mapping[str, np.ndarray] = field(default_factory=dict)  # each (n, k)
    stays: Mapping[str, str] = field(default_factory=dict)
    """Data that is never sent, with its amount."""

    def __post_init__(self) -> None:
        states, counts = np.unique(self.ids, return_counts=True)
        repeated = states[counts > 1]
        if len(repeated):
            raise InputError(
                f"{len(repeated)} states have more than one latent, for example '{repeated[0]}'. Keep one image of "
                "each state in the view."
            )

    def take(self, rows: np.ndarray) -> Offer:
        """The given states, in this order."""
        groups = None if self.groups is None else self.groups[rows]
        controls = {name: one[rows] for name, one in self.controls.items()}
        return replace(self, ids=self.ids[rows], h=self.h[rows], groups=groups, controls=controls)


def offer_of(source: Path, part: Part | None = None) -> Offer:
    """Data of a run of `jepatlas train vision` (held-out states unless `part` is given), or of a file of latents."""
    if source.is_dir():
        return _of_agent(load_agent(source), part or "held")
    if not source.exists():
        raise InputError(f"There is no run folder or file {source}.")
    if part is not None:
        raise InputError(f"--part selects states of a run, but {source} is a file, of which all rows are used.")
    return _of_file(source)


def _of_agent(agent: VisionAgent, part: Part) -> Offer:
    found, seen = latents_of(agent, part, untrained=True), agent.seen
    weights = sum(one.numel() * one.element_size() for one in agent.objective.parameters())
    stays = {
        "images": f"{len(seen.images):,} of {seen.images.nbytes:,} bytes",
        "weights and gradients": f"{weights:,} bytes of weights",
        "labels": _count(seen.table.column("label") if "label" in seen.table.columns else None),
    }
    controls = _controls(found["raw"], found["untrained"], found["h"].shape[1])
    return Offer(found["ids"], found["h"].astype(np.float32), found.get("groups"), controls, stays)


def _of_file(path: Path) -> Offer:
    given = read_latents(path)
    if given.ids is None:
        raise InputError(f"{path} has no ids of the states of its rows. Store them as 'ids'.")
    stays = {"raw input": _count(given.raw), "labels": _count(given.labels)}
    controls = _controls(given.raw, given.untrained, given.h.shape[1])
    return Offer(given.ids, given.h.astype(np.float32), given.groups, controls, stays)


def _controls(raw: np.ndarray | None, untrained: np.ndarray | None, width: int) -> dict[str, np.ndarray]:
    """Controls (n, k) as wide as the latents, as far as they can be computed.

    The random network is seeded by a hash of the raw input, so that no other member can recreate it and search for
    inputs that give these numbers. Principal directions are not sent for the same reason. `untrained`, latents of the
    member's own network before training, has no such protection: anyone with the recipe and the seed can recreate that
    network.
    """
    found = {} if untrained is None else {"untrained": untrained}
    if raw is not None:
        secret = sha256_of_bytes(np.ascontiguousarray(raw).tobytes())
        found["pca"] = pca_control(raw, width, np.arange(len(raw)))
        found["random"] = untrained_control(raw, width, numpy_generator(0, f"untrained {secret}"))
    return {name: rows.astype(np.float32) for name, rows in found.items()}


def _count(array: np.ndarray | None) -> str:
    return "none" if array is None else f"{len(array):,}"
