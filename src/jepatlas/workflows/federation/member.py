"""A member of a federation: what it is called, where it meets the others, and what all must have agreed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jepatlas.alignment import Atlas
from jepatlas.alignment.atlas.chart import check_name
from jepatlas.core.errors import InputError
from jepatlas.core.records import Verdict
from jepatlas.workflows.federation.parcels import Exchange
from jepatlas.workflows.federation.states import FEWEST

__all__ = ["Federation", "Member", "refuse_other_terms"]


@dataclass(frozen=True)
class Member:
    """One process of a federation; there is no server, and no member is more than another."""

    name: str
    """What its chart is called; folders in the exchange have this name."""
    exchange: Path
    """The one folder that all members see."""
    out: Path
    """Its own folder."""
    members: int = 2
    """How many there are to be."""
    anchors: int = 1024
    """Latents of at most so many states are sent; the smallest number of all members holds."""
    phrase: str = ""
    """Known to members only; ids of states are hashed with it."""
    controls: bool = False
    """Whether to send what raw input gives without learning, beside the latents; it is sent where all would."""
    groups: bool = True
    """Whether to send which agreed states belong together, by number."""
    timeout: float = 3600.0
    """Seconds to wait for partners in each round."""
    seed: int = 0
    """Which anchors are kept back to judge by; the same for all."""

    def __post_init__(self) -> None:
        check_name("member", self.name)
        if self.members < 2:
            raise InputError(f"A federation has at least 2 members, but {self.members} was given.")
        if self.anchors < FEWEST:
            raise InputError(f"At least {FEWEST} anchors are needed, but at most {self.anchors} were allowed.")
        if self.timeout <= 0:
            raise InputError(f"A timeout is a number of seconds above 0, but {self.timeout:g} was given.")
        if self.out.resolve() == self.exchange.resolve():
            raise InputError(f"{self.out} is the exchange, which all members see. Choose another --out.")

    @property
    def door(self) -> Exchange:
        return Exchange(self.exchange, self.out / "sent", self.name, self.timeout)

    @property
    def terms(self) -> dict[str, Any]:
        """What it announces of its settings."""
        return {"member": self.name, "members": self.members, "anchors": self.anchors, "seed": self.seed}


@dataclass(frozen=True)
class Federation:
    """What a member ends with."""

    atlas: Atlas
    founders: tuple[str, ...]
    agreed: int
    """States whose latents the founders sent; of one who joined later, those that it was placed by."""
    controls: Mapping[str, Mapping[str, Verdict]]
    """Verdicts of the same maps between what was not trained on anything, by control and translation."""

    @property
    def scarce(self) -> str:
        """What is to be said where the agreed states do not determine maps of latents so wide."""
        widest = max(chart.width for chart in self.atlas.charts)
        if self.agreed > widest:
            return ""
        return (
            f"{self.agreed} agreed states do not determine maps of latents {widest} wide: agree on more, by states "
            "that all have seen and by --anchors."
        )


def refuse_other_terms(announced: Mapping[str, Mapping[str, Any]]) -> None:
    """Members that started with different settings would end with different atlases."""
    for key in ("members", "seed"):
        given = {name: one.get(key) for name, one in announced.items()}
        if len(set(given.values())) > 1:
            said = ", ".join(f"{name} {value}" for name, value in given.items())
            raise InputError(
                f"Members disagree on --{key} ({said}). Start all with the same, in a new exchange and "
                "with a new --out."
            )
