"""The first screen of a page: what was found, in two sentences, and the two or three figures that show it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from jepatlas.core.records import Verdict
from jepatlas.reporting.chapters import Chapter

__all__ = ["leading_figures", "opening", "opening_of_several"]

FIGURES = 3
TELLING = ("scatter", "landscape", "film", "images", "bars", "heatmap", "curves")
"""Kinds of figures; those that show the objects themselves are before those that show numbers."""
SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z])")


def opening(chapters: Sequence[Chapter], headline: str = "") -> str:
    """The headline, or else the first sentence of the first chapter with checks, and how many checks passed.

    >>> opening([Chapter("Map", "map.json", summary="The map is a rotation. Its error is small.")])
    'The map is a rotation.'
    """
    judged = [chapter for chapter in chapters if _counts(chapter.verdicts)]
    summaries = [chapter.summary for chapter in judged or chapters if chapter.summary]
    first = headline or (SENTENCE_END.split(summaries[0])[0] if summaries else "")
    return " ".join(filter(None, [first, _count_sentence(judged)]))


def opening_of_several(runs: Mapping[str, Sequence[Chapter]]) -> str:
    """How many runs passed all their checks, and which did not; empty if no run has checks.

    >>> good = Verdict("r2", 0.9, 0.8, 1.0, 9, None, 0.7, "higher", True, "Good.")
    >>> opening_of_several({"a": [Chapter("Map", "map.json", verdicts=(good,))], "b": []})
    '1 of 2 runs passed all checks. No checks: b.'
    """
    names: dict[str, list[str]] = {"passed": [], "Failed": [], "Undecided": [], "No checks": []}
    for name, chapters in runs.items():
        counts = _counts([verdict for chapter in chapters for verdict in chapter.verdicts])
        if "failed" in counts:
            names["Failed"].append(name)
        elif "undecided" in counts:
            names["Undecided"].append(name)
        else:
            names["passed" if counts else "No checks"].append(name)
    if len(names["No checks"]) == len(runs):
        return ""
    passed = names.pop("passed")
    parts = [f"{word}: {', '.join(those)}." for word, those in names.items() if those]
    return " ".join([f"{len(passed)} of {len(runs)} runs passed all checks.", *parts])


def _counts(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Checks by outcome; metrics without a threshold are left out."""
    states = [verdict.status for verdict in verdicts]
    return {state: states.count(state) for state in ("passed", "failed", "undecided") if state in states}


def _count_sentence(chapters: Sequence[Chapter]) -> str:
    counts = _counts([verdict for chapter in chapters for verdict in chapter.verdicts])
    if not counts:
        return ""
    total = sum(counts.values())
    if counts.get("passed") == total:
        return f"All {total} checks passed." if total > 1 else "The only check passed."
    parts = [f"{counts.get('passed', 0)} of {total} checks passed"]
    parts += [f"{counts[state]} {word}" for state, word in OPEN.items() if state in counts]
    places = [chapter.title for chapter in chapters if _counts(chapter.verdicts).keys() & OPEN.keys()]
    where = f" (see {' and '.join(places)})" if len(chapters) > len(places) <= 2 else ""
    return f"{' and '.join([', '.join(parts[:-1]), parts[-1]])}{where}."


OPEN = {"failed": "failed", "undecided": "could not be decided"}


def leading_figures(chapters: Sequence[Chapter]) -> list[tuple[int, int]]:
    """The figures of the first screen, as (chapter, figure), in the order of the page.

    They are the first figures of chapters, or the first two of a single chapter. Chapters with checks come before those
    without, and kinds that are not shown yet before those that are.
    """
    drawn = [(number, chapter) for number, chapter in enumerate(chapters) if chapter.figures]
    judged = [(number, chapter) for number, chapter in drawn if chapter.verdicts]
    chosen = judged or drawn
    if len(chosen) == 1:
        number, chapter = chosen[0]
        return [(number, figure) for figure in range(min(2, len(chapter.figures)))]
    seen: list[str] = []
    ranked = []
    for number, chapter in chosen:
        kind = chapter.figures[0].kind
        ranked.append((seen.count(kind), TELLING.index(kind), number))
        seen.append(kind)
    return sorted((number, 0) for _, _, number in sorted(ranked)[:FIGURES])
