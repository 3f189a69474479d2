"""The rounds of a federation, the same for every member; each waits for all before the next begins.

1-states   hashes of the ids of its states               all then know which are shared
2-latents  latents of the shared states, and controls    all then fit the same frame; controls where all give them
3-maps     its chart: the map into that frame            all then put the same atlas together
4-seals    the seal of that atlas, and of all it read    all then know that they are the same
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from jepatlas.alignment import Atlas, ChartLatents, save_atlas
from jepatlas.core.errors import InputError
from jepatlas.core.files import read_json, write_json
from jepatlas.core.records import Verdict
from jepatlas.workflows.federation.announcing import Tell, announce
from jepatlas.workflows.federation.groups import common_groups, numbered
from jepatlas.workflows.federation.joining import read_newcomers
from jepatlas.workflows.federation.maps import add_newcomers, judge_charts, own_part, read_part, together
from jepatlas.workflows.federation.member import Federation, Member, refuse_other_terms
from jepatlas.workflows.federation.offers import CONTROLS, Offer
from jepatlas.workflows.federation.parcels import Exchange, Parcel, read_parcel, transcript, write_parcel
from jepatlas.workflows.federation.states import agree, from_bytes, hide

__all__ = ["federate"]


def federate(offer: Offer, member: Member, tell: Tell = lambda _: None) -> Federation:
    """Meet the others, and end with the atlas in `member.out / "atlas"`; killed and called again, it goes on."""
    door, hashes = member.door, hide(offer.ids, member.phrase)
    announced = announce(door, member, np.sort(hashes), sorted(offer.controls) if member.controls else [], tell)
    names = sorted(announced)
    refuse_other_terms({name: one.content for name, one in announced.items()})
    limit = min(int(one.content["anchors"]) for one in announced.values())
    states = agree({name: from_bytes(one.arrays["states"]) for name, one in announced.items()}, limit)
    tell(f"{' and '.join(names)} share {len(states)} states.")
    shared = offer.take(_rows(hashes, states))
    kinds = _wanted_controls(announced, member, tell)
    told = _latents(door, member, replace(shared, controls={kind: shared.controls[kind] for kind in kinds}), names)
    charts = _charts(told, "latents", states)
    _remember(member, transcript(announced, told))
    door.send("3-maps", lambda place: save_atlas(own_part(charts, member.name, member.seed), place))
    parts = door.receive("3-maps", names, read_part)
    atlas = together(parts)
    _compare_seals(door, member, atlas, transcript(announced, told, parts), names)
    tell("All members have the same atlas, bit for bit.")
    if newcomers := read_newcomers(door, names):
        atlas = add_newcomers(atlas, newcomers)
        save_atlas(atlas, member.out / "atlas")
    return Federation(atlas, tuple(names), len(states), _controls(told, states, member.seed))


def _wanted_controls(announced: Mapping[str, Parcel], member: Member, tell: Tell) -> list[str]:
    """Which of its controls this member sends: of one member alone they would tell of its inputs, and there would be
    nothing to compare them with; and random networks are not needed where all have their own before training."""
    given = {name: one.content.get("controls") or [] for name, one in announced.items()}
    without = sorted(name for name, kinds in given.items() if not kinds)
    if member.controls and without:
        tell(f"Controls are not sent: {' and '.join(without)} gave none (--controls).")
    if without:
        return []
    stand_in = not all("untrained" in kinds for kinds in given.values())
    return [kind for kind in given[member.name] if kind != "random" or stand_in]


def _rows(hashes: np.ndarray, states: np.ndarray) -> np.ndarray:
    order = np.argsort(hashes)
    return order[np.searchsorted(hashes, states, sorter=order)]


def _latents(door: Exchange, member: Member, shared: Offer, names: list[str]) -> dict[str, Parcel]:
    """Send latents of the agreed states, in the order of their hashes; all members' are returned."""
    arrays = {"latents": shared.h}
    if member.groups and shared.groups is not None:
        arrays["groups"] = numbered(shared.groups)
    arrays |= shared.controls
    content = {"member": member.name, "members": names}
    door.send("2-latents", lambda place: write_parcel(place, content, arrays))
    told = door.receive("2-latents", names, read_parcel)
    for name, one in told.items():
        _check_latents(name, one, names, len(shared.ids))
    own = told[member.name].arrays["latents"]
    if own.shape != shared.h.shape or not np.allclose(own, shared.h, rtol=1e-2, atol=1e-2 * float(shared.h.std())):
        raise InputError(
            f"{door.kept} holds latents of another agent, or of this one before it learned on. Choose "
            "another --out and a new exchange."
        )
    return told


def _check_latents(name: str, told: Parcel, names: list[str], rows: int) -> None:
    if told.content.get("members") != names:
        raise InputError(
            f"'{name}' met others than {', '.join(names)}. Did more members come than --members says? "
            "Start all anew in a new exchange."
        )
    for kind, array in told.arrays.items():
        if len(array) != rows or array.ndim != (1 if kind == "groups" else 2):
            raise InputError(
                f"'{name}' sent {kind} of the shape {array.shape} for {rows} agreed states. Delete what "
                "it sent, and let it start anew."
            )


def _charts(told: Mapping[str, Parcel], kind: str, states: np.ndarray) -> list[ChartLatents]:
    """Of all members that sent this kind of rows, in the order of names."""
    groups = common_groups([one.arrays["groups"] for one in told.values() if "groups" in one.arrays])
    return [
        ChartLatents(name, one.arrays[kind], states, groups=groups)
        for name, one in sorted(told.items())
        if kind in one.arrays
    ]


def _remember(member: Member, read: str) -> None:
    """What its map was fitted to, before it is sent: one that was killed must find the same again."""
    file = member.out / "fitted-to.json"
    if not (member.door.kept / "3-maps").exists():
        write_json(file, {"read": read})
    elif file.exists() and read_json(file).get("read") != read:
        raise InputError(
            f"'{member.name}' fitted its map to other files than those that are in {member.exchange} now: "
            "what was exchanged has changed in between. Start all anew in a new exchange."
        )


def _compare_seals(door: Exchange, member: Member, atlas: Atlas, read: str, names: list[str]) -> None:
    seal = save_atlas(atlas, member.out / "atlas")
    content = {"member": member.name, "members": names, "atlas": seal, "read": read}
    door.send("4-seals", lambda place: write_parcel(place, content))
    seals = {name: one.content for name, one in door.receive("4-seals", names, read_parcel).items()}
    if others := sorted(name for name, one in seals.items() if (one.get("atlas"), one.get("read")) != (seal, read)):
        raise InputError(
            f"{' and '.join(others)} read other files or ended with another atlas than '{member.name}': "
            "what was exchanged has changed in between. Start all anew in a new exchange."
        )


def _controls(told: Mapping[str, Parcel], states: np.ndarray, seed: int) -> dict[str, dict[str, Verdict]]:
    """The same atlas and the same judgement, of what was not trained on anything.

    Members' own networks before training are what counts; where one of two did not send it, random networks on the raw
    input stand in for it.
    """
    charts = {kind: _charts(told, kind, states) for kind in CONTROLS}
    found = {
        kind: {one.name: one for one in judge_charts(some, seed) if one.name.startswith("translation.")}
        for kind, some in charts.items()
        if len(some) > 1
    }
    if stand_in := found.pop("random", {}):
        found["random"] = {name: one for name, one in stand_in.items() if name not in found.get("untrained", {})}
    return {kind: judged for kind, judged in found.items() if judged}
