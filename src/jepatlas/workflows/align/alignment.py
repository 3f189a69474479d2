"""An alignment as a record: can one model be told from the other, beyond chance and beyond its raw input?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from jepatlas.alignment import (
    METRICS,
    Evidence,
    FittedMap,
    LeastSquaresMap,
    ProcrustesMap,
    RidgeMap,
    RobustMap,
    StreamedMap,
)
from jepatlas.alignment.paired import PairedLatents
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.workflows.align.controls import Controls, beyond_controls, controls_said, gather_controls
from jepatlas.workflows.align.evidence import BRIEF, MAIN, Study, gather
from jepatlas.workflows.align.figures import layers_figure, projections, spectrum_figure
from jepatlas.workflows.align.pictures import pairs_figure
from jepatlas.workflows.align.trust import as_given, distrusted, doubted, trusted_r2

__all__ = ["Alignment", "MapKind", "align", "fit_map"]

MapKind = Literal["ridge", "least-squares", "procrustes", "similarity", "robust"]
_MAPS: dict[MapKind, Callable[[], StreamedMap | RobustMap]] = {
    "ridge": partial(RidgeMap, standardise=True),
    "least-squares": LeastSquaresMap,
    "procrustes": ProcrustesMap,
    "similarity": partial(ProcrustesMap, scaled=True),
    "robust": partial(RobustMap, RidgeMap(standardise=True)),
}

STRETCHES = 4  # of the rows of a group that is alone: the penalty is chosen by one, the others fit


def fit_map(kind: MapKind, a: np.ndarray, b: np.ndarray, groups: np.ndarray | None = None) -> FittedMap:
    """A fitted map a → b; `groups` are of rows that are alike, which a held-out choice must keep together.

    Where all rows are of one group, stretches of neighbouring rows are kept together in its place.
    """
    found = _MAPS[kind]()
    if groups is not None and len(np.unique(groups)) == 1:
        groups = np.arange(len(a)) * STRETCHES // len(a)
    return found.fit(a, b, groups) if isinstance(found, RidgeMap | RobustMap) else found.fit(a, b)


@dataclass(frozen=True)
class Alignment:
    """The fitted map, the evidence for it (and for controls, by name), and the record of both."""

    map: LinearMap
    evidence: Mapping[str, Evidence]
    controls: Controls
    record: Record


def align(
    matched: PairedLatents, kind: MapKind, study: Study, *, umap: bool = False, metrics: Sequence[str] = tuple(METRICS)
) -> Alignment:
    """Fit the map from a to b, and hold it against shuffled pairs and, where raw inputs or untrained latents are given,
    against controls.

    `metrics` are measured, and those that are judged in any case.
    """
    a, b, rows = matched.a.h, matched.b.h, study.split.fit
    fitted = fit_map(kind, a[rows], b[rows], None if study.groups is None else study.groups[rows])
    names = [name for name in METRICS if name in metrics or name in MAIN]
    found = gather(a, b, partial(fit_map, kind), study, names)
    controls = gather_controls(matched, partial(fit_map, kind), study)
    shown = matched.rows(study.scored)
    figures, arrays = projections(shown, fitted.map_.apply(shown.a.h), umap=umap, seed=study.seed)
    layers, (pairs, images) = layers_figure(shown), pairs_figure(shown)
    doubts = doubted(fitted, matched, rows)
    verdicts = [
        *(found[name].verdict for name in MAIN),
        *beyond_controls(found["r2"], controls),
        *fitted.conditioning_.verdicts(len(rows)),
        *distrusted(doubts, len(rows)),
        *trusted_r2(fitted, matched, study, found["r2"]),
    ]
    record = Record(
        title=f"{matched.a.name} → {matched.b.name}",
        summary=" ".join(
            [_summary(matched, found["r2"], controls), *as_given(doubts, len(rows)), *matched.left_out_note]
        ),
        provenance=provenance(study.seed)
        | {"map": kind, "pairs fitted": len(rows), "pairs held out": len(shown.a.h)}
        | matched.provenance,
        verdicts=tuple(verdicts),
        figures=(*pairs, *figures, spectrum_figure(fitted.map_), *([layers] if layers else [])),
        tables=(_metrics(found), _beside({"the models": found} | controls)),
        arrays=arrays | images | ({} if doubts is None else {"distrusted": doubts}),
    )
    return Alignment(fitted.map_, found, controls, record)


def _summary(matched: PairedLatents, r2: Evidence, controls: Controls) -> str:
    told = f"{matched.b.name} from {matched.a.name}"
    if np.isnan(r2.estimate.value):
        return f"Nothing is aligned: {matched.b.name} does not vary in the held-out rows, so there is nothing to tell."
    if r2.passed is None:
        why = r2.too_few or "its interval is not defined for so few rows"
        return f"Undecided whether a linear map tells {told} (held-out R² {r2.cell}): {why}."
    if not r2.passed:
        return f"Nothing is aligned: a linear map tells {told} no better than chance (held-out R² {r2.cell})."
    if r2.estimate.low <= 0:
        return (
            f"The rows belong together, but this map does not tell {told}: held-out R² {r2.cell}, and the mean "
            "would have 0. A map of another kind may (--map)."
        )
    parts = [f"A linear map tells {told} with held-out R² {r2.cell}."]
    return " ".join([*parts, *controls_said(r2, controls), "That models agree does not show that they are right."])


def _metrics(found: Mapping[str, Evidence]) -> dict[str, Any]:
    """Every metric, with its direction and its null."""
    rivals = next(iter(found.values())).null_name
    columns = ["held out (↑ higher is better, ↓ lower)", "value", "95% interval", rivals, "p", "effect"]
    return {"title": "Metrics", "columns": columns, "rows": [one.line for one in found.values()]}


def _beside(rows: Mapping[str, Mapping[str, Evidence]]) -> dict[str, Any]:
    """The models beside their controls."""
    columns = ["coordinates", *(f"{name} ({METRICS[name].direction} is better)" for name in BRIEF)]
    cells = [[name, *(found[key].cell for key in BRIEF)] for name, found in rows.items()]
    return {"title": "Beside the controls", "columns": columns, "rows": cells}
