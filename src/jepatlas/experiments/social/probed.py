"""What agents have learned, beside what they align: a linear probe of the images' labels, after training and before.

Probes are fitted on states that agents learned from and read from whole objects, or blocks of time, that they did not;
each number is the mean of both agents. Beside it stands the share of the commonest class. It informs: that two agents
align says nothing of how much they know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.alignment.probes import LinearProbe
from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import extremes, mean_and_range
from jepatlas.experiments.social.charts import Met
from jepatlas.workflows.vision import majority_of

__all__ = ["probe_table", "probed"]

READ = {"h": "trained agents", "untrained": "untrained agents", "majority": "commonest class"}


def probed(met: Met) -> dict[str, Estimate]:
    """Accuracies of both kinds; nothing where images have no labels, or all the same."""
    labels, (fit, score) = met.a.get("labels"), met.split
    if labels is None or len(np.unique(labels[fit])) < 2:
        return {}
    found = {
        kind: float(np.mean([_read(side[kind], labels, fit, score) for side in (met.a, met.b)]))
        for kind in ("h", "untrained")
    }
    found["majority"] = majority_of(labels[score])
    return {f"probe_{kind}": Estimate(value, value, value, len(score)) for kind, value in found.items()}


def _read(h: np.ndarray, labels: np.ndarray, fit: np.ndarray, score: np.ndarray) -> float:
    probe = LinearProbe.fit(h[fit].astype(np.float64), labels[fit])
    return float((probe.predict(h[score].astype(np.float64)) == labels[score]).mean())


def probe_table(kinds: Mapping[str, Sequence[Result]]) -> tuple[dict[str, Any], ...]:
    """No table where there was nothing to read."""
    rows = [
        [title, *(extremes(mean_and_range(runs, f"probe_{kind}")) for kind in READ)]
        for title, runs in kinds.items()
        if mean_and_range(runs, "probe_h").n
    ]
    title = "What a linear probe reads from held-out states: means of both agents over seeds (lowest to highest)"
    return ({"title": title, "columns": ["agents", *READ.values()], "rows": rows},) if rows else ()
