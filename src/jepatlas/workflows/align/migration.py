"""The migration of a probe as a record: what it is worth on the other model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from jepatlas.alignment import (
    Evidence,
    FittedMap,
    LinearProbe,
    MigrationReport,
    migrate,
    migrate_back,
    migration_report,
    time_blocks,
)
from jepatlas.alignment.maps import Conditioning
from jepatlas.alignment.paired import PairedLatents
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.workflows.align.alignment import MapKind, fit_map
from jepatlas.workflows.align.evidence import HasMap, Study, gather
from jepatlas.workflows.align.probe_rows import Parts, check_widths, known_rows, parts, unscored

__all__ = ["Migration", "Through", "migrate_between"]

Through = Literal["backwards", "inverse"]
"""Which way a probe goes: by a map B → A that is fitted on the same pairs, or by the inverse of the map A → B."""


@dataclass(frozen=True)
class Migration:
    """The probe for the target, its source, the map it came through, and the record of what it is worth."""

    probe: LinearProbe
    source: LinearProbe
    map: LinearMap
    report: MigrationReport
    record: Record
    back: LinearMap | None = None
    """The map B → A, where the probe came through that."""
    nothing: str = ""
    """Why nothing is carried: the map is no better than chance, or the probe than the commonest class. Empty where
    something is."""
    instead: str = ""
    """What to do then."""


def migrate_between(
    matched: PairedLatents,
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
    """Carry a probe from a to b; what is not given, probe or map, is fitted on rows that are not held out.

    Where both are fitted here, each has one half of these: see `migration_report`. A probe goes `through` a map that is
    fitted backwards, unless a map is given: that has only its inverse.
    """
    a, b, labels = matched.a.h, matched.b.h, matched.labels
    if labels is None:
        raise InputError(f"{matched.a.name} has no labels, so no probe can be scored. Give them with --labels.")
    check_widths(matched, probe, fitted)
    if fitted is not None and through == "backwards":
        raise InputError(
            "A map A → B is given, and only its inverse leads back. Leave out --through backwards, or "
            "--map: both maps are then fitted here."
        )
    backwards = fitted is None and through != "inverse"
    given = tuple(name for name, one in {"probe": probe, "map": fitted}.items() if one is not None)
    split = parts(matched, labels, given, blocks=blocks, share=share, seed=seed)
    rows, mapped, held = split
    groups = matched.groups if blocks is None else time_blocks(len(a), blocks)
    source, known = probe, held
    if source is None:
        source = LinearProbe.fit(a[rows], labels[rows])
        known = known_rows(labels, split, dealt=matched.groups is not None)
    alike = None if groups is None else groups[mapped]
    own, there = None, fitted
    if there is None:
        own = fit_map(kind, a[mapped], b[mapped], alike)
        there = own.map_
    back = fit_map(kind, b[mapped], a[mapped], alike).map_ if backwards else None
    anew = _Given(there) if own is None else partial(fit_map, kind)
    r2 = gather(a, b, anew, Study(Split(mapped, held), groups, blocks, seed), ["r2"])["r2"]
    chance = _chance(matched, r2)
    carried = _carried(source, there, limit, a[rows], chance) if back is None else migrate_back(source, back)
    score = partial(_scored, (a, b, labels), (source, there), split, groups, limit=limit, seed=seed, back=back)
    found = score(known)
    if probe is not None:
        found = _widened(found, score(np.arange(len(a))), given)
    nothing, instead = _nothing(matched, chance, found)
    record = Record(
        title=f"A probe of {matched.a.name}, for {matched.b.name}",
        summary=" ".join(
            [*nothing, _summary(matched, found, given), *unscored(labels, held, known), *matched.left_out_note]
        ),
        provenance=provenance(seed) | _about(kind, given, split, known, back) | matched.provenance,
        verdicts=(
            _map_verdict(r2),
            *found.verdicts(),
            *_judged(there, own, len(mapped), limit if back is None else None),
        ),
    )
    return Migration(carried, source, there, found, record, back, " ".join(nothing), instead)


def _nothing(matched: PairedLatents, chance: list[str], found: MigrationReport) -> tuple[list[str], str]:
    """Why nothing is carried, where that is so, and what to do."""
    if chance:
        return chance, "Are the rows paired rightly? If they are, train a probe on B."
    if not found.reads_nothing:
        return [], ""
    said = (
        f"Nothing is carried: on {matched.b.name} the migrated probe is surely no better than always saying the "
        f"commonest class ({found.migrated.value:.1%} against {found.majority:.1%})."
    )
    return [said], found.what_to_do


def _map_verdict(r2: Evidence) -> Verdict:
    """By p, as for any alignment, so that no threshold stands beside the value; but what is worse than the mean of the
    target carries nothing, however much worse shuffled pairs are."""
    judged = replace(r2.verdict, name="map_r2", threshold=None)
    if not judged.passed or judged.value > 0:
        return judged
    why = "The map is worse than the mean of the target would be: what it carries is not to be relied on."
    return replace(judged, passed=False, advice=f"{why} {judged.advice}")


def _carried(
    probe: LinearProbe, through: LinearMap, limit: float, latents: np.ndarray, chance: list[str]
) -> LinearProbe:
    try:
        return migrate(probe, through, limit=limit, latents=latents)
    except InputError as error:  # a map of unrelated models is no map to fit on more pairs
        raise InputError(" ".join([*chance, str(error)])) from error


def _scored(
    data: tuple[np.ndarray, np.ndarray, np.ndarray],
    fitted: tuple[LinearProbe, LinearMap],
    split: Parts,
    groups: np.ndarray | None,
    scored: np.ndarray,
    *,
    limit: float,
    seed: int,
    back: LinearMap | None,
) -> MigrationReport:
    """On some rows of both latents and labels. A distilled head, which chooses its penalty by groups, needs two."""
    several = groups is None or len(np.unique(groups[split.mapped])) > 1
    return migration_report(
        *fitted,
        *data,
        split=Split(split.probed, scored),
        limit=limit,
        back=back,
        groups=groups,
        distilled=split.mapped if several else None,
        rng=numpy_generator(seed, "migrate"),
    )


def _about(
    kind: MapKind, given: tuple[str, ...], split: Parts, known: np.ndarray, back: LinearMap | None
) -> dict[str, Any]:
    left = len(split.scored) - len(known)
    return {
        "map": "given" if "map" in given else kind,
        "the probe went through": "the inverse of the map" if back is None else "a map fitted backwards",
        "pairs fitted": 0 if "map" in given else len(split.mapped),
        "rows the probe was trained on": "given" if "probe" in given else len(split.probed),
        "pairs held out": len(split.scored),
        **({"held-out rows not scored": left} if left else {}),
        **({"not known": _unknown(given)} if given else {}),
    }


@dataclass(frozen=True)
class _Given:
    """A map that is not fitted anew, whatever the pairs are."""

    map_: LinearMap

    def __call__(self, a: np.ndarray, b: np.ndarray, groups: np.ndarray | None) -> HasMap:
        return self


def _judged(fitted: LinearMap, own: FittedMap | None, pairs: int, limit: float | None) -> list[Verdict]:
    """What a map can say; of a given one nobody knows how many pairs it was fitted on. The limit is of its inverse,
    None where nothing goes through that."""
    moments = None if own is None else own.moments_
    found = Conditioning.of(fitted, moments) if limit is None else Conditioning.of(fitted, moments, limit)
    judged = found.verdicts(pairs)
    return [one for one in judged if own is not None or one.name != "pairs_beyond_dimensions"]


def _widened(held: MigrationReport, every: MigrationReport, given: tuple[str, ...]) -> MigrationReport:
    """Scores on every row of what was not fitted here: the source's, and where the map was given the migrated one's."""
    found = replace(held, source=every.source, untranslated=every.untranslated)
    if "map" not in given:
        return found
    return replace(found, migrated=every.migrated, loss=every.loss, beyond=every.beyond, majority=every.majority)


def _unknown(given: tuple[str, ...]) -> str:
    one = len(given) == 1
    were, have = ("was", "it has") if one else ("were", "they have")
    return f"The {' and the '.join(given)} {were} given: whether {have} seen these rows is not known."


def _chance(matched: PairedLatents, r2: Evidence) -> list[str]:
    told = f"{matched.b.name} from {matched.a.name}"
    said = f"Nothing is carried: the map tells {told} no better than chance (held-out R² {r2.cell})."
    return [said] if r2.passed is False else []


def _summary(matched: PairedLatents, found: MigrationReport, given: tuple[str, ...]) -> str:
    moved, home, a, b = found.migrated, found.source, matched.a.name, matched.b.name
    scored, own = (f"all {one.n}" if one.n == len(matched.a.h) else "held-out" for one in (moved, home))
    other = f" (through the inverse {found.inverse.value:.1%})" if found.inverse is not None else ""
    told = (
        f"The migrated probe is right on {moved.value:.1%} of {scored} rows of {b} [{moved.low:.1%}, {moved.high:.1%}]"
        f"{other},"
        f" the source probe on {home.value:.1%} of {own} rows of {a}, one trained on {b} on {found.target.value:.1%} "
        f"of held-out ones; the commonest class alone gives {found.majority:.1%}."
    )
    return " ".join([told, *([_unknown(given)] if given else [])])
