"""The rounds of a federation, the same for every member; each waits for all members before the next begins.

1-states   hashes of the ids of its states               all know which states are shared
2-latents  latents of the shared states, and controls    all fit the same frame
3-maps     its chart: the map into that frame            all assemble the same atlas
4-seals    the seal of that atlas, and of all it read    all know that their atlases are equal
5-joined   the chart of a member that joins later        it was fitted to the anchors that the member has

A member that was stopped continues when it is called again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from jepatlas.alignment import Atlas, ChartLatents, save_atlas
from jepatlas.core.errors import InputError
from jepatlas.core.files import read_json, write_json
from jepatlas.core.records import Verdict
from jepatlas.workflows.federation.agreed_states import (
    FEWEST,
    agree,
    as_bytes,
    common_groups,
    from_bytes,
    hide,
    number_groups,
)
from jepatlas.workflows.federation.exchange_folder import Exchange, Message, read_message, transcript, write_message
from jepatlas.workflows.federation.federated_atlas import (
    Part,
    add_newcomers,
    assemble,
    judge_charts,
    newcomer_part,
    own_part,
    read_part,
)
from jepatlas.workflows.federation.member_data import CONTROLS, Federation, Member, Offer

__all__ = ["federate", "join"]

Notify = Callable[[str], None]
"""Called with a message about the progress."""


def federate(offer: Offer, member: Member, notify: Notify = lambda _: None) -> Federation:
    """Take part in a federation; the common atlas is written to `member.out / "atlas"`."""
    channel = member.channel
    hashes = hide(offer.ids, member.phrase)
    kinds = sorted(offer.controls) if member.controls else []
    announced = _announce(member, np.sort(hashes), kinds, notify)
    names = sorted(announced)
    _check_terms({name: one.content for name, one in announced.items()})
    limit = min(int(one.content["anchors"]) for one in announced.values())
    states = agree({name: from_bytes(one.arrays["states"]) for name, one in announced.items()}, limit)
    notify(f"{' and '.join(names)} share {len(states)} states.")

    order = np.argsort(hashes)
    shared = offer.take(order[np.searchsorted(hashes, states, sorter=order)])
    sent_controls = {kind: shared.controls[kind] for kind in _controls_to_send(announced, member, notify)}
    received = _exchange_latents(member, replace(shared, controls=sent_controls), names)
    charts = _charts(received, "latents", states)
    _check_unchanged(member, transcript(announced, received))

    channel.send("3-maps", lambda place: save_atlas(own_part(charts, member.name, member.seed), place))
    parts = channel.receive("3-maps", names, read_part)
    atlas = assemble(parts)
    _compare_seals(member, atlas, transcript(announced, received, parts), names)
    notify("All members have the same atlas, bit for bit.")
    if newcomers := _read_newcomers(channel, names):
        atlas = add_newcomers(atlas, newcomers)
        save_atlas(atlas, member.out / "atlas")
    return Federation(atlas, tuple(names), len(states), _control_verdicts(received, states, member.seed))


def join(offer: Offer, member: Member, notify: Notify = lambda _: None) -> Federation:
    """Join a finished federation (or wait until it has finished).

    The new member is fitted to the frame on the anchors it has, and sends its map only. The atlas of the other members
    includes it when they give their command again; nothing else changes for them.
    """
    channel = member.channel
    channel.wait(lambda: bool(channel.senders("4-seals")), lambda: "no finished federation has come")
    first = channel.senders("4-seals")[0]
    founders = list(read_message(channel.place / "4-seals" / first).content["members"])
    if member.name in founders:
        raise InputError(
            f"'{member.name}' is a member already. Leave out --join to continue, or choose another --name."
        )
    atlas = assemble(channel.receive("3-maps", founders, read_part))
    _check_founders_seal(member, atlas, founders)
    notify(f"{' and '.join(founders)} have an atlas of {len(atlas.anchors.ids)} anchors.")
    hashes = hide(offer.ids, member.phrase)
    rows = np.flatnonzero(np.isin(hashes, atlas.anchors.ids))
    if len(rows) < FEWEST:
        raise InputError(
            f"'{member.name}' has {len(rows)} of the {len(atlas.anchors.ids)} anchors, but at least {FEWEST} are "
            "needed. Check that its table names states as the others' do, that --phrase is the same, and that the "
            "anchors are in its --part."
        )
    own = offer.take(rows)
    chart = ChartLatents(member.name, own.h, hashes[rows], groups=own.groups)
    channel.send("5-joined", lambda place: save_atlas(newcomer_part(atlas, chart, member.seed), place))
    whole = add_newcomers(atlas, _read_newcomers(channel, founders))
    save_atlas(whole, member.out / "atlas")
    return Federation(whole, tuple(founders), len(rows), {})


# --- round 1: states ---


def _announce(member: Member, hashes: np.ndarray, controls: list[str], notify: Notify) -> dict[str, Message]:
    """Announce states and controls, and wait for the other members."""
    channel = member.channel
    names = _known_members(channel)
    terms = member.terms | {"controls": controls}
    others = [name for name in names or channel.senders("1-states") if name != member.name]
    if names is None and len(others) >= member.members:
        raise InputError(
            f"{member.exchange} has its {member.members} members already: {', '.join(others)}. Join them when they "
            "have finished (--join), or choose a new exchange."
        )
    channel.send("1-states", lambda place: write_message(place, terms, {"states": as_bytes(hashes)}))
    own = read_message(channel.kept / "1-states")
    same_terms = all(own.content.get(key) == value for key, value in terms.items())
    if not same_terms or not np.array_equal(own.arrays["states"], as_bytes(hashes)):
        raise InputError(
            f"{member.out} belongs to a federation with other settings or states. Choose another --out, or give the "
            "command that it began with."
        )
    if names is None:
        notify(f"{member.name} announced {len(hashes)} states in {member.exchange} and waits for others.")
        channel.wait(
            lambda: len(channel.senders("1-states")) >= member.members,
            lambda: f"only {' and '.join(channel.senders('1-states'))} of {member.members} members have come",
        )
        names = channel.senders("1-states")
        if len(names) > member.members:
            raise InputError(
                f"{len(names)} members are in {member.exchange} ({', '.join(names)}), but --members is "
                f"{member.members}. Start all again with --members {len(names)} in a new exchange."
            )
    return channel.receive("1-states", names, read_message)


def _known_members(channel: Exchange) -> list[str] | None:
    """The members if this one has sent latents already; members that arrive later do not change them."""
    sent = channel.kept / "2-latents"
    return list(read_message(sent).content["members"]) if sent.is_dir() else None


def _check_terms(announced: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise InputError if members have different settings, with which their atlases would differ."""
    for key in ("members", "seed"):
        given = {name: one.get(key) for name, one in announced.items()}
        if len(set(given.values())) > 1:
            values = ", ".join(f"{name} {value}" for name, value in given.items())
            raise InputError(
                f"Members disagree on --{key} ({values}). Start all with the same value, in a new exchange and with a "
                "new --out."
            )


# --- round 2: latents ---


def _controls_to_send(announced: Mapping[str, Message], member: Member, notify: Notify) -> list[str]:
    """The controls that this member sends; none unless all members do.

    Controls of one member alone would reveal its inputs without a comparison. Random networks are not needed if all
    members have untrained ones.
    """
    given = {name: one.content.get("controls") or [] for name, one in announced.items()}
    without = sorted(name for name, kinds in given.items() if not kinds)
    if member.controls and without:
        notify(f"Controls are not sent, because {' and '.join(without)} gave none (--controls).")
    if without:
        return []
    random_needed = not all("untrained" in kinds for kinds in given.values())
    return [kind for kind in given[member.name] if kind != "random" or random_needed]


def _exchange_latents(member: Member, shared: Offer, names: list[str]) -> dict[str, Message]:
    """Send latents of the agreed states, in the order of their hashes, and receive those of all members."""
    channel = member.channel
    arrays = {"latents": shared.h}
    if member.groups and shared.groups is not None:
        arrays["groups"] = number_groups(shared.groups)
    arrays |= shared.controls
    content = {"member": member.name, "members": names}
    channel.send("2-latents", lambda place: write_message(place, content, arrays))
    received = channel.receive("2-latents", names, read_message)
    for name, one in received.items():
        _check_latents(name, one, names, len(shared.ids))
    own = received[member.name].arrays["latents"]
    if own.shape != shared.h.shape or not np.allclose(own, shared.h, rtol=1e-2, atol=1e-2 * float(shared.h.std())):
        raise InputError(
            f"{channel.kept} holds latents of another agent, or of this one at another time. Choose another --out and "
            "a new exchange."
        )
    return received


def _check_latents(name: str, received: Message, names: list[str], rows: int) -> None:
    if received.content.get("members") != names:
        raise InputError(
            f"'{name}' began with other members than {', '.join(names)}. Check --members, and start all again in a new "
            "exchange."
        )
    for kind, array in received.arrays.items():
        if len(array) != rows or array.ndim != (1 if kind == "groups" else 2):
            raise InputError(
                f"'{name}' sent {kind} of shape {array.shape} for {rows} agreed states. Delete what it sent, and start "
                "it again."
            )


def _charts(received: Mapping[str, Message], kind: str, states: np.ndarray) -> list[ChartLatents]:
    """Charts of all members that sent this kind of rows, in order of names."""
    groups = common_groups([one.arrays["groups"] for one in received.values() if "groups" in one.arrays])
    return [
        ChartLatents(name, one.arrays[kind], states, groups=groups)
        for name, one in sorted(received.items())
        if kind in one.arrays
    ]


def _check_unchanged(member: Member, read: str) -> None:
    """Store what the map is fitted to before it is sent; after a restart, it must be the same."""
    file = member.out / "fitted-to.json"
    if not (member.channel.kept / "3-maps").exists():
        write_json(file, {"read": read})
    elif file.exists() and read_json(file).get("read") != read:
        raise InputError(
            f"'{member.name}' fitted its map to other files than those in {member.exchange}: they have changed since. "
            "Start all again in a new exchange."
        )


# --- rounds 3 to 5: maps, seals, later members ---


def _compare_seals(member: Member, atlas: Atlas, read: str, names: list[str]) -> None:
    channel = member.channel
    seal = save_atlas(atlas, member.out / "atlas")
    content = {"member": member.name, "members": names, "atlas": seal, "read": read}
    channel.send("4-seals", lambda place: write_message(place, content))
    seals = {name: one.content for name, one in channel.receive("4-seals", names, read_message).items()}
    others = sorted(name for name, one in seals.items() if (one.get("atlas"), one.get("read")) != (seal, read))
    if others:
        raise InputError(
            f"{' and '.join(others)} read other files or have another atlas than '{member.name}': exchanged files have "
            "changed. Start all again in a new exchange."
        )


def _check_founders_seal(member: Member, atlas: Atlas, founders: list[str]) -> None:
    """Write the atlas, and check that it is the one that all founders sealed."""
    seal = save_atlas(atlas, member.out / "atlas")
    for name, one in member.channel.receive("4-seals", founders, read_message).items():
        if one.content.get("atlas") != seal:
            raise InputError(
                f"{member.exchange / '3-maps'} has been changed: its atlas is not the one that '{name}' sealed. Ask "
                "the members to restore what they sent."
            )


def _read_newcomers(channel: Exchange, founders: list[str]) -> dict[str, Part]:
    """Parts of all members that have joined so far, without waiting."""
    return channel.receive("5-joined", set(channel.senders("5-joined")) - set(founders), read_part)


def _control_verdicts(received: Mapping[str, Message], states: np.ndarray, seed: int) -> dict[str, dict[str, Verdict]]:
    """Verdicts on atlases of the controls.

    A random network replaces the untrained ones between members of which one did not send its own.
    """
    found: dict[str, dict[str, Verdict]] = {}
    for kind in CONTROLS:
        charts = _charts(received, kind, states)
        if len(charts) > 1:
            verdicts = judge_charts(charts, seed)
            found[kind] = {one.name: one for one in verdicts if one.name.startswith("translation.")}
    random = found.pop("random", {})
    found["random"] = {name: one for name, one in random.items() if name not in found.get("untrained", {})}
    return {kind: verdicts for kind, verdicts in found.items() if verdicts}
