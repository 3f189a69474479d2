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

from jepatlas.align.maps import RidgeMap
from jepatlas.align.nulls import half_sample_intervals
from jepatlas.align.probes import LinearProbe, distil, migration_report
from jepatlas.base.errors import InputError
from jepatlas.base.linear import Split, hold_out
from jepatlas.base.records import Estimate
from jepatlas.base.seeding import numpy_generator
from jepatlas.experiments.experiment import Result
from jepatlas.experiments.social.measures import LIMIT
from jepatlas.experiments.tables import cell, over_seeds
from jepatlas.social import Seeing, majority_of

__all__ = ["probes_said", "probes_table", "share_probe"]

PROBES = {
    "source": "on its own agent",
    "untranslated": "as it is (A-probe)",
    "shared": "through the map",
    "backwards": "through a map fitted backwards",
    "distilled": "distilled head",
    "target": "trained on the target",
    "majority": "commonest class",
}
PUBLISHED = {"untranslated": 0.4959, "shared": 0.5170, "distilled": 0.5063}

NONE = Estimate(np.nan, np.nan, np.nan, 0)


def share_probe(source: Seeing, target: Seeing, seed: int, replicates: int) -> tuple[dict[str, Estimate], str]:
    """Accuracies by name, of states that both agents see; without numbers, but with the reason, where the map does not
    carry the probe."""
    rows_a, rows_b, held = _shared(source, target)
    a, b = source.latents(rows_a).astype(np.float64), target.latents(rows_b).astype(np.float64)
    table = source.seen.table
    labels = table.labels(rows_a)
    groups = table.column("group" if "group" in table.columns else "state")[rows_a]
    split, rng = Split(np.flatnonzero(~held), np.flatnonzero(held)), numpy_generator(seed, "sharing")
    halves = hold_out(len(split.fit), rng, groups=groups[split.fit])
    taught, paired = split.fit[halves.fit], split.fit[halves.score]
    probe = LinearProbe.fit(a[taught], labels[taught])
    through = RidgeMap(standardise=True).fit(a[paired], b[paired], groups=groups[paired])
    try:
        report = migration_report(probe, through.map_, a, b, labels, split=split, rng=rng, groups=groups,
                                  limit=LIMIT, replicates=replicates)  # fmt: skip
    except InputError as error:  # what the probe reads is lost on the way, and that is an answer
        return dict.fromkeys(PROBES, NONE), str(error).partition(". ")[0]
    back = RidgeMap(standardise=True).fit(b[paired], a[paired], groups=groups[paired])
    hits = {"distilled": distil(probe, a[paired], b[paired], groups[paired]).predict(b[held]) == labels[held],
            "backwards": probe.predict(back.transform(b[held])) == labels[held]}  # fmt: skip
    others = half_sample_intervals(lambda rows: {name: float(one[rows].mean()) for name, one in hits.items()},
                                 int(held.sum()), rng, groups=groups[held], replicates=replicates,
                                 ranges=dict.fromkeys(hits, (0.0, 1.0)))  # fmt: skip
    share, count = majority_of(labels[held]), int(held.sum())
    return {"source": report.source, "untranslated": report.untranslated or NONE, "shared": report.migrated,
            "target": report.target, "majority": Estimate(share, share, share, count), **others}, ""  # fmt: skip


def _shared(source: Seeing, target: Seeing) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of both of the same states, and which of these no agent has learned from."""
    one, other = (agent.seen.table.column("state") for agent in (source, target))
    _, rows_a, rows_b = np.intersect1d(one, other, return_indices=True)
    return rows_a, rows_b, np.isin(rows_a, source.seen.held)


def probes_said(results: Sequence[Result]) -> str:
    """Means, and of how many seeds they are."""
    if not over_seeds(results, "probe_shared").n:
        return "it could be read at no seed"
    means = {name: over_seeds(results, f"probe_{name}").value for name in PROBES}
    listed = ", ".join(f"{title} {means[name]:.3f}" for name, title in PROBES.items())
    read = means["source"] > means["majority"]
    nothing = "; it reads no more than the commonest class where it comes from, so there is nothing to share"
    return f"{listed} (means {_of(results)}){'' if read else nothing}"


def probes_table(results: Sequence[Result]) -> dict[str, Any]:
    rows = [[r.at["seed"], r.status, *(cell(r.estimate(f"probe_{name}")) for name in PROBES), _why(r)] for r in results]
    means = [over_seeds(results, f"probe_{name}").value for name in PROBES]
    rows += [["mean", _of(results), *("–" if np.isnan(value) else f"{value:.3f}" for value in means), ""]]
    rows += [["published", "", *(str(PUBLISHED.get(name, "")) for name in PROBES), ""]]
    return {"title": "A probe of the teacher, read from the student that learned alone, with 95% intervals by groups",
            "columns": ["seed", "status", *PROBES.values(), "why there is no number"], "rows": rows}  # fmt: skip


def _of(results: Sequence[Result]) -> str:
    return f"of {over_seeds(results, 'probe_shared').n} of {len(results)} seeds"


def _why(result: Result) -> str:
    """Records from before reasons were kept have none; there was one reason only."""
    if result.status != "finished" or not np.isnan(result.value("probe_shared")):
        return ""
    return result.record.get("probe_lost", "the map does not carry what the probe reads")
