"""A member that comes later: it is fitted to the finished frame on anchors that it has seen, and sends its map alone.

The others stay as they are, bit for bit; they have the newcomer in their atlas when they give their command again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jepatlas.alignment import Atlas, ChartLatents, save_atlas
from jepatlas.core.errors import InputError
from jepatlas.workflows.federation.maps import Part, add_newcomers, newcomer_part, read_part, together
from jepatlas.workflows.federation.member import Federation, Member
from jepatlas.workflows.federation.offers import Offer
from jepatlas.workflows.federation.parcels import Exchange, read_parcel
from jepatlas.workflows.federation.states import FEWEST, hide

__all__ = ["join", "read_newcomers"]


def join(offer: Offer, member: Member, tell: Callable[[str], None] = lambda _: None) -> Federation:
    """Join a federation that has finished (or wait until it has)."""
    door = member.door
    founders = _founders(door)
    if member.name in founders:
        raise InputError(f"'{member.name}' is a member already: leave out --join to go on, or choose another --name.")
    atlas = together(door.receive("3-maps", founders, read_part))
    _check_seal(door, member, atlas, founders)
    tell(f"{' and '.join(founders)} have an atlas of {len(atlas.anchors.ids)} anchors.")
    hashes = hide(offer.ids, member.phrase)
    rows = np.flatnonzero(np.isin(hashes, atlas.anchors.ids))
    if len(rows) < FEWEST:
        raise InputError(
            f"'{member.name}' has seen {len(rows)} of the {len(atlas.anchors.ids)} anchors, but at least "
            f"{FEWEST} are needed. Does its table name states as the others' do, is --phrase the same, "
            "and are they in the --part that it gives?"
        )
    own = offer.take(rows)
    chart = ChartLatents(member.name, own.h, hashes[rows], groups=own.groups)
    door.send("5-joined", lambda place: save_atlas(newcomer_part(atlas, chart, member.seed), place))
    whole = add_newcomers(atlas, read_newcomers(door, founders))
    save_atlas(whole, member.out / "atlas")
    return Federation(whole, tuple(founders), len(rows), {})


def read_newcomers(door: Exchange, founders: list[str]) -> dict[str, Part]:
    """Of all that have joined by now; nobody is waited for."""
    return door.receive("5-joined", set(door.senders("5-joined")) - set(founders), read_part)


def _founders(door: Exchange) -> list[str]:
    door.wait(lambda: bool(door.senders("4-seals")), lambda: "no finished federation has come")
    first = door.senders("4-seals")[0]
    return list(read_parcel(door.place / "4-seals" / first).content["members"])


def _check_seal(door: Exchange, member: Member, atlas: Atlas, founders: list[str]) -> None:
    """The atlas is written here, and must be the one that all founders speak of."""
    seal = save_atlas(atlas, member.out / "atlas")
    for name, one in door.receive("4-seals", founders, read_parcel).items():
        if one.content.get("atlas") != seal:
            raise InputError(
                f"{door.place / '3-maps'} has been changed: it gives another atlas than the one that "
                f"'{name}' sealed. Ask the members to put back what they sent."
            )
