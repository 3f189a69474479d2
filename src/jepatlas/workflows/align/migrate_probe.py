"""Migrate a probe from one model to another, and record its accuracy there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from jepatlas.alignment import (
    Conditioning,
    Evidence,
    FittedMap,
    LinearProbe,
    MigrationReport,
    PairedLatents,
    migrate,
    migrate_back,
    migration_report,
    time_blocks,
)
from jepatlas.core.errors import InputError
from jepatlas.core.figures import Bars, BarSeries
from jepatlas.core.linear import Split
from jepatlas.core.linear_map import CONDITION_LIMIT, LinearMap
from jepatlas.core.processes import limited_threads
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate, Record, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.workflows.align.align_options import MapKind, Through
from jepatlas.workflows.align.align_study import Fit, HasMap, Study, fit_map, gather
from jepatlas.workflows.align.probe_split import (
    ProbeSplit,
    check_widths,
    known_rows,
    not_scored_note,
    probe_split,
)

__all__ = ["Migration", "map_verdict", "migrate_between"]


@dataclass(frozen=True)
class Migration:
    """The probe for the target, the source's probe, the map between the models, and the record."""

    probe: LinearProbe
    source: LinearProbe
    map: LinearMap
    report: MigrationReport
    record: Record
    back: LinearMap | None = None
    """The map B → A, if the probe was migrated through it."""
    failure: str = ""
    """Why the migrated probe is useless (the map is no better than chance, or the probe than the majority class);
    empty if it is not."""
    remedy: str = ""
    """What to do in case of failure."""


@limited_threads()
def migrate_between(
    pairs: PairedLatents,
    kind: MapKind,
    *,
    limit: float,
    seed: int,
    through: Through | None = None,
    probe: LinearProbe | None = None,
    fitted: LinearMap | None = None,
    blocks: int | None = None,
    share: float | None = None,
) -> Migration:
    """Migrate a probe from a to b. A probe or map that is not given is fitted on rows that are not held out.

    If both are fitted, each gets half of these rows (see `migration_report`). By default the probe is migrated
    through a map B → A; a given map A → B is inverted.
    """
    labels = pairs.labels
    if labels is None:
        raise InputError(f"{pairs.a.name} has no labels, so no probe can be scored. Give them with --labels.")
    check_widths(pairs, probe, fitted)
    if fitted is not None and through == "backwards":
        raise InputError(
            "A given map A → B can only be inverted. Leave out --through backwards, or leave out --map to have maps "
            "in both directions fitted."
        )
    given = [name for name, one in (("probe", probe), ("map", fitted)) if one is not None]
    split = probe_split(pairs, labels, given, blocks=blocks, share=share, seed=seed)
    groups = pairs.groups if blocks is None else time_blocks(len(pairs), blocks)

    source, known = probe, split.score
    if source is None:
        source = LinearProbe.fit(pairs.a.h[split.probe], labels[split.probe])
        known = known_rows(labels, split, stratified=pairs.groups is not None)
    maps = _fit_maps(pairs, kind, split, groups, fitted, backwards=fitted is None and through != "inverse")
    study = Study(Split(split.map, split.score), groups, blocks, seed)
    r2 = gather(pairs.a.h, pairs.b.h, maps.refit, study, ["r2"])["r2"]
    chance = _chance_failure(pairs, r2)
    if maps.back is None:
        migrated = _migrate_inverse(source, maps.forward, limit, pairs.a.h[split.probe], chance)
    else:
        migrated = migrate_back(source, maps.back)

    score = _Scorer(pairs, labels, split, groups, source, maps, limit, seed)
    report = score(known)
    if probe is not None:
        report = _with_all_rows(report, score(np.arange(len(pairs))), given)
    failure, remedy = _failure(pairs, chance, report)
    notes = [*not_scored_note(labels, split.score, known), *pairs.left_out_note]
    record = Record(
        title=f"A probe of {pairs.a.name}, migrated to {pairs.b.name}",
        summary=" ".join([failure or _answer(report), _summary(pairs, report, given), *notes]),
        provenance=provenance(seed) | _provenance(kind, given, split, known, maps.back) | pairs.provenance,
        verdicts=(
            map_verdict(r2),
            *report.verdicts(),
            *_conditioning_verdicts(maps.forward, maps.own, len(split.map), limit if maps.back is None else None),
        ),
        figures=(_accuracies(report, pairs.a.name, pairs.b.name),),
    )
    return Migration(migrated, source, maps.forward, report, record, maps.back, failure, remedy)


@dataclass(frozen=True)
class _Maps:
    """The map A → B, and the map B → A if the probe goes through it."""

    forward: LinearMap
    own: FittedMap | None
    """The fit of `forward`; None for a given map."""
    back: LinearMap | None
    refit: Fit
    """How `forward` is fitted to other pairs, such as permuted ones."""


def _fit_maps(
    pairs: PairedLatents,
    kind: MapKind,
    split: ProbeSplit,
    groups: np.ndarray | None,
    fitted: LinearMap | None,
    *,
    backwards: bool,
) -> _Maps:
    if fitted is not None:
        return _Maps(fitted, None, None, _GivenMap(fitted))
    a, b = pairs.a.h[split.map], pairs.b.h[split.map]
    map_groups = None if groups is None else groups[split.map]
    own = fit_map(kind, a, b, map_groups)
    back = fit_map(kind, b, a, map_groups).map_ if backwards else None
    return _Maps(own.map_, own, back, partial(fit_map, kind))


@dataclass(frozen=True)
class _Scorer:
    """Scores the source probe and its migration on any rows."""

    pairs: PairedLatents
    labels: np.ndarray
    split: ProbeSplit
    groups: np.ndarray | None
    source: LinearProbe
    maps: _Maps
    limit: float
    seed: int

    def __call__(self, rows: np.ndarray) -> MigrationReport:
        split, groups = self.split, self.groups
        several = groups is None or len(np.unique(groups[split.map])) > 1
        return migration_report(
            self.source,
            self.maps.forward,
            self.pairs.a.h,
            self.pairs.b.h,
            self.labels,
            split=Split(split.probe, rows),
            limit=self.limit,
            back=self.maps.back,
            groups=groups,
            distilled=split.map if several else None,  # a distilled head chooses its penalty by groups
            rng=numpy_generator(self.seed, "migrate"),
        )


@dataclass(frozen=True)
class _GivenMap:
    """A map that is kept for all pairs, also permuted ones."""

    map_: LinearMap

    def __call__(self, a: np.ndarray, b: np.ndarray, groups: np.ndarray | None) -> HasMap:
        return self


def _migrate_inverse(
    probe: LinearProbe, forward: LinearMap, limit: float, latents: np.ndarray, chance: str
) -> LinearProbe:
    try:
        return migrate(probe, forward, limit=limit, latents=latents)
    except InputError as error:
        if chance:  # the likely reason: the models are unrelated
            raise InputError(f"{chance} {error}") from error
        raise


def _chance_failure(pairs: PairedLatents, r2: Evidence) -> str:
    if r2.passed is not False:
        return ""
    return (
        f"The migration fails: the map predicts {pairs.b.name} from {pairs.a.name} no better than chance (held-out R² "
        f"{r2.cell})."
    )


def _failure(pairs: PairedLatents, chance: str, report: MigrationReport) -> tuple[str, str]:
    """Why the migrated probe is useless, and what to do; empty if it is not."""
    if chance:
        return chance, "Check that rows are paired correctly. If they are, train a probe on B."
    if not report.below_majority:
        return "", ""
    failure = (
        f"The migration fails: on {pairs.b.name} the migrated probe is no better than predicting the majority class "
        f"({report.migrated.value:.1%} against {report.majority:.1%}, a difference of {_gain(report)})."
    )
    return failure, report.remedy


def map_verdict(r2: Evidence) -> Verdict:
    """The verdict of the map by p, without a threshold; a map worse than the target's mean does not pass."""
    judged = replace(r2.verdict, name="map_r2", threshold=None)
    if not judged.passed or judged.value > 0:
        return judged
    why = "The map is worse than predicting the target's mean, so what it carries is not reliable."
    return replace(judged, passed=False, advice=f"{why} {judged.advice}")


def _conditioning_verdicts(forward: LinearMap, own: FittedMap | None, pairs: int, limit: float | None) -> list[Verdict]:
    """Verdicts on the conditioning of the map.

    The limit of the condition number applies to the inverse; it is None if the inverse is not used. The number of
    pairs that a given map was fitted on is unknown.
    """
    moments = None if own is None else own.moments_
    found = Conditioning.of(forward, moments, CONDITION_LIMIT if limit is None else limit)
    verdicts: list[Verdict] = []
    for one in found.verdicts(pairs):
        if one.name == "pairs_beyond_dimensions" and own is None:
            continue  # unknown
        if one.name == "condition" and limit is None:
            advice = f"κ = {found.condition:.3g}. It has no threshold, because the inverse of this map is not used."
            verdicts.append(replace(one, passed=None, threshold=None, advice=advice))
        else:
            verdicts.append(one)
    return verdicts


def _with_all_rows(held: MigrationReport, every: MigrationReport, given: Sequence[str]) -> MigrationReport:
    """Scores on all rows for what was not fitted here: the source's probe and, with a given map, the migrated one."""
    found = replace(held, source=every.source, untranslated=every.untranslated)
    if "map" not in given:
        return found
    return replace(found, migrated=every.migrated, loss=every.loss, beyond=every.beyond, majority=every.majority)


def _provenance(
    kind: MapKind, given: Sequence[str], split: ProbeSplit, known: np.ndarray, back: LinearMap | None
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "map": "given" if "map" in given else kind,
        "the probe went through": "the inverse of the map" if back is None else "a map fitted backwards",
        "pairs fitted": 0 if "map" in given else len(split.map),
        "rows the probe was trained on": "given" if "probe" in given else len(split.probe),
        "pairs held out": len(split.score),
    }
    if len(known) < len(split.score):
        found["held-out rows not scored"] = len(split.score) - len(known)
    if given:
        found["not known"] = _given_note(given)
    return found


def _given_note(given: Sequence[str]) -> str:
    if len(given) == 1:
        return f"The {given[0]} was given; it may have been fitted on these rows."
    return f"The {' and the '.join(given)} were given; they may have been fitted on these rows."


def _answer(report: MigrationReport) -> str:
    """What the interval of the gain over the majority class decides."""
    answer = "The migrated probe works" if report.beyond.low > 0 else "Undecided whether the migrated probe works"
    return f"{answer}: its accuracy minus that of the majority class is {_gain(report)}."


def _gain(report: MigrationReport) -> str:
    gain = report.beyond
    return f"{100 * gain.value:+.1f} percentage points [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]"


def _accuracies(report: MigrationReport, a: str, b: str) -> Bars:
    """A bar with its interval for each probe, and the majority class."""
    estimates = {
        f"source probe on {a}": report.source,
        f"migrated to {b}": report.migrated,
        "migrated, by the inverse map": report.inverse,
        f"not translated, on {b}": report.untranslated,
        f"distilled on {b}": report.distilled,
        f"trained on {b}": report.target,
        "majority class": Estimate.exact(report.majority, report.migrated.n),
    }
    shown = {name: estimate for name, estimate in estimates.items() if estimate is not None}
    values = list(shown.values())
    low = [one.low for one in values]
    high = [one.high for one in values]
    return Bars(
        title="Accuracy of the probes",
        note="Held-out rows, with 95% intervals.",
        names=list(shown),
        series=[BarSeries("accuracy", [one.value for one in values], low, high)],
        y_label="accuracy",
    )


def _summary(pairs: PairedLatents, report: MigrationReport, given: Sequence[str]) -> str:
    moved, home = report.migrated, report.source
    a, b, n = pairs.a.name, pairs.b.name, len(pairs)
    moved_rows = f"all {moved.n}" if moved.n == n else "held-out"
    home_rows = f"all {home.n}" if home.n == n else "held-out"
    inverse = f", {report.inverse.value:.1%} through the inverse map" if report.inverse is not None else ""
    accuracy = f"{moved.value:.1%} [{moved.low:.1%}, {moved.high:.1%}]"
    sentences = [
        f"The migrated probe has accuracy {accuracy} on {moved_rows} rows of {b}{inverse}.",
        f"The source probe has {home.value:.1%} on {home_rows} rows of {a}. On held-out rows of {b} a probe trained "
        f"there has {report.target.value:.1%}, and the majority class {report.majority:.1%}.",
    ]
    if given:
        sentences.append(_given_note(given))
    return " ".join(sentences)
