"""What held-out states said of an atlas, in sentences: they travel with it, and every reader is told the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from jepatlas.core.records import Verdict

__all__ = ["translation_said", "translations"]

NAMED = 6
"""Pairs of charts that a sentence names."""


def translations(names: Sequence[str], verdicts: Sequence[Verdict] | None) -> str:
    """In a sentence for each answer: which charts translate into each other, which do not, and who joined them."""
    if verdicts is None:
        return (
            "Not judged: this atlas was written without verdicts of held-out states. Whether its charts translate "
            "into each other is not known."
        )
    judged = {one.name: one for one in verdicts}
    later = [name for name in names if f"joins.{name}" in judged]
    first = [name for name in names if name not in later]
    joined = [_joined(name, judged[f"joins.{name}"]) for name in later]
    return " ".join([*([_pairs(first, judged)] if len(first) > 1 else []), *joined])


def translation_said(source: str, target: str, verdicts: Sequence[Verdict] | None) -> tuple[bool | None, str]:
    """What held-out states said of one translation: whether it is worth anything, and a sentence."""
    judged = {one.name: one for one in verdicts or ()}
    if own := judged.get(f"translation.{source}.{target}"):
        said = f"Held-out R² of {target} from {source}: {_number(own)}."
        return own.passed, said if own.passed else f"Warning: {own.advice} {said}"
    joined = [judged[f"joins.{name}"] for name in (source, target) if f"joins.{name}" in judged]
    failed = [one for one in joined if not one.passed]
    if failed:
        return False, "Warning: " + " ".join(f"{one.advice} R² {_number(one)}." for one in failed)
    came = "".join(f" {one.name.removeprefix('joins.')} joined the frame with R² {_number(one)}." for one in joined)
    return None, f"Not judged: no held-out states were told from {source} to {target}.{came}"


def _number(one: Verdict) -> str:
    chance = "" if one.null is None else f", shuffled {one.null:.3f}"
    return f"{one.value:z.3f} [{one.low:z.3f}, {one.high:z.3f}]{chance}"


def _joined(name: str, one: Verdict) -> str:
    how = "joined later, and falls on its anchors" if one.passed else "joined later, but does not fall on its anchors"
    return f"{name} {how} (R² {_number(one)})."


def _pairs(names: Sequence[str], judged: Mapping[str, Verdict]) -> str:
    pairs: dict[str, list[str]] = {"both": [], "one": [], "none": [], "unknown": []}
    for a, b in combinations(names, 2):
        found = (judged.get(f"translation.{x}.{y}") for x, y in ((a, b), (b, a)))
        there, back = (None if one is None else one.passed for one in found)
        if there and back:
            pairs["both"].append(f"{a} and {b}")
        elif there or back:
            pairs["one"].append(f"{a} into {b}" if there else f"{b} into {a}")
        else:
            pairs["unknown" if there is None or back is None else "none"].append(f"{a} and {b}")
    if len(pairs["both"]) == (count := len(names) * (len(names) - 1) // 2):
        return f"All {len(names)} charts translate into each other."
    if len(pairs["none"]) == count:
        return "Nothing surely translates: no chart tells another beyond doubt better than chance, or its mean, would."
    answers = {
        "both": "These translate into each other: {}.",
        "one": "These translate one way only: {}.",
        "none": "These do not surely translate: {}.",
        "unknown": "Not judged, for want of held-out states: {}.",
    }
    return " ".join(answers[key].format(_listed(found)) for key, found in pairs.items() if found)


def _listed(found: Sequence[str]) -> str:
    more = f" and {len(found) - NAMED} more pairs" if len(found) > NAMED else ""
    return "; ".join(found[:NAMED]) + more
