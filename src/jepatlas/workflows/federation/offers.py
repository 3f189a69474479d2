"""What a member has: latents of its own states, from its run or from a file; and what of it never leaves its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from jepatlas.alignment import pca_control, untrained_control
from jepatlas.core.errors import InputError
from jepatlas.core.sealing import sha256_of_bytes
from jepatlas.core.seeding import numpy_generator
from jepatlas.recipes import Part
from jepatlas.workflows.align import read_latents
from jepatlas.workflows.align.align_models import PCA, RANDOM, UNTRAINED
from jepatlas.workflows.vision import VisionAgent, latents_of, load_agent

__all__ = ["CONTROLS", "Offer", "offer_of"]

CONTROLS = {"pca": PCA, "untrained": UNTRAINED, "random": RANDOM}
"""What a control's file is called, and what it is. The last stands in for the one before, where a member has none."""


@dataclass(frozen=True)
class Offer:
    """Latents by state, with groups and controls where there are any."""

    ids: np.ndarray  # (n,)
    h: np.ndarray  # (n, d) float32
    groups: np.ndarray | None = None  # (n,)
    controls: Mapping[str, np.ndarray] = field(default_factory=dict)  # each (n, k)
    stays: Mapping[str, str] = field(default_factory=dict)
    """What is never sent, and how much there is of it."""

    def __post_init__(self) -> None:
        states, counts = np.unique(self.ids, return_counts=True)
        if (counts > 1).any():
            raise InputError(
                f"{(counts > 1).sum()} states have more than one latent, the first '"
                f"{states[counts > 1][0]}'. Keep one image of each state in the view."
            )

    def take(self, rows: np.ndarray) -> Offer:
        """Some of the states, in this order."""
        groups = None if self.groups is None else self.groups[rows]
        return replace(
            self,
            ids=self.ids[rows],
            h=self.h[rows],
            groups=groups,
            controls={name: one[rows] for name, one in self.controls.items()},
        )


def made_without_learning(raw: np.ndarray | None, untrained: np.ndarray | None, width: int) -> dict[str, np.ndarray]:
    """Controls as wide as the latents, where they can be: (n, k) each.

    The random network is drawn by a hash of the raw input, so that no other member can draw it again and ask what input
    gives these numbers. Principal directions stay here for the same reason. `untrained`, latents of the member's own
    network before its first step, is not so hidden: they are random features of its input, and whoever knows the recipe
    and its seed can draw that network again.
    """
    made = {} if untrained is None else {"untrained": untrained}
    if raw is not None:
        secret = sha256_of_bytes(np.ascontiguousarray(raw).tobytes())
        made["pca"] = pca_control(raw, width, np.arange(len(raw)))
        made["random"] = untrained_control(raw, width, numpy_generator(0, f"untrained {secret}"))
    return {name: rows.astype(np.float32) for name, rows in made.items()}


def offer_of(source: Path, part: Part | None = None) -> Offer:
    """Of a run of `jepatlas train vision` (states held out, unless `part` says otherwise), or of a file of latents."""
    if source.is_dir():
        return _of_agent(load_agent(source), part or "held")
    if not source.exists():
        raise InputError(f"There is no run folder or file {source}.")
    if part is not None:
        raise InputError(f"--part chooses among the states of a run, but {source} is a file: all of its rows are used.")
    return _of_file(source)


def _of_agent(agent: VisionAgent, part: Part) -> Offer:
    found, seen = latents_of(agent, part, untrained=True), agent.seen
    weights = sum(one.numel() * one.element_size() for one in agent.objective.parameters())
    stays = {
        "images": f"{len(seen.images):,} of {seen.images.nbytes:,} bytes",
        "weights and gradients": f"{weights:,} bytes of weights",
        "labels": _count(seen.table.column("label") if "label" in seen.table.columns else None),
    }
    controls = made_without_learning(found["raw"], found["untrained"], found["h"].shape[1])
    return Offer(found["ids"], found["h"].astype(np.float32), found.get("groups"), controls, stays)


def _of_file(path: Path) -> Offer:
    given = read_latents(path)
    if given.ids is None:
        raise InputError(f"{path} has no ids: which states do its rows show? Store their names as 'ids'.")
    stays = {"raw input": _count(given.raw), "labels": _count(given.labels)}
    controls = made_without_learning(given.raw, given.untrained, given.h.shape[1])
    return Offer(given.ids, given.h.astype(np.float32), given.groups, controls, stays)


def _count(array: np.ndarray | None) -> str:
    return "there are none" if array is None else f"{len(array):,}"
