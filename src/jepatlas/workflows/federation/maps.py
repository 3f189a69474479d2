"""The common atlas: every member fits it from the same latents, and publishes its own chart.

It is put together from the charts as their owners published them, and from what belongs to nobody (the anchors' places,
verdicts on cycles) as the first by name did. So it is the same to the last bit for all, even where machines round
differently. No member has a part that another could not have: names only break the tie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jepatlas.alignment import Atlas, ChartLatents
from jepatlas.alignment.atlas.atlas_folder import load_sealed_atlas
from jepatlas.core.errors import InputError
from jepatlas.core.records import Verdict
from jepatlas.workflows.align import add_verdicts, build_verdicts

__all__ = ["Part", "add_newcomers", "judge_charts", "newcomer_part", "own_part", "read_part", "together"]


def judge_charts(charts: Sequence[ChartLatents], seed: int) -> list[Verdict]:
    """What anchors that were kept back say; nothing, where all of them belong together and none can be."""
    groups = charts[0].groups
    return [] if groups is not None and len(np.unique(groups)) < 2 else build_verdicts(charts, seed=seed)


def own_part(charts: Sequence[ChartLatents], name: str, seed: int) -> Atlas:
    """What `name` publishes: its chart, the anchors' places, and verdicts on translations from it."""
    whole, first = Atlas.build(charts, anchors=len(charts[0].ids)), min(chart.name for chart in charts)
    judged = [one for one in judge_charts(charts, seed) if _owner(one, first) == name]
    return Atlas((whole.chart(name),), whole.anchors, tuple(judged))


def _owner(verdict: Verdict, first: str) -> str:
    """Names have no dots in them."""
    kind, *of = verdict.name.split(".")
    return of[0] if kind == "translation" else first


@dataclass(frozen=True)
class Part:
    """What a member published of the atlas."""

    atlas: Atlas
    seal: str
    """The hash of the very bytes that it was read from."""


def read_part(place: Path) -> Part:
    """One member's part; its folder has its name."""
    part = Part(*load_sealed_atlas(place))
    if part.atlas.names != [place.name]:
        raise InputError(
            f"{place} must hold the chart '{place.name}' and no other, but it holds {', '.join(part.atlas.names)}."
        )
    return part


def together(told: Mapping[str, Part]) -> Atlas:
    """The atlas of these parts, in the order of names."""
    parts, named = {name: one.atlas for name, one in told.items()}, sorted(told)
    first = parts[named[0]]
    for name in named:
        _refuse_other_anchors(name, parts[name], first)
    verdicts = tuple(verdict for name in named for verdict in parts[name].judged or ())
    return Atlas(tuple(parts[name].charts[0] for name in named), first.anchors, verdicts)


def newcomer_part(atlas: Atlas, newcomer: ChartLatents, seed: int) -> Atlas:
    """What one who joins later publishes: its chart, fitted to the anchors that it has seen; no latents at all."""
    judged = tuple(add_verdicts(atlas, newcomer, seed=seed))
    return Atlas((atlas.add(newcomer).charts[-1],), atlas.anchors, judged)


def add_newcomers(atlas: Atlas, told: Mapping[str, Part]) -> Atlas:
    """With those who joined later, in the order of names; all else stays as it is."""
    for name in sorted(told):
        part = told[name].atlas
        _refuse_other_anchors(name, part, atlas)
        atlas = replace(atlas, charts=(*atlas.charts, part.charts[0])).judge(part.judged or ())
    return atlas


def _refuse_other_anchors(name: str, part: Atlas, atlas: Atlas) -> None:
    if part.width != atlas.width or not np.array_equal(part.anchors.ids, atlas.anchors.ids):
        raise InputError(
            f"The map that '{name}' sent leads into another frame: of {part.width} dimensions and "
            f"{len(part.anchors.ids)} anchors, where {atlas.width} and {len(atlas.anchors.ids)}, or other "
            "states, were agreed on. Delete what it sent, and let it start anew."
        )
