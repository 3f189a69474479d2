"""The first round: who is a member, and which states each has, by their hashes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.workflows.federation.member import Member
from jepatlas.workflows.federation.parcels import Exchange, Parcel, read_parcel, write_parcel
from jepatlas.workflows.federation.states import as_bytes

__all__ = ["Tell", "announce"]

Tell = Callable[[str], None]


def announce(door: Exchange, member: Member, hashes: np.ndarray, controls: list[str], tell: Tell) -> dict[str, Parcel]:
    """Say which states this member has and which controls it would send, and wait until as many have as there are to
    be."""
    names, terms = _settled(door), member.terms | {"controls": controls}
    before = [name for name in names or door.senders("1-states") if name != member.name]
    if names is None and len(before) >= member.members:
        raise InputError(
            f"{member.exchange} has its {member.members} members already: {', '.join(before)}. Join them "
            "when they have finished (--join), or choose a new exchange."
        )
    door.send("1-states", lambda place: write_parcel(place, terms, {"states": as_bytes(hashes)}))
    own = read_parcel(door.kept / "1-states")
    if any(own.content.get(key) != value for key, value in terms.items()) or not np.array_equal(
        own.arrays["states"], as_bytes(hashes)
    ):
        raise InputError(
            f"{member.out} is of a federation with other settings or states than these. Choose another "
            "--out, or give the command that it began with."
        )
    if names is None:
        tell(f"{member.name} announced {len(hashes)} states in {member.exchange}, and waits for others.")
        door.wait(
            lambda: len(door.senders("1-states")) >= member.members,
            lambda: f"only {' and '.join(door.senders('1-states'))} of {member.members} members have come",
        )
        names = door.senders("1-states")
        if len(names) > member.members:
            raise InputError(
                f"{len(names)} members are in {member.exchange} ({', '.join(names)}), but --members is "
                f"{member.members}. Start all anew with --members {len(names)} in a new "
                "exchange."
            )
    return door.receive("1-states", names, read_parcel)


def _settled(door: Exchange) -> list[str] | None:
    """The members, where this one has met them before; who comes later does not change them."""
    sent = door.kept / "2-latents"
    return list(read_parcel(sent).content["members"]) if sent.is_dir() else None
