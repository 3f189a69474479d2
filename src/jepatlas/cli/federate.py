"""Meet other agents that never show their data: one command for each, one folder between them, one atlas for all."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import numpy as np
import tyro

from jepatlas.cli.options import console_for, emit, parse, say, say_advice, verdict_table
from jepatlas.cli.tables import show_table
from jepatlas.core.arrays import write_arrays
from jepatlas.core.records import Record
from jepatlas.reporting import write_report
from jepatlas.workflows.federation import (
    Absent,
    Federation,
    Member,
    Offer,
    federate,
    federation_record,
    hide,
    join,
    offer_of,
)
from jepatlas.workflows.vision.latents import Part


@dataclass(frozen=True)
class Federate:
    """Build a common atlas with agents of others, through a folder that all see, and show them no data.

    Example: jepatlas federate runs/left --exchange meet --name ada --out runs/ada

    Example: jepatlas federate runs/right --exchange meet --name ben --out runs/ben

    One command for each member, in terminals or on machines of their own. Members announce hashes of their states' ids,
    send latents of the states that all of them have (with the number of each state's group), and each its map into the
    common frame. Images, labels, gradients and weights stay where they are. All end with the same atlas, and a report
    that lists what was exchanged, byte by byte. A command that was stopped goes on when it is given again.

    Meet those whom you trust with latents: a partner who announces ids that it has only guessed receives the latents of
    those states, and latents may reveal the inputs that they were made from.
    """

    source: tyro.conf.Positional[Path]
    """A run of 'jepatlas train vision', or a file of latents h with ids (as 'jepatlas encode' writes them)."""
    exchange: Path
    """The folder that all members see: on one machine, on a network disk, or kept alike by a tool for that."""
    name: str
    """What this member is called in the atlas."""
    members: int = 2
    """How many there are to be, the same for all; who joins later takes them as they are."""
    join: bool = False
    """Join a federation that has finished: only a map is sent, and the others stay as they are."""
    part: Part | None = None
    """Which states of a run to announce: those held out (by default), those learned from, or all."""
    anchors: int = 1024
    """Send latents of at most so many states; the smallest number of all members holds."""
    phrase: str = ""
    """Agreed on by another way, the same for all: with it, only members can test whether an id that they guess is in
    the folder; without it, everybody who sees the folder can."""
    controls: bool = False
    """Also send what the raw input of agreed states gives without learning, for maps to be held against: principal
    components, latents of your network before its first step, and of a random one. It tells how alike inputs are, and
    whoever knows your recipe and seed can draw that first network again and look for inputs that give these latents.
    Nothing of it is sent unless all members give this."""
    groups: bool = True
    """Also send which agreed states belong together, by number: maps are then judged on whole groups that they were not
    fitted to. Without, a near copy of a state that is kept back may be among those fitted to."""
    timeout: float = 3600.0
    """Seconds to wait for the others, in each round."""
    seed: int = 0
    """Which agreed states are kept back to judge by, the same for all."""
    out: Path | None = None
    """This member's own folder; by default runs/federation-NAME."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


def main(words: list[str]) -> int:
    options = parse(Federate, "federate", words)
    console = console_for(options.json)
    member = _member(options)
    offer = offer_of(options.source, options.part)
    try:
        meet = join if options.join else federate
        found = meet(offer, member, lambda text: say(console, text))
    except Absent as error:
        print(f"jepatlas federate: {error}", file=sys.stderr)
        return 1
    record = federation_record(found, offer, member)
    page = _keep(record, found, offer, member)
    place = member.out / "atlas"
    emit(options.json, {"atlas": str(place), "report": str(page)} | record.to_json())
    say(console, record.summary)
    show_table(console, record.tables[0])
    console.print(verdict_table("What the atlas is worth", record.verdicts))
    say_advice(console, record.verdicts)
    say(console, f"Atlas: {place}\nReport, with all that was exchanged: {page}")
    say(console, f"Next: jepatlas atlas show {quote(str(place))}")
    return 0


def _member(options: Federate) -> Member:
    return Member(
        options.name,
        options.exchange,
        options.out or Path("runs") / f"federation-{options.name}",
        options.members,
        options.anchors,
        options.phrase,
        options.controls,
        options.groups,
        options.timeout,
        options.seed,
    )


def _keep(record: Record, found: Federation, offer: Offer, member: Member) -> Path:
    """The record and its page; and which of its own states the anchors are, for this member only."""
    hashes = hide(offer.ids, member.phrase)
    known = np.flatnonzero(np.isin(hashes, found.atlas.anchors.ids))
    write_arrays(member.out / "anchors.csv", {"state": offer.ids[known], "anchor": hashes[known]})
    record.save(member.out, "federation")
    return write_report([member.out], member.out / "report.html", title=record.title, seed=member.seed)
