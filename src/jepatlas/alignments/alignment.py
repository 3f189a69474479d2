"""An alignment as a record: can one model be told from the other, beyond chance and beyond its raw input?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from jepatlas.align import (
    METRICS,
    FittedMap,
    LeastSquaresMap,
    ProcrustesMap,
    RidgeMap,
    RobustMap,
    StreamedMap,
    pca_control,
    untrained_control,
)
from jepatlas.alignments.evidence import BRIEF, MAIN, Evidence, Study, gather
from jepatlas.alignments.figures import layers_figure, projections, spectrum_figure
from jepatlas.alignments.matched import Matched
from jepatlas.alignments.pictures import pairs_figure
from jepatlas.alignments.trust import as_given, distrusted, doubted, trusted_r2
from jepatlas.base.linear_map import LinearMap
from jepatlas.base.provenance import provenance
from jepatlas.base.records import Record, Verdict
from jepatlas.base.seeding import numpy_generator

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

Controls = Mapping[str, Mapping[str, Evidence]]


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
    matched: Matched, kind: MapKind, study: Study, *, umap: bool = False, metrics: Sequence[str] = tuple(METRICS)
) -> Alignment:
    """Fit the map from a to b, and hold it against shuffled pairs and, where raw inputs are given, against controls.

    `metrics` are measured, and those that are judged in any case.
    """
    a, b, rows = matched.a.h, matched.b.h, study.split.fit
    fitted = fit_map(kind, a[rows], b[rows], None if study.groups is None else study.groups[rows])
    names = [name for name in METRICS if name in metrics or name in MAIN]
    found = gather(a, b, partial(fit_map, kind), study, names)
    controls = _controls(matched, kind, study)
    shown = matched.rows(study.scored)
    figures, arrays = projections(shown, fitted.map_.apply(shown.a.h), umap=umap, seed=study.seed)
    layers, (pairs, images) = layers_figure(shown), pairs_figure(shown)
    doubts = doubted(fitted, matched, rows)
    verdicts = [
        *(found[name].verdict for name in MAIN),
        *_beyond_controls(found["r2"], controls),
        *fitted.conditioning_.verdicts(len(rows)),
        *distrusted(doubts, len(rows)),
        *trusted_r2(fitted, matched, study, found["r2"]),
    ]
    record = Record(
        title=f"{matched.a.name} → {matched.b.name}",
        summary=" ".join([_summary(matched, found["r2"], controls), *as_given(doubts, len(rows)), *matched.missed]),
        provenance=provenance(study.seed)
        | {"map": kind, "pairs fitted": len(rows), "pairs held out": len(shown.a.h)}
        | matched.about,
        verdicts=tuple(verdicts),
        figures=(*pairs, *figures, spectrum_figure(fitted.map_), *([layers] if layers else [])),
        tables=(_metrics(found), _beside({"the models": found} | controls)),
        arrays=arrays | images | ({} if doubts is None else {"distrusted": doubts}),
    )
    return Alignment(fitted.map_, found, controls, record)


def _controls(matched: Matched, kind: MapKind, study: Study) -> dict[str, dict[str, Evidence]]:
    """The same map between what was not trained on anything."""
    if matched.a.raw is None or matched.b.raw is None:
        return {}
    a, b = matched.a.h, matched.b.h
    sides = {"untrained a": (matched.a.raw, a.shape[1]), "untrained b": (matched.b.raw, b.shape[1])}
    made = {
        "PCA of the raw input": [pca_control(raw, width, study.split.fit) for raw, width in sides.values()],
        "an untrained encoder": [
            untrained_control(raw, width, numpy_generator(study.seed, name)) for name, (raw, width) in sides.items()
        ],
    }
    return {name: gather(x, y, partial(fit_map, kind), study, BRIEF) for name, (x, y) in made.items()}


def _beyond_controls(r2: Evidence, controls: Controls) -> list[Verdict]:
    """Whether R² is higher than each control's."""
    names = {"PCA of the raw input": "r2_beyond_pca", "an untrained encoder": "r2_beyond_untrained"}
    return [
        Verdict.judge(
            names[name], r2.estimate, direction="higher", null=r2.null.mean, threshold=control["r2"].estimate.high,
            good=f"The models align better than {name} does (R² {control['r2'].estimate.value:.3f}).",
            bad=f"{_not_better(r2, control['r2'])} than {name} does (R² {_interval(control['r2'])}): what they "
                "agree on may come from the input alone.",
        )
        for name, control in controls.items()
    ]  # fmt: skip


def _not_better(r2: Evidence, control: Evidence) -> str:
    worse = control.estimate.low > r2.estimate.high
    return "The models align worse" if worse else "It is not beyond doubt that the models align better"


def _interval(one: Evidence) -> str:
    return f"{one.estimate.value:z.3f} [{one.estimate.low:z.3f}, {one.estimate.high:z.3f}]"


def _summary(matched: Matched, r2: Evidence, controls: Controls) -> str:
    told = f"{matched.b.name} from {matched.a.name}"
    if np.isnan(r2.estimate.value):
        return f"Nothing is aligned: {matched.b.name} does not vary in the held-out rows, so there is nothing to tell."
    if r2.passed is None:
        why = r2.too_few or "its interval is not defined for so few rows"
        return f"Undecided whether a linear map tells {told} (held-out R² {r2.cell}): {why}."
    if not r2.passed:
        return f"Nothing is aligned: a linear map tells {told} no better than chance (held-out R² {r2.cell})."
    if r2.estimate.low <= 0:
        return (f"The rows belong together, but this map does not tell {told}: held-out R² {r2.cell}, and the mean "
                "would have 0. A map of another kind may (--map).")  # fmt: skip
    parts = [f"A linear map tells {told} with held-out R² {r2.cell}."]
    for name, control in controls.items():
        parts.append(f"{name[0].upper()}{name[1:]} {_beside_r2(r2, control['r2'])}: {control['r2'].cell}.")
    if not controls:
        parts.append("What the raw input alone would give is not known: --raw-a and --raw-b tell.")
    return " ".join([*parts, "That models agree does not show that they are right."])


def _beside_r2(r2: Evidence, control: Evidence) -> str:
    """Beyond doubt, where the intervals do not meet; where they do, the difference may be chance."""
    if r2.estimate.low > control.estimate.high:
        return "gives less"
    return "gives more" if control.estimate.low > r2.estimate.high else "may give as much"


def _metrics(found: Mapping[str, Evidence]) -> dict[str, Any]:
    """Every metric, with its direction and its null."""
    rivals = next(iter(found.values())).rivals
    columns = ["held out (↑ higher is better, ↓ lower)", "value", "95% interval", rivals, "p", "effect"]
    return {"title": "Metrics", "columns": columns, "rows": [one.line for one in found.values()]}


def _beside(rows: Mapping[str, Mapping[str, Evidence]]) -> dict[str, Any]:
    """The models beside their controls."""
    columns = ["coordinates", *(f"{name} ({METRICS[name].direction} is better)" for name in BRIEF)]
    cells = [[name, *(found[key].cell for key in BRIEF)] for name, found in rows.items()]
    return {"title": "Beside the controls", "columns": columns, "rows": cells}
