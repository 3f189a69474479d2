"""An energy migrated: the map from B to A is fitted on some of the shared rows, what it carries judged on others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jepatlas.alignment import PairedLatents, split_rows, time_blocks
from jepatlas.alignment.maps import Conditioning
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Record, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.workflows.align import MapKind, fit_map
from jepatlas.workflows.energy.energy_file import SavedEnergy
from jepatlas.workflows.energy.porting import Ported, port_energy

__all__ = ["MigratedEnergy", "migrate_energy"]


@dataclass(frozen=True)
class MigratedEnergy:
    """The energy for B, the map from B to A that it goes through, and the record of what it is worth."""

    saved: SavedEnergy
    map: LinearMap
    record: Record


def migrate_energy(
    matched: PairedLatents,
    saved: SavedEnergy,
    kind: MapKind = "ridge",
    *,
    seed: int = 0,
    blocks: int | None = None,
    share: float = 0.5,
    states: int = 256,
) -> MigratedEnergy:
    """Carry an energy on a's latents to b's; at most `states` of the held-out rows are judged."""
    a, b = matched.a, matched.b
    if saved.dim != a.h.shape[1]:
        raise InputError(f"The energy takes {saved.dim} dimensions, but the latents of {a.name} have {a.h.shape[1]}.")
    split = split_rows(
        len(a.h), numpy_generator(seed, "migrate split"), groups=matched.groups, blocks=blocks, share=share
    )
    groups, rows = matched.groups if blocks is None else time_blocks(len(a.h), blocks), split.fit
    fitted = fit_map(kind, b.h[rows], a.h[rows], None if groups is None else groups[rows])
    held = np.sort(numpy_generator(seed, "migrate states").permutation(split.score)[:states])
    ported = port_energy(saved, fitted.map_, a.h[held], b.h[held], names=(a.name, b.name), seed=seed)
    judged = Conditioning.of(fitted.map_, fitted.moments_).verdicts(len(rows))
    about = {"map": kind, "pairs fitted": len(rows), "pairs held out": len(split.score)} | matched.provenance
    return MigratedEnergy(ported.saved, fitted.map_, _with(ported, judged, about, matched.left_out_note))


def _with(ported: Ported, judged: list[Verdict], about: dict[str, Any], missed: list[str]) -> Record:
    record = ported.record
    return replace(
        record,
        summary=" ".join([record.summary, *missed]),
        verdicts=(*record.verdicts, *judged),
        provenance={**record.provenance, **about},
    )
