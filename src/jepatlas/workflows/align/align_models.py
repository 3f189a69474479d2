"""Align two models: fit a map, judge it on held-out rows, compare it with controls, and write a record.

The control for what training adds is each model's own network before training. If a file does not hold its latents, a
random network on the raw input is used instead. It is a weaker control: untrained vision transformers on drawn toys
align with R² 0.87, random networks on small copies of the images with 0.39.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from jepatlas.alignment import (
    METRICS,
    Evidence,
    LinearProbe,
    PairedLatents,
    migrate,
    pca_control,
    untrained_control,
)
from jepatlas.alignment.directions import TargetDirections
from jepatlas.alignment.within import SharedColumn
from jepatlas.core.figures import Table
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.processes import limited_threads
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.verdict_names import plain_name
from jepatlas.results import Result
from jepatlas.workflows.align.align_checks import directions_figure, directions_found, warp_hint
from jepatlas.workflows.align.align_figures import layers_figure, pairs_figure, projections, spectrum_figure
from jepatlas.workflows.align.align_options import MapKind
from jepatlas.workflows.align.align_robust import (
    Finding,
    distrusted,
    distrusted_note,
    distrusted_verdict,
    robust_disagreement,
    trusted_r2,
)
from jepatlas.workflows.align.align_study import BRIEF, MAIN, Fit, Study, fit_map, gather

__all__ = ["PCA", "RANDOM", "UNTRAINED", "Alignment", "Controls", "align", "control_names"]

Controls = Mapping[str, Mapping[str, Evidence]]
"""Evidence by control and metric."""

PCA = "PCA of the raw input"
UNTRAINED = "the same networks, untrained"
RANDOM = "a random network on the raw input"
CONTROL_VERDICTS = {PCA: "r2_beyond_pca", UNTRAINED: "r2_beyond_untrained", RANDOM: "r2_beyond_untrained"}
IF_NOT_BETTER = {
    PCA: "what the models agree on may come from the input alone.",
    UNTRAINED: "what the models agree on may come from the input and the architecture, not from training.",
    RANDOM: "what the models agree on may come from the input alone.",
}
IF_ONLY_RANDOM = (
    " This does not show that training helps: the untrained networks may align as well. Store their latents as "
    "'untrained' in both files (jepatlas encode does)."
)


@dataclass(frozen=True, repr=False)
class Alignment(Result):
    """An alignment of two models: the fitted map a → b, its evidence, and that of the controls."""

    map: LinearMap
    evidence: Mapping[str, Evidence]
    controls: Controls
    undecided: bool = False
    """Whether few pairs, or mismatched ones, decide the held-out R²."""

    record_name: ClassVar[str] = "align"

    @property
    def passed(self) -> bool | None:
        """Whether the map predicts held-out rows of b better than chance and than their mean; None if undecided."""
        r2 = self.evidence["r2"]
        answer = r2.estimate.low > 0 if r2.passed else r2.passed
        return None if self.undecided and not answer else answer

    def migrate(self, probe: Any) -> LinearProbe:
        """A probe of a, or a linear classifier of scikit-learn, as a probe of b, through the inverse of the map."""
        known = isinstance(probe, LinearProbe)
        return migrate(probe if known else LinearProbe.from_sklearn(probe), self.map)

    def save(self, folder: Path | str) -> Path:
        """Write the record, and the map as `map.safetensors`."""
        folder = super().save(folder)
        self.map.save(folder / "map.safetensors")
        return folder


@limited_threads()
def align(
    pairs: PairedLatents,
    kind: MapKind,
    study: Study,
    *,
    umap: bool = False,
    metrics: Sequence[str] = tuple(METRICS),
) -> Alignment:
    """Fit the map from a to b and compare it with permuted pairs and with controls.

    Controls need raw inputs or untrained latents of both models. Metrics with a verdict are measured in any case.
    """
    shared = None
    if pairs.within is not None:
        shared = SharedColumn(pairs.within, study.split.fit)
        pairs = pairs.within_column(shared)
    a, b, rows = pairs.a.h, pairs.b.h, study.split.fit
    fit = partial(fit_map, kind)
    fitted = fit(a[rows], b[rows], None if study.groups is None else study.groups[rows])
    names = [name for name in METRICS if name in metrics or name in MAIN]
    evidence = gather(a, b, fit, study, names, fitted=fitted)
    controls = _gather_controls(pairs, fit, study, shared)
    held_out = pairs.rows(study.scored)
    mapped = fitted.map_.apply(held_out.a.h)
    scatters, arrays = projections(held_out, mapped, umap=umap, seed=study.seed)
    images, image_arrays = pairs_figure(held_out)
    layers = layers_figure(held_out)
    directions = TargetDirections.of(held_out.b.h, mapped, fitted.moments_)
    narrow = directions_found(directions, pairs, study, evidence["r2"])
    robust = Finding() if kind == "robust" else robust_disagreement(pairs, fit, study, evidence["r2"])
    warped = Finding() if robust.text else warp_hint(pairs, fit, study, fitted.map_, evidence["r2"])
    which = distrusted(fitted, pairs, rows)
    verdicts = [
        *(evidence[name].verdict for name in MAIN),
        *narrow.verdicts,
        *robust.verdicts,
        *warped.verdicts,
        *_control_verdicts(evidence["r2"], controls),
        *fitted.conditioning_.verdicts(len(rows)),
    ]
    sentences = [robust.text or narrow.text, study.note, _summary(pairs, evidence["r2"], controls), warped.text]
    if which is not None:
        arrays["distrusted"] = which
        verdicts += [distrusted_verdict(which, len(rows)), *trusted_r2(fitted, pairs, study, evidence["r2"])]
        sentences.append(distrusted_note(which, len(rows)))
    if shared is not None:
        sentences.append("What the column given by 'within' explains was removed from both sides first.")
    record = Record(
        title=f"{pairs.a.name} → {pairs.b.name}",
        summary=" ".join([*filter(None, sentences), *pairs.left_out_note]),
        provenance=provenance(study.seed)
        | {"map": kind, "pairs fitted": len(rows), "pairs held out": len(held_out)}
        | pairs.provenance,
        verdicts=tuple(verdicts),
        figures=(
            *images,
            *scatters,
            directions_figure(directions),
            spectrum_figure(fitted.map_),
            *([layers] if layers else []),
        ),
        tables=(_metrics_table(evidence), _controls_table({"the models": evidence} | controls)),
        arrays=arrays | image_arrays,
    )
    return Alignment(record, fitted.map_, evidence, controls, undecided=bool(robust.text))


def _summary(pairs: PairedLatents, r2: Evidence, controls: Controls) -> str:
    a, b = pairs.a.name, pairs.b.name
    if np.isnan(r2.estimate.value):
        return f"Nothing is aligned: {b} does not vary in the held-out rows, so there is nothing to predict."
    if r2.passed is None:
        why = r2.too_few or r2.too_short or "its interval is not defined for so few rows"
        return f"Undecided whether a linear map predicts {b} from {a} (held-out R² {r2.cell}): {why}."
    if not r2.passed:
        return f"Nothing is aligned: a linear map predicts {b} from {a} no better than chance (held-out R² {r2.cell})."
    if r2.estimate.low <= 0:
        return (
            f"The rows belong together, but this map predicts {b} from {a} no better than the mean of {b} does: "
            f"held-out R² {r2.cell}. Another kind of map may (--map)."
        )
    sentences = [f"A linear map predicts {b} from {a} with held-out R² {r2.cell}."]
    if controls:
        sentences += [_control_sentence(name, r2, control["r2"]) for name, control in controls.items()]
    else:
        sentences.append(
            "What the raw input alone would give is not known: add it with --raw-a and --raw-b (raw in Python)."
        )
    sentences.append("Agreement between models does not show that they are right.")
    return " ".join(sentences)


def _metrics_table(evidence: Mapping[str, Evidence]) -> Table:
    null_name = next(iter(evidence.values())).null_name
    columns = ["held out (↑ higher is better, ↓ lower)", "value", "95% interval", null_name, "p", "effect"]
    rows = []
    for one in evidence.values():
        name, *numbers = one.line
        arrow, code = name.split(" ", 1)
        rows.append([f"{arrow} {plain_name(code)} ({code})", *numbers])
    return Table("Metrics", columns, rows)


def _controls_table(rows: Controls) -> Table:
    columns = ["coordinates", *(f"{plain_name(name)} ({METRICS[name].direction} is better)" for name in BRIEF)]
    cells = [[name, *(evidence[metric].cell for metric in BRIEF)] for name, evidence in rows.items()]
    return Table("Comparison with controls", columns, cells)


# --- controls ---


def control_names(pairs: PairedLatents) -> list[str]:
    """The controls that can be computed from what both files hold."""
    names = [PCA] if pairs.has_raw else []
    if pairs.has_untrained:
        names.append(UNTRAINED)
    elif pairs.has_raw:
        names.append(RANDOM)
    return names


def _gather_controls(
    pairs: PairedLatents, fit: Fit, study: Study, shared: SharedColumn | None
) -> dict[str, dict[str, Evidence]]:
    found: dict[str, dict[str, Evidence]] = {}
    for name in control_names(pairs):
        a, b = _control_latents(name, pairs, study)
        if shared is not None and name != UNTRAINED:  # of untrained latents it is already removed
            a, b = shared.residual(a), shared.residual(b)
        found[name] = gather(a, b, fit, study, BRIEF)
    return found


def _control_latents(name: str, pairs: PairedLatents, study: Study) -> list[np.ndarray]:
    """Control latents (b, k) of both sides. Of the same raw input on both sides, the target is b itself."""
    found: list[np.ndarray] = []
    same = name != UNTRAINED and _same_raw(pairs)
    for stream, side in (("untrained a", pairs.a), ("untrained b", pairs.b)):
        if name == UNTRAINED:
            assert side.untrained is not None  # see `control_names`
            found.append(side.untrained)
            continue
        assert side.raw is not None
        if same and side is pairs.b:
            found.append(side.h)
        elif name == PCA:
            found.append(pca_control(side.raw, side.h.shape[1], study.split.fit))
        else:
            found.append(untrained_control(side.raw, side.h.shape[1], numpy_generator(study.seed, stream)))
    return found


def _same_raw(pairs: PairedLatents) -> bool:
    """Whether both models encoded the same input: controls of it would agree with themselves."""
    a, b = pairs.a.raw, pairs.b.raw
    return a is not None and b is not None and a.shape == b.shape and bool((a == b).all())


def _control_verdicts(r2: Evidence, controls: Controls) -> list[Verdict]:
    """Whether R² is above the upper confidence limit of each control's."""
    verdicts: list[Verdict] = []
    for name, evidence in controls.items():
        control = evidence["r2"].estimate
        good = f"The models align better than {name} (R² {control.value:.3f})."
        if name == RANDOM:
            good += IF_ONLY_RANDOM
        worse = control.low > r2.estimate.high
        start = "The models align worse" if worse else "The models do not align significantly better"
        interval = f"{control.value:z.3f} [{control.low:z.3f}, {control.high:z.3f}]"
        verdicts.append(
            Verdict.judge(
                CONTROL_VERDICTS[name],
                r2.estimate,
                direction="higher",
                null=r2.null.mean,
                threshold=control.high,
                good=good,
                bad=f"{start} than {name} (R² {interval}): {IF_NOT_BETTER[name]}",
            )
        )
    return verdicts


def _control_sentence(name: str, r2: Evidence, control: Evidence) -> str:
    """Lower or higher if the intervals do not overlap."""
    if r2.estimate.low > control.estimate.high:
        relation = "lower"
    elif control.estimate.low > r2.estimate.high:
        relation = "higher"
    else:
        relation = "not significantly different"
    return f"The R² of {name} is {relation}: {control.cell}."
