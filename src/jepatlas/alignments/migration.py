"""The migration of a probe as a record: what it is worth on the other model."""

from __future__ import annotations

from dataclasses import dataclass

from jepatlas.align import LinearProbe, MigrationReport, migrate, migration_report, split_rows
from jepatlas.alignments.alignment import MapKind, fit_map
from jepatlas.alignments.latents import Matched
from jepatlas.base.errors import InputError
from jepatlas.base.provenance import provenance
from jepatlas.base.records import LinearMap, Record
from jepatlas.base.seeding import numpy_generator

__all__ = ["Migration", "migrate_between"]


@dataclass(frozen=True)
class Migration:
    """The probe for the target, the map it came through, and the record of what it is worth."""

    probe: LinearProbe
    map: LinearMap
    report: MigrationReport
    record: Record


def migrate_between(
    matched: Matched,
    kind: MapKind,
    *,
    limit: float,
    seed: int,
    probe: LinearProbe | None = None,
    fitted: LinearMap | None = None,
) -> Migration:
    """Carry a probe from a to b; what is not given, probe or map, is fitted on the rows that are not held out."""
    a, b, labels, groups = matched.a.h, matched.b.h, matched.labels, matched.groups
    if labels is None:
        raise InputError(f"{matched.a.name} has no labels, so no probe can be scored. Give them with --labels.")
    split = split_rows(len(a), numpy_generator(seed, "migrate split"), groups=groups)
    rows = split.fit
    probe = LinearProbe.fit(a[rows], labels[rows]) if probe is None else probe
    if fitted is None:
        fitted = fit_map(kind, a[rows], b[rows], None if groups is None else groups[rows]).map_
    carried = migrate(probe, fitted, limit=limit, latents=a[rows])
    report = migration_report(probe, fitted, a, b, labels, split=split, rng=numpy_generator(seed, "migrate"),
                              limit=limit, groups=groups)  # fmt: skip
    verdicts = report.verdicts()
    moved, home = report.migrated, report.source
    record = Record(
        title=f"A probe of {matched.a.name}, for {matched.b.name}",
        summary=f"The migrated probe is right on {moved.value:.1%} of held-out rows of {matched.b.name} "
        f"[{moved.low:.1%}, {moved.high:.1%}], the source probe on {home.value:.1%} of {matched.a.name}'s, one trained "
        f"on {matched.b.name} on {report.target.value:.1%}; the commonest class alone gives {report.majority:.1%}.",
        provenance=provenance(seed) | {"pairs fitted": len(rows), "pairs held out": len(split.score)},
        verdicts=tuple(verdicts),
    )
    return Migration(carried, fitted, report, record)
