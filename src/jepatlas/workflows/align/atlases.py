"""What an atlas is worth, judged on states that its maps have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from jepatlas.alignment import (
    Atlas,
    ChartLatents,
    Null,
    certified_transition,
    cycle_verdicts,
    split_states,
    translation_verdicts,
)
from jepatlas.alignment.evidence import r2_null
from jepatlas.core.errors import InputError
from jepatlas.core.linear import r2
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.workflows.align.charts import chart_latents, read_certificate
from jepatlas.workflows.align.latents import read_latents
from jepatlas.workflows.align.matched import check_ids

__all__ = ["add_verdicts", "build_verdicts", "read_charts"]


def read_charts(
    paths: Sequence[Path],
    certificates: Sequence[Path] = (),
    *,
    ids: Sequence[Path] = (),
    groups: Sequence[Path] = (),
) -> list[ChartLatents]:
    """Charts from files of latents; certificates, ids and groups from files for each, in this order, or for none."""
    for what, files in {"certificates": certificates, "files of ids": ids, "files of groups": groups}.items():
        if files and len(files) != len(paths):
            raise InputError(f"There are {len(paths)} charts, but {len(files)} {what}: give one for each.")
    of_ids, of_groups = list(ids) or [None] * len(paths), list(groups) or [None] * len(paths)
    latents = [read_latents(path, ids=i, groups=g) for path, i, g in zip(paths, of_ids, of_groups, strict=True)]
    if any(one.ids is None for one in latents) and len({len(one.h) for one in latents}) > 1:
        rows = ", ".join(f"{one.name} has {len(one.h)} rows" for one in latents)
        raise InputError(f"{rows}, and not all have ids: which rows show the same state? Store their ids as 'ids'.")
    check_ids(*latents)
    known = [read_certificate(*one) for one in zip(certificates, latents, strict=False)] or [None] * len(paths)
    return [chart_latents(one, summary) for one, summary in zip(latents, known, strict=True)]


def build_verdicts(charts: Sequence[ChartLatents], *, seed: int) -> list[Verdict]:
    """Of an atlas of a part of the states, scored on the others: translations, cycles, certified limits."""
    fitted, held = split_states(charts, numpy_generator(seed, "atlas split"))
    if min(len(chart.ids) for chart in fitted) < 2:  # too few to leave some out; `Atlas.build` says whether they do
        return []
    atlas, rng = Atlas.build(fitted), numpy_generator(seed, "atlas")
    verdicts = translation_verdicts(atlas, held, rng)
    if len(charts) > 2 and len(held[0].ids) > 1:
        verdicts += cycle_verdicts(atlas, fitted, held[0], rng)
    return [*verdicts, *_certified(atlas, held, rng)]


def add_verdicts(atlas: Atlas, newcomer: ChartLatents, *, seed: int) -> list[Verdict]:
    """Of a newcomer fitted on a part of the anchors: how well its latents of the others fall on their places."""
    atlas.add(newcomer)  # says what is wrong with one that cannot join
    seen = newcomer.take(np.flatnonzero(np.isin(newcomer.ids, atlas.anchors.ids)))
    if len(seen.ids) < 4:  # too few to leave some out
        return []
    (fitted,), (held,) = split_states([seen], numpy_generator(seed, "newcomer split"))
    order = np.argsort(atlas.anchors.ids)
    places = atlas.anchors.coordinates[order[np.searchsorted(atlas.anchors.ids, held.ids, sorter=order)]]
    if held.groups is not None and len(np.unique(held.groups)) < 2:
        return []
    told, rng = atlas.add(fitted).chart(newcomer.name).into.apply(held.latents), numpy_generator(seed, "newcomer")
    null = r2_null(places, told, rng, held.groups)
    found = bootstrap(lambda w: {"r2": r2(places, told, w)}, len(told), rng, groups=held.groups)["r2"]
    if len(atlas.anchors.ids) <= atlas.width:
        return [_unjudged(newcomer.name, found, null, len(atlas.anchors.ids), atlas.width)]
    return [_joins_verdict(newcomer.name, found, null)]


def _unjudged(name: str, found: Estimate, null: Null, anchors: int, width: int) -> Verdict:
    """In a frame that its anchors have made white, as few of them as it is wide lie at right angles to each other: none
    can be told from the others, and any pairing has the same R²."""
    return Verdict.judge(
        f"joins.{name}",
        found,
        direction="higher",
        null=null.mean,
        good=f"Whether '{name}' falls on its place cannot be judged: {anchors} anchors are no more than the {width} "
        f"directions of the frame, and R² is then the same for any pairing. Agree on more than {width} states.",
    )


def _joins_verdict(name: str, found: Estimate, null: Null) -> Verdict:
    what = f"Held-out R² of the anchors' places in the frame from '{name}'."
    blind = "Directions that it does not see count against it."
    if found.low > null.limit:
        bad = (
            f"{what} It falls on them better than chance, but not beyond doubt better than their mean: its ids are "
            f"right, but it sees too little of the frame, or it is placed by too few anchors. {blind}"
        )
    else:
        bad = (
            f"{what} It does not fall on them beyond doubt better than chance: are its ids right? If they are, it "
            "sees nothing of what the others see."
        )
    return Verdict.judge(
        f"joins.{name}",
        found,
        direction="higher",
        null=null.mean,
        threshold=max(0.0, null.limit),
        good=f"{what} {blind}",
        bad=bad,
    )


def _certified(atlas: Atlas, held: Sequence[ChartLatents], rng: np.random.Generator) -> list[Verdict]:
    """Prediction beside measurement for every pair of certified charts."""
    identified = [chart for chart in held if chart.certificate is not None and chart.certificate.identified]
    verdicts = []
    for number, a in enumerate(identified):
        for b in identified[number + 1 :]:
            _, rows_a, rows_b = np.intersect1d(a.ids, b.ids, assume_unique=True, return_indices=True)
            one, other = a.take(rows_a), b.take(rows_b)
            groups = one.groups if one.groups is not None else other.groups
            count = len(rows_a) if groups is None else len(np.unique(groups))
            if count > 2 and a.latents.shape[1] == b.latents.shape[1]:
                both = (a.name, one.latents), (b.name, other.latents)
                found = certified_transition(atlas, *both, rng, groups=groups)
                verdicts += [replace(verdict, name=f"{verdict.name}.{a.name}.{b.name}") for verdict in found]
    return verdicts
