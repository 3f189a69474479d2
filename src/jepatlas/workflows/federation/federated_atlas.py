"""The common atlas of a federation: every member fits it to the same latents and publishes its own chart.

The atlas is assembled from the published charts; what belongs to no member (anchor coordinates, verdicts on cycles) is
taken from the first member by name. So it is the same for all, bit for bit, even if machines round differently.
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

__all__ = ["Part", "add_newcomers", "assemble", "judge_charts", "newcomer_part", "own_part", "read_part"]


def judge_charts(charts: Sequence[ChartLatents], seed: int) -> list[Verdict]:
    """Verdicts on held-out anchors; empty if all anchors are of one group, so that none can be held out."""
    groups = charts[0].groups
    if groups is not None and len(np.unique(groups)) < 2:
        return []
    return build_verdicts(charts, seed=seed)


def own_part(charts: Sequence[ChartLatents], name: str, seed: int) -> Atlas:
    """What member `name` publishes: its chart, the anchors, and verdicts on translations from it."""
    whole = Atlas.build(charts, anchors=len(charts[0].ids))
    first = min(chart.name for chart in charts)
    judged = [one for one in judge_charts(charts, seed) if _owner(one, first) == name]
    return Atlas((whole.chart(name),), whole.anchors, tuple(judged))


def _owner(verdict: Verdict, first: str) -> str:
    """The member that publishes a verdict. Names of members have no dots."""
    kind, *members = verdict.name.split(".")
    return members[0] if kind == "translation" else first


@dataclass(frozen=True)
class Part:
    """A member's published part of the atlas."""

    atlas: Atlas
    seal: str
    """Hash of the bytes that were read."""


def read_part(place: Path) -> Part:
    """Read one member's part; its folder has the name of its chart."""
    part = Part(*load_sealed_atlas(place))
    if part.atlas.names != [place.name]:
        raise InputError(
            f"{place} must hold the chart '{place.name}' only, but it holds {', '.join(part.atlas.names)}."
        )
    return part


def assemble(parts: Mapping[str, Part]) -> Atlas:
    """The atlas of these parts, in order of names."""
    names = sorted(parts)
    first = parts[names[0]].atlas
    for name in names:
        _check_anchors(name, parts[name].atlas, first)
    verdicts = tuple(verdict for name in names for verdict in parts[name].atlas.judged or ())
    return Atlas(tuple(parts[name].atlas.charts[0] for name in names), first.anchors, verdicts)


def newcomer_part(atlas: Atlas, newcomer: ChartLatents, seed: int) -> Atlas:
    """What a member that joins later publishes: its chart, fitted to the anchors it has. It sends no latents."""
    judged = tuple(add_verdicts(atlas, newcomer, seed=seed))
    return Atlas((atlas.add(newcomer).charts[-1],), atlas.anchors, judged)


def add_newcomers(atlas: Atlas, parts: Mapping[str, Part]) -> Atlas:
    """The atlas with members that joined later, in order of names."""
    for name in sorted(parts):
        part = parts[name].atlas
        _check_anchors(name, part, atlas)
        atlas = replace(atlas, charts=(*atlas.charts, part.charts[0])).judge(part.judged or ())
    return atlas


def _check_anchors(name: str, part: Atlas, atlas: Atlas) -> None:
    if part.width != atlas.width or not np.array_equal(part.anchors.ids, atlas.anchors.ids):
        raise InputError(
            f"The map of '{name}' has a frame of {part.width} dimensions and {len(part.anchors.ids)} anchors, but "
            f"{atlas.width} and {len(atlas.anchors.ids)}, or other states, were agreed on. Delete what it sent, and "
            "start it again."
        )
