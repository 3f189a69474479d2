"""Probe sharing: a probe of one agent applied to another without training, beside its alternatives.

    source       the probe on its own agent           untranslated   unchanged, on the other agent ("A-probe")
    shared       through W⁻¹, as published            backwards      through a map fitted in the other direction
    distilled    a linear head fitted to its logits   target         a probe trained on the other agent's own labels
    majority     the majority class

The inverse of an ill-conditioned W amplifies noise; a map fitted backwards does not. Probe and map are fitted on
different groups of the training states, and all accuracies are of held-out groups.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.alignment.maps import RidgeMap
from jepatlas.alignment.probes import LinearProbe, migration_report
from jepatlas.core.figures import Table
from jepatlas.core.linear import Split, hold_out
from jepatlas.core.linear_map import CONDITION_LIMIT
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import cell, mean_and_range, plain
from jepatlas.workflows.vision import VisionAgent

__all__ = ["PROBES", "probes_table", "share_probe"]

PROBES = {
    "source": "on its own agent",
    "untranslated": "untranslated (A-probe)",
    "shared": "through the inverse of the map",
    "backwards": "through a map fitted backwards",
    "distilled": "distilled head",
    "target": "trained on the target",
    "majority": "majority class",
}
PUBLISHED = {"untranslated": 0.4959, "shared": 0.5170, "distilled": 0.5063}
MISSING = Estimate.undefined(0)


def share_probe(
    source: VisionAgent, target: VisionAgent, seed: int, replicates: int
) -> tuple[dict[str, Estimate], str]:
    """Accuracies by name on the states that both agents see, and, if the inverse of the map does not carry what the
    probe reads, the reason."""
    rows_a, rows_b, held = _common_rows(source, target)
    a = source.latents(rows_a).astype(np.float64)
    b = target.latents(rows_b).astype(np.float64)
    table = source.seen.table
    labels = table.labels(rows_a)
    groups = table.column("group" if "group" in table.columns else "state")[rows_a]
    split = Split(np.flatnonzero(~held), np.flatnonzero(held))
    rng = numpy_generator(seed, "sharing")
    halves = hold_out(len(split.fit), rng, groups=groups[split.fit])
    probe_rows = split.fit[halves.fit]
    map_rows = split.fit[halves.score]
    probe = LinearProbe.fit(a[probe_rows], labels[probe_rows])
    forwards = RidgeMap(standardise=True).fit(a[map_rows], b[map_rows], groups=groups[map_rows]).map_
    backwards = RidgeMap(standardise=True).fit(b[map_rows], a[map_rows], groups=groups[map_rows]).map_
    report = migration_report(
        probe,
        forwards,
        a,
        b,
        labels,
        split=split,
        rng=rng,
        groups=groups,
        limit=CONDITION_LIMIT,
        back=backwards,
        distilled=map_rows,
        replicates=replicates,
    )
    found = {
        "source": report.source,
        "untranslated": report.untranslated,
        "shared": report.inverse,
        "backwards": report.migrated,
        "distilled": report.distilled,
        "target": report.target,
        "majority": Estimate.exact(report.majority, int(held.sum())),
    }
    reason = "" if report.inverse else f"the map loses {report.support.lost:.0%} of what the probe reads"
    return {name: one or MISSING for name, one in found.items()}, reason


def _common_rows(source: VisionAgent, target: VisionAgent) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of the states that both agents see, and which of them are held out."""
    one, other = (agent.seen.table.column("state") for agent in (source, target))
    _, rows_a, rows_b = np.intersect1d(one, other, return_indices=True)
    return rows_a, rows_b, np.isin(rows_a, source.seen.held)


def probes_table(results: Sequence[Result]) -> Table:
    """Accuracies per seed, with the reason where the inverse of the map does not carry the probe."""
    reasons = [result.record.get("probe_lost", "") if result.status == "finished" else "" for result in results]
    rows = [[r.at["seed"], r.status, *(cell(r.estimate(f"probe_{name}")) for name in PROBES)] for r in results]
    rows.append(["mean", "", *(_mean(mean_and_range(results, f"probe_{name}"), len(results)) for name in PROBES)])
    rows.append(["published", "", *(str(PUBLISHED.get(name, "")) for name in PROBES)])
    columns = ["seed", "status", *PROBES.values()]
    if any(reasons):
        columns.append("why not through the inverse")
        rows = [[*row, reason] for row, reason in zip(rows, [*reasons, "", ""], strict=True)]
    return Table("A probe of the teacher on the student trained alone, with 95% intervals by groups", columns, rows)


def _mean(found: Estimate, seeds: int) -> str:
    count = f" ({found.n} of {seeds} seeds)" if found.n < seeds else ""
    return plain(found.value) + count
