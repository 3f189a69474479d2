"""Verdicts on an atlas from held-out states, and the sentences that summarise them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from jepatlas.alignment import (
    Atlas,
    ChartLatents,
    Null,
    certified_transition,
    cycle_verdicts,
    r2_null,
    shared_states,
    split_states,
    translation_verdicts,
)
from jepatlas.core.linear import r2
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap

__all__ = ["add_verdicts", "build_verdicts", "translation_note", "translations_summary"]

FEWEST = 4
"""Fewest anchors of a new chart of which some can be held out."""
MOST_NAMED = 6
"""Pairs of charts that a sentence names."""


def build_verdicts(charts: Sequence[ChartLatents], *, seed: int) -> list[Verdict]:
    """Verdicts on translations, cycles and certified limits, from an atlas of part of the states."""
    fitted, held = split_states(charts, numpy_generator(seed, "atlas split"))
    if min(len(chart.ids) for chart in fitted) < 2:  # too few states to hold some out
        return []
    atlas, rng = Atlas.build(fitted), numpy_generator(seed, "atlas")
    verdicts = translation_verdicts(atlas, held, rng)
    if len(charts) > 2 and len(held[0].ids) > 1:
        verdicts += cycle_verdicts(atlas, fitted, held[0], rng)
    return [*verdicts, *_certified_verdicts(atlas, held, rng)]


def _certified_verdicts(atlas: Atlas, held: Sequence[ChartLatents], rng: np.random.Generator) -> list[Verdict]:
    """Predicted limit and measured error of the map between every pair of identified charts."""
    identified = [chart for chart in held if chart.certificate is not None and chart.certificate.identified]
    verdicts: list[Verdict] = []
    for a, b in combinations(identified, 2):
        one, other = shared_states(a, b)
        groups = one.groups if one.groups is not None else other.groups
        count = len(one.ids) if groups is None else len(np.unique(groups))
        if count > 2 and a.latents.shape[1] == b.latents.shape[1]:
            found = certified_transition(atlas, (a.name, one.latents), (b.name, other.latents), rng, groups=groups)
            verdicts += [replace(verdict, name=f"{verdict.name}.{a.name}.{b.name}") for verdict in found]
    return verdicts


def add_verdicts(atlas: Atlas, newcomer: ChartLatents, *, seed: int) -> list[Verdict]:
    """The verdict on a new chart: held-out R² of the anchors' coordinates in the frame."""
    atlas.add(newcomer)  # raises InputError if the chart cannot be added
    seen = newcomer.take(np.flatnonzero(np.isin(newcomer.ids, atlas.anchors.ids)))
    if len(seen.ids) < FEWEST:
        return []
    (fitted,), (held,) = split_states([seen], numpy_generator(seed, "newcomer split"))
    order = np.argsort(atlas.anchors.ids)
    places = atlas.anchors.coordinates[order[np.searchsorted(atlas.anchors.ids, held.ids, sorter=order)]]
    if held.groups is not None and len(np.unique(held.groups)) < 2:
        return []
    predicted = atlas.add(fitted).chart(newcomer.name).into.apply(held.latents)
    rng = numpy_generator(seed, "newcomer")
    null = r2_null(places, predicted, rng, held.groups)
    found = bootstrap(lambda w: {"r2": r2(places, predicted, w)}, len(predicted), rng, groups=held.groups)["r2"]
    return [_joins_verdict(newcomer.name, found, null, len(atlas.anchors.ids), atlas.width)]


def _joins_verdict(name: str, found: Estimate, null: Null, anchors: int, width: int) -> Verdict:
    if anchors <= width:
        # The frame whitens its anchors, so that few of them are orthogonal: any pairing has the same R².
        return Verdict.judge(
            f"joins.{name}",
            found,
            direction="higher",
            null=null.mean,
            good=f"Not judged whether '{name}' agrees with the frame: with {anchors} anchors for {width} directions, "
            f"R² is the same for any pairing. Use more than {width} anchors.",
        )
    what = f"Held-out R² of the anchors' coordinates in the frame, predicted from '{name}'."
    unseen = "Directions that it lacks count against it."
    if found.low > null.limit:
        bad = (
            f"{what} It is better than chance but not significantly better than the mean: the ids are right, but the "
            f"chart lacks too many directions of the frame, or has too few anchors. {unseen}"
        )
    else:
        bad = (
            f"{what} It is not significantly better than chance. Check its ids; if they are right, the chart "
            "has no direction in common with the others."
        )
    return Verdict.judge(
        f"joins.{name}",
        found,
        direction="higher",
        null=null.mean,
        threshold=max(0.0, null.limit),
        good=f"{what} {unseen}",
        bad=bad,
    )


def translations_summary(names: Sequence[str], verdicts: Sequence[Verdict] | None) -> str:
    """Which charts translate into each other, and which joined later, from the verdicts stored with an atlas."""
    if verdicts is None:
        return (
            "Not judged: this atlas has no verdicts from held-out states. Whether its charts translate into each "
            "other is not known."
        )
    by_name = {one.name: one for one in verdicts}
    later = [name for name in names if f"joins.{name}" in by_name]
    first = [name for name in names if name not in later]
    sentences = [_pairs_summary(first, by_name)] if len(first) > 1 else []
    for name in later:
        one = by_name[f"joins.{name}"]
        agrees = "agrees" if one.passed else "does not agree"
        sentences.append(f"{name} joined later and {agrees} with its anchors (R² {_number(one)}).")
    return " ".join(sentences)


def translation_note(source: str, target: str, verdicts: Sequence[Verdict] | None) -> tuple[bool | None, str]:
    """Whether the translation from source to target passed on held-out states, and a sentence on it."""
    by_name = {one.name: one for one in verdicts or ()}
    own = by_name.get(f"translation.{source}.{target}")
    if own is not None:
        note = f"Held-out R² of {target} from {source}: {_number(own)}."
        return own.passed, note if own.passed else f"Warning: {own.advice} {note}"
    joined = [by_name[f"joins.{name}"] for name in (source, target) if f"joins.{name}" in by_name]
    failed = [one for one in joined if not one.passed]
    if failed:
        return False, "Warning: " + " ".join(f"{one.advice} R² {_number(one)}." for one in failed)
    note = f"Not judged: no held-out states were translated from {source} to {target}."
    for one in joined:
        note += f" {one.name.removeprefix('joins.')} joined the frame with R² {_number(one)}."
    return None, note


def _number(one: Verdict) -> str:
    chance = "" if one.null is None else f", shuffled {one.null:.3f}"
    return f"{one.value:z.3f} [{one.low:z.3f}, {one.high:z.3f}]{chance}"


def _pairs_summary(names: Sequence[str], by_name: Mapping[str, Verdict]) -> str:
    """One sentence for each outcome: pairs that translate both ways, one way, not at all, or were not judged."""
    pairs: dict[str, list[str]] = {"both": [], "one": [], "none": [], "unknown": []}
    for a, b in combinations(names, 2):
        forward, back = by_name.get(f"translation.{a}.{b}"), by_name.get(f"translation.{b}.{a}")
        forward_passed = None if forward is None else forward.passed
        back_passed = None if back is None else back.passed
        if forward_passed and back_passed:
            pairs["both"].append(f"{a} and {b}")
        elif forward_passed:
            pairs["one"].append(f"{a} into {b}")
        elif back_passed:
            pairs["one"].append(f"{b} into {a}")
        elif forward_passed is None or back_passed is None:
            pairs["unknown"].append(f"{a} and {b}")
        else:
            pairs["none"].append(f"{a} and {b}")
    count = len(names) * (len(names) - 1) // 2
    if len(pairs["both"]) == count:
        return f"All {len(names)} charts translate into each other."
    if len(pairs["none"]) == count:
        return "No charts translate: none predicts another significantly better than chance and the mean."
    sentences = {
        "both": "These translate into each other: {}.",
        "one": "These translate one way only: {}.",
        "none": "These do not translate significantly: {}.",
        "unknown": "Not judged, because too few states were held out: {}.",
    }
    return " ".join(sentences[key].format(_listed(found)) for key, found in pairs.items() if found)


def _listed(found: Sequence[str]) -> str:
    more = f" and {len(found) - MOST_NAMED} more pairs" if len(found) > MOST_NAMED else ""
    return "; ".join(found[:MOST_NAMED]) + more
