"""A chapter of the report: what was sent and received, byte by byte; what was not; and what the maps are worth."""

from __future__ import annotations

import numpy as np

from jepatlas.core.figures import Heatmap, Table
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate, Record, Verdict
from jepatlas.workflows.align import translations_summary
from jepatlas.workflows.align.align_models import IF_NOT_BETTER
from jepatlas.workflows.federation.ledger import Entry, entries, ledger_table
from jepatlas.workflows.federation.member import Federation, Member
from jepatlas.workflows.federation.offers import CONTROLS, Offer

__all__ = ["federation_record"]


def federation_record(found: Federation, offer: Offer, member: Member) -> Record:
    """Of one member: all that it could know."""
    sent, received = _sent(member), _received(member, found)
    beyond = _beyond_controls(found)
    judged = found.atlas.judged or ()
    return Record(
        title=f"Federation of {' and '.join(found.atlas.names)}",
        summary=_summary(found, sent, received),
        provenance=provenance(member.seed) | {"member": member.name, "agreed states": found.agreed},
        verdicts=(*judged, *beyond, *found.atlas.verdicts()),
        figures=(_heatmap(found),),
        tables=(
            _translations(found),
            ledger_table(f"What {member.name} sent", sent),
            ledger_table(f"What {member.name} received", received),
            _not_sent(found, offer, member),
        ),
    )


def _sent(member: Member) -> list[Entry]:
    kept = member.door.kept
    return [
        one
        for step in sorted(kept.iterdir())
        if not step.name.startswith(".")
        for one in entries(step, member.name, step.name)
    ]


def _received(member: Member, found: Federation) -> list[Entry]:
    """What it read of others; one who joined later reads no latents."""
    joined = member.name not in found.founders
    steps = ("3-maps", "4-seals") if joined else ("1-states", "2-latents", "3-maps", "4-seals")
    wanted = [(step, name) for step in steps for name in found.founders]
    wanted += [("5-joined", name) for name in found.atlas.names if name not in found.founders]
    return [
        one
        for step, name in wanted
        if name != member.name
        for one in entries(member.exchange / step / name, name, step)
    ]


def _summary(found: Federation, sent: list[Entry], received: list[Entry]) -> str:
    sizes = [sum(one.size for one in some) for some in (sent, received)]
    made = any(one.what.startswith("control") for one in sent)
    controls = (
        " Controls, what the raw input of agreed states gives without learning, were."
        if made
        else " Nor were controls, what raw input gives without learning: what the members agree on may come from "
        "that alone. Where all may know how alike their inputs are, all give --controls."
    )
    return (
        f"{translations_summary(found.atlas.names, found.atlas.judged or None)} "
        f"{len(found.atlas.names)} members, one atlas, "
        f"{found.agreed} agreed states. Sent: {sizes[0]:,} bytes in {len(sent)} files; received: {sizes[1]:,} bytes in "
        f"{len(received)}. No image, label, gradient or weight was among them.{controls} {found.scarce}"
    ).rstrip()


def _translations(found: Federation) -> Table:
    """Each direction, beside chance and the controls."""
    kinds = [kind for kind in CONTROLS if kind != "random" or kind in found.controls]  # a stand-in need not be there
    rows = []
    for one in _judged(found):
        _, source, target = one.name.split(".")
        others = (found.controls.get(kind, {}).get(one.name) for kind in kinds)
        rows.append(
            [
                f"{source} → {target}",
                _cell(one),
                f"{one.null:.3f}" if one.null is not None else "",
                one.n,
                *("not sent" if other is None else _cell(other) for other in others),
            ]
        )
    columns = [
        "held-out R² (higher is better)",
        "the agents",
        "shuffled",
        "states kept back",
        *(CONTROLS[one] for one in kinds),
    ]
    return Table("What the maps are worth, on agreed states that were kept back", columns, rows)


def _judged(found: Federation) -> list[Verdict]:
    return [one for one in found.atlas.judged or () if one.name.startswith("translation.")]


def _cell(one: Verdict) -> str:
    return f"{one.value:z.3f} [{one.low:z.3f}, {one.high:z.3f}]"


def _beyond_controls(found: Federation) -> list[Verdict]:
    """Whether each translation is better than that of each control."""
    made = []
    for one in _judged(found):
        for kind, judged in found.controls.items():
            if (control := judged.get(one.name)) is not None:
                made.append(_beyond(one, kind, control))
    return made


def _beyond(one: Verdict, kind: str, control: Verdict) -> Verdict:
    _, source, target = one.name.split(".")
    return Verdict.judge(
        f"beyond_{kind}.{source}.{target}",
        Estimate(one.value, one.low, one.high, one.n),
        direction="higher",
        null=one.null,
        threshold=control.high,
        good=f"The agents translate better than {CONTROLS[kind]} (R² {control.value:z.3f}).",
        bad=f"The agents do not beyond doubt translate better than {CONTROLS[kind]} (R² {control.value:z.3f}): "
        f"{IF_NOT_BETTER[CONTROLS[kind]]}",
    )


def _heatmap(found: Federation) -> Heatmap:
    names = found.atlas.names
    values = {one.name: one.value for one in _judged(found)}
    matrix = [[1.0 if a == b else values.get(f"translation.{a}.{b}", np.nan) for b in names] for a in names]
    return Heatmap(
        title="Held-out R² through the common frame",
        matrix=matrix,
        x=names,
        y=names,
        note="Rows are source members, columns are targets. The diagonal is 1 by definition.",
    )


def _not_sent(found: Federation, offer: Offer, member: Member) -> Table:
    rest = len(offer.ids) - found.agreed
    rows = [[what, much] for what, much in offer.stays.items()]
    rows += [
        [
            "ids of states",
            f"{len(offer.ids):,}; "
            + (
                "hashes of them were sent"
                if member.name in found.founders
                else "of those it was placed by, hashes lay there already"
            ),
        ],
        ["latents of states that were not agreed on", f"{rest:,} × {offer.h.shape[1]}"],
        ["names of groups", "there are none" if offer.groups is None else f"{len(np.unique(offer.groups)):,}"],
    ]
    return Table("What never left", ["what", "how much there is"], rows)
