"""What a robust fit says of single pairs, and what its map is worth on those that are trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from jepatlas.alignment import Evidence, FittedMap, RobustMap
from jepatlas.alignment.paired import PairedLatents
from jepatlas.core.linear import r2
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.workflows.align.evidence import Study

__all__ = ["as_given", "distrusted", "doubted", "trusted_r2"]

MISMATCHED = 0.05
"""Share of distrusted pairs from which on they are more than the tail of the noise."""
NAMED = 8


def doubted(fitted: FittedMap, matched: PairedLatents, rows: np.ndarray) -> np.ndarray | None:
    """The pairs that a robust fit takes for mismatched: by id, or by row of A; None of any other fit."""
    if not isinstance(fitted, RobustMap):
        return None
    which = rows[fitted.distrusted_]
    return which if matched.a.ids is None else matched.a.ids[which]


def as_given(doubted: np.ndarray | None, pairs: int) -> list[str]:
    """What a robust fit's score is of: nothing tells which held-out pairs are mismatched."""
    if doubted is None:
        return []
    many = len(doubted) > MISMATCHED * pairs
    told = f"{len(doubted) / pairs:.0%} of the fitted pairs are distrusted. " if many else ""
    return [f"{told}Held-out pairs are scored as they were given, mismatched ones included."]


def distrusted(which: np.ndarray | None, pairs: int) -> list[Verdict]:
    """The share of pairs that are distrusted, and which they are."""
    if which is None:
        return []
    share = len(which) / pairs
    named = ", ".join(map(str, which[:NAMED])) + (", …" if len(which) > NAMED else "")
    return [
        Verdict.judge(
            "distrusted",
            Estimate(share, share, share, pairs),
            direction="lower",
            threshold=MISMATCHED,
            good="Share of pairs that do not fit the others, and count little; so few may be chance.",
            bad=f"Share of pairs that do not fit the others, and count little: look at {named} (all of them are in "
            "the array 'distrusted' beside the record).",
        )
    ]


def trusted_r2(fitted: FittedMap, matched: PairedLatents, study: Study, given: Evidence) -> list[Verdict]:
    """R² on held-out pairs that a robust fit of their own trusts, which knows nothing of the map that is scored.

    Where no map tells anything, all pairs are trusted: so the null is that of all.
    """
    if not isinstance(fitted, RobustMap):
        return []
    held = np.sort(study.split.score)
    a, b, groups = matched.a.h[held], matched.b.h[held], None if study.groups is None else study.groups[held]
    own: Any = clone(fitted)
    kept = np.setdiff1d(np.arange(len(held)), own.fit(a, b, groups).distrusted_)
    if groups is not None and len(np.unique(groups[kept])) < 2:
        return []
    truth, told = b[kept], fitted.map_.apply(a[kept])
    estimate = bootstrap(
        lambda weights: {"r2": r2(truth, told, weights)},
        len(kept),
        numpy_generator(study.seed, "trusted"),
        groups=None if groups is None else groups[kept],
    )["r2"]
    return [
        Verdict.judge(
            "r2_trusted",
            estimate,
            direction="higher",
            null=given.null.mean,
            good=f"R² on the {len(kept)} of {len(held)} held-out pairs that are trusted by a robust fit of their own; "
            "on all of them as they were given, see r2. Pairs that were chosen because they fit flatter a map.",
        )
    ]
