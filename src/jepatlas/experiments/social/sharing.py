"""A probe of one agent, read from another with no training of it: the published way, and what stands beside it.

    source       the probe on its own agent           untranslated   as it is, on the other ("A-probe")
    shared       through W⁻¹, as published            backwards      through a map that was fitted the other way
    distilled    a linear head fitted to its logits   target         a probe trained on the other agent's own labels
    majority     the commonest class alone

Where W is ill-conditioned its inverse multiplies what is noise, which a map fitted backwards does not.

Probe and map are fitted on different groups of the states that were learned from; all are scored on held-out groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.alignment.maps import RidgeMap
from jepatlas.alignment.probes import LinearProbe, migration_report
from jepatlas.core.linear import Split, hold_out
from jepatlas.core.linear_map import CONDITION_LIMIT
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import cell, mean_and_range, plain
from jepatlas.workflows.vision import Seeing

__all__ = ["probes_said", "probes_table", "share_probe"]

PROBES = {
    "source": "on its own agent",
    "untranslated": "as it is (A-probe)",
    "shared": "through the inverse of the map",
    "backwards": "through a map fitted backwards",
    "distilled": "distilled head",
    "target": "trained on the target",
    "majority": "commonest class",
}
PUBLISHED = {"untranslated": 0.4959, "shared": 0.5170, "distilled": 0.5063}

NONE = Estimate(np.nan, np.nan, np.nan, 0)


def share_probe(source: Seeing, target: Seeing, seed: int, replicates: int) -> tuple[dict[str, Estimate], str]:
    """Accuracies by name, of states that both agents see; and why there is none through the inverse of the map, where
    that does not carry what the probe reads."""
    rows_a, rows_b, held = _shared(source, target)
    a, b = source.latents(rows_a).astype(np.float64), target.latents(rows_b).astype(np.float64)
    table = source.seen.table
    labels = table.labels(rows_a)
    groups = table.column("group" if "group" in table.columns else "state")[rows_a]
    split, rng = Split(np.flatnonzero(~held), np.flatnonzero(held)), numpy_generator(seed, "sharing")
    halves = hold_out(len(split.fit), rng, groups=groups[split.fit])
    taught, paired = split.fit[halves.fit], split.fit[halves.score]
    probe = LinearProbe.fit(a[taught], labels[taught])
    there, back = (
        RidgeMap(standardise=True).fit(x[paired], y[paired], groups=groups[paired]).map_ for x, y in ((a, b), (b, a))
    )
    report = migration_report(
        probe,
        there,
        a,
        b,
        labels,
        split=split,
        rng=rng,
        groups=groups,
        limit=CONDITION_LIMIT,
        back=back,
        distilled=paired,
        replicates=replicates,
    )
    majority = Estimate(report.majority, report.majority, report.majority, int(held.sum()))
    found = {
        "source": report.source,
        "untranslated": report.untranslated,
        "shared": report.inverse,
        "backwards": report.migrated,
        "distilled": report.distilled,
        "target": report.target,
        "majority": majority,
    }
    lost = f"{report.support.lost:.0%} of what the probe reads does not come back through the map"
    return {name: one or NONE for name, one in found.items()}, "" if report.inverse else lost


def _shared(source: Seeing, target: Seeing) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of both of the same states, and which of these no agent has learned from."""
    one, other = (agent.seen.table.column("state") for agent in (source, target))
    _, rows_a, rows_b = np.intersect1d(one, other, return_indices=True)
    return rows_a, rows_b, np.isin(rows_a, source.seen.held)


def probes_said(results: Sequence[Result]) -> str:
    """Means over seeds; where a way came to no number at some, of how many."""
    means = {name: mean_and_range(results, f"probe_{name}") for name in PROBES}
    if not means["source"].n:
        return "it could be read at no seed"
    listed = ", ".join(f"{title} {_mean(means[name], len(results))}" for name, title in PROBES.items())
    read = means["source"].value > means["majority"].value
    nothing = "; it reads no more than the commonest class where it comes from, so there is nothing to share"
    return f"{listed} (means over seeds){'' if read else nothing}"


def probes_table(results: Sequence[Result]) -> dict[str, Any]:
    """With a column of reasons where the inverse of a map did not carry the probe."""
    reasons = [_why(result) for result in results]
    rows = [[r.at["seed"], r.status, *(cell(r.estimate(f"probe_{name}")) for name in PROBES)] for r in results]
    rows += [
        ["mean", "", *(_mean(mean_and_range(results, f"probe_{name}"), len(results)) for name in PROBES)],
        ["published", "", *(str(PUBLISHED.get(name, "")) for name in PROBES)],
    ]
    columns = ["seed", "status", *PROBES.values()]
    if any(reasons):
        columns.append("why none through the inverse")
        rows = [[*row, why] for row, why in zip(rows, [*reasons, "", ""], strict=True)]
    return {
        "title": "A probe of the teacher, read from the student that learned alone, with 95% intervals by groups",
        "columns": columns,
        "rows": rows,
    }


def _mean(found: Estimate, seeds: int) -> str:
    return plain(found.value) + (f" ({found.n} of {seeds} seeds)" if found.n < seeds else "")


def _why(result: Result) -> str:
    return result.record.get("probe_lost", "") if result.status == "finished" else ""
