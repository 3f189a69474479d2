"""`jepatlas federate`: build an atlas with other people's agents, through a shared folder."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, ClassVar

import tyro

from jepatlas.cli.options import parse
from jepatlas.cli.output import console_for, defer_interrupts, emit, say, say_advice, show_table, verdict_table
from jepatlas.recipes import Part

if TYPE_CHECKING:
    from jepatlas.core.records import Record
    from jepatlas.workflows.federation import Federation, Member, Offer


@dataclass(frozen=True)
class Federate:
    """Build an atlas with other people's agents, through a shared folder, without sharing data.

    Example: jepatlas federate runs/left --exchange meet --name ada --out runs/ada

    Example: jepatlas federate runs/right --exchange meet --name ben --out runs/ben

    Every member runs one command, in its own terminal or on its own machine. Members exchange hashes of their states'
    ids, latents of the states that all of them have (with the number of each state's group), and their maps into the
    common frame. Images, labels, gradients and weights are not sent. All members get the same atlas, and a report of
    every byte that was exchanged. To continue an interrupted command, repeat it.

    Only federate with partners whom you trust with latents: a partner that announces guessed ids receives the latents
    of those states, and latents may reveal the inputs that they were computed from.
    """

    most_used: ClassVar[str] = "exchange name members join part groups phrase anchors timeout out"

    source: tyro.conf.Positional[Path]
    """A run of 'jepatlas train vision', or a file of latents h with ids, as 'jepatlas encode' writes it."""
    exchange: Path
    """The shared folder: on one machine, on a network disk, or synchronised by a tool."""
    name: str
    """The name of this member in the atlas."""
    members: int = 2
    """Number of members, the same for all. Ignored with --join."""
    join: bool = False
    """Join a finished federation: only a map is sent, and the other members do not change."""
    part: Part | None = None
    """Which states of a run to announce: held out (default), training states (learnt), or all."""
    anchors: int = 1024
    """Maximal number of states whose latents are sent. The smallest number of all members counts."""
    phrase: str = ""
    """A secret phrase, the same for all members, agreed on elsewhere. With it, only members can test whether a guessed
    id is in the folder; without it, everyone with access to the folder can."""
    controls: bool = False
    """Also send controls for the maps: principal components of the raw inputs of common states, and latents of your
    untrained network and of a random one. They reveal how similar inputs are, and a partner who knows your recipe and
    seed can recreate the untrained network and search for inputs with these latents. They are sent only if all members
    give this option."""
    groups: bool = True
    """Also send the group number of each common state, so that maps are scored on whole held-out groups. Otherwise near
    copies of held-out states may be among those that the maps are fitted on."""
    timeout: float = 3600.0
    """Seconds to wait for the other members, in each round."""
    seed: int = 0
    """Seed of the choice of held-out states, the same for all members."""
    out: Path | None = None
    """The folder of this member; by default runs/federation-NAME."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


def main(args: list[str]) -> int:
    options = parse(Federate, "federate", args)
    with defer_interrupts():
        from jepatlas.workflows.federation import Absent, federate, federation_record, join, offer_of

    console = console_for(options.json)
    member = _member(options)
    offer = offer_of(options.source, options.part)
    meet = join if options.join else federate
    try:
        found = meet(offer, member, lambda text: say(console, text))
    except Absent as error:
        print(f"jepatlas federate: {error}", file=sys.stderr)
        return 1
    record = federation_record(found, offer, member)
    page = _save(record, found, offer, member)
    place = member.out / "atlas"
    emit(options.json, {"atlas": str(place), "report": str(page)} | record.to_json())
    say(console, record.summary)
    show_table(console, record.tables[0])
    console.print(verdict_table("Verdicts on the atlas", record.verdicts, console.width))
    say_advice(console, record.verdicts)
    say(console, f"Atlas: {place}\nReport, with all that was exchanged: {page}")
    say(console, f"Next: jepatlas atlas show {quote(str(place))}")
    return 0


def _member(options: Federate) -> Member:
    from jepatlas.workflows.federation import Member

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


def _save(record: Record, found: Federation, offer: Offer, member: Member) -> Path:
    """Save the record and the report, and, for this member only, which of its states are anchors."""
    import numpy as np

    from jepatlas.core.arrays import write_arrays
    from jepatlas.reporting import write_report
    from jepatlas.workflows.federation import hide

    hashes = hide(offer.ids, member.phrase)
    known = np.flatnonzero(np.isin(hashes, found.atlas.anchors.ids))
    write_arrays(member.out / "anchors.csv", {"state": offer.ids[known], "anchor": hashes[known]})
    record.save(member.out, "federation")
    return write_report([member.out], member.out / "report.html", title=record.title, seed=member.seed)
