"""The record of a federation: translations and controls, all exchanged files, and what was not sent."""

from __future__ import annotations

import numpy as np

from jepatlas.core.figures import Heatmap, Table
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate, Record, Verdict
from jepatlas.workflows.align import translations_summary
from jepatlas.workflows.align.align_models import IF_NOT_BETTER
from jepatlas.workflows.federation.exchange_folder import Entry, list_files, manifest_table
from jepatlas.workflows.federation.member_data import CONTROLS, Federation, Member, Offer

__all__ = ["federation_record"]


def federation_record(found: Federation, offer: Offer, member: Member) -> Record:
    """The record of one member."""
    sent, received = _sent(member), _received(member, found)
    return Record(
        title=f"Federation of {' and '.join(found.atlas.names)}",
        summary=_summary(found, sent, received),
        provenance=provenance(member.seed) | {"member": member.name, "agreed states": found.agreed},
        verdicts=(*(found.atlas.judged or ()), *_control_verdicts(found), *found.atlas.verdicts()),
        figures=(_heatmap(found),),
        tables=(
            _translations_table(found),
            manifest_table(f"Files that {member.name} sent", sent),
            manifest_table(f"Files that {member.name} received", received),
            _not_sent_table(found, offer, member),
        ),
    )


def _sent(member: Member) -> list[Entry]:
    files: list[Entry] = []
    for step in sorted(member.channel.kept.iterdir()):
        if not step.name.startswith("."):
            files += list_files(step, member.name, step.name)
    return files


def _received(member: Member, found: Federation) -> list[Entry]:
    """Files of other members that this member read. A member that joined later read no latents."""
    joined = member.name not in found.founders
    steps = ("3-maps", "4-seals") if joined else ("1-states", "2-latents", "3-maps", "4-seals")
    wanted = [(step, name) for step in steps for name in found.founders]
    wanted += [("5-joined", name) for name in found.atlas.names if name not in found.founders]
    files: list[Entry] = []
    for step, name in wanted:
        if name != member.name:
            files += list_files(member.exchange / step / name, name, step)
    return files


def _summary(found: Federation, sent: list[Entry], received: list[Entry]) -> str:
    if any(one.what.startswith("control") for one in sent):
        controls = "Controls computed from the raw input of agreed states were sent."
    else:
        controls = (
            "No controls were sent, so agreement between the members may come from their raw inputs alone. If all "
            "members may know how similar their inputs are, all can give --controls."
        )
    sentences = [
        translations_summary(found.atlas.names, found.atlas.judged or None),
        f"{len(found.atlas.names)} members have one atlas, with {found.agreed} agreed states.",
        f"Sent: {sum(one.size for one in sent):,} bytes in {len(sent)} files; received: "
        f"{sum(one.size for one in received):,} bytes in {len(received)}.",
        "No images, labels, gradients or weights were sent.",
        controls,
        found.shortage_note,
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _translation_verdicts(found: Federation) -> list[Verdict]:
    return [one for one in found.atlas.judged or () if one.name.startswith("translation.")]


def _translations_table(found: Federation) -> Table:
    """Every translation with its null and its controls."""
    kinds = [kind for kind in CONTROLS if kind != "random" or kind in found.controls]
    rows: list[list[object]] = []
    for one in _translation_verdicts(found):
        _, source, target = one.name.split(".")
        null = "" if one.null is None else f"{one.null:.3f}"
        controls = [found.controls.get(kind, {}).get(one.name) for kind in kinds]
        cells = ["not sent" if control is None else _cell(control) for control in controls]
        rows.append([f"{source} → {target}", _cell(one), null, one.n, *cells])
    columns = ["held-out R² (higher is better)", "the agents", "shuffled", "states held out"]
    title = "Translations of held-out agreed states"
    return Table(title, [*columns, *(CONTROLS[kind] for kind in kinds)], rows)


def _cell(one: Verdict) -> str:
    return f"{one.value:z.3f} [{one.low:z.3f}, {one.high:z.3f}]"


def _control_verdicts(found: Federation) -> list[Verdict]:
    """Whether each translation is better than that of each control."""
    verdicts: list[Verdict] = []
    for one in _translation_verdicts(found):
        for kind, judged in found.controls.items():
            if one.name in judged:
                verdicts.append(_control_verdict(one, kind, judged[one.name]))
    return verdicts


def _control_verdict(one: Verdict, kind: str, control: Verdict) -> Verdict:
    _, source, target = one.name.split(".")
    name = CONTROLS[kind]
    return Verdict.judge(
        f"beyond_{kind}.{source}.{target}",
        Estimate(one.value, one.low, one.high, one.n),
        direction="higher",
        null=one.null,
        threshold=control.high,
        good=f"The agents translate better than {name} (R² {control.value:z.3f}).",
        bad=f"The agents do not translate significantly better than {name} (R² {control.value:z.3f}): "
        f"{IF_NOT_BETTER[name]}",
    )


def _heatmap(found: Federation) -> Heatmap:
    names = found.atlas.names
    values = {one.name: one.value for one in _translation_verdicts(found)}
    matrix = [[1.0 if a == b else values.get(f"translation.{a}.{b}", np.nan) for b in names] for a in names]
    return Heatmap(
        title="Held-out R² through the common frame",
        matrix=matrix,
        x=names,
        y=names,
        note="Row: source of the translation; column: target. The diagonal is 1 by definition.",
    )


def _not_sent_table(found: Federation, offer: Offer, member: Member) -> Table:
    rest = len(offer.ids) - found.agreed
    hashes = "their hashes were sent" if member.name in found.founders else "no hashes were sent"
    rows = [[what, amount] for what, amount in offer.stays.items()]
    rows += [
        ["ids of states", f"{len(offer.ids):,}; {hashes}"],
        ["latents of states that were not agreed on", f"{rest:,} × {offer.h.shape[1]}"],
        ["names of groups", "none" if offer.groups is None else f"{len(np.unique(offer.groups)):,}"],
    ]
    return Table("Not sent", ["what", "amount"], rows)
