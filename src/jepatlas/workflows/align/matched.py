"""Which rows of two models belong together: those of one state, by its id; else row i belongs to row i."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jepatlas.alignment import match_ids
from jepatlas.alignment.paired import Latents, PairedLatents
from jepatlas.core.errors import InputError

__all__ = ["check_ids", "match"]

FEWEST = 16
"""States that two models must share: half of them is held out, and intervals come from halves of these, of 4 rows."""


def match(a: Latents, b: Latents, *, intersect: bool = False) -> PairedLatents:
    """Bring the rows of the same state together, by ids where there are any; else row i belongs to row i.

    Both must have the same states. With `intersect`, those that only one of them has are left out and counted.
    """
    check_ids(a, b)
    if a.ids is None or b.ids is None:
        if intersect:
            raise InputError(
                f"{a.name} and {b.name} have no ids, so nothing says which states they share. Give the rows of both "
                "the ids of their states (--ids A_IDS B_IDS), or leave out --intersect."
            )
        if len(a.h) != len(b.h):
            raise InputError(
                f"{a.name} has {len(a.h)} rows and {b.name} has {len(b.h)}: which belong together? "
                "Give the rows of both the ids of their states (--ids A_IDS B_IDS)."
            )
        return _agree(a, b)
    rows_a, rows_b = match_ids(a.ids, b.ids, intersect=intersect)
    if intersect and len(rows_a) < FEWEST:
        raise InputError(
            f"{a.name} and {b.name} share {len(rows_a) or 'none'} of their {len(a.h)} and {len(b.h)} states, but at "
            f"least {FEWEST} are needed: half of them is held out. Are the ids of both written alike ('{a.ids[0]}' and "
            f"'{b.ids[0]}')?"
        )
    found = _agree(a.rows(rows_a), b.rows(rows_b))
    return replace(found, left_out=(len(a.h) - len(rows_a), len(b.h) - len(rows_b)))


def check_ids(*models: Latents) -> None:
    """Ids on one side only: rows that are paired by their place may be of different states."""
    with_ids, without = ([one.name for one in models if (one.ids is None) is absent] for absent in (False, True))
    if with_ids and without:
        raise InputError(f"{with_ids[0]} has ids, but {without[0]} has none: give ids for both, or for neither.")


def _agree(a: Latents, b: Latents) -> PairedLatents:
    """What both files say of a state must be the same."""
    for kind in ("groups", "labels"):
        first, second = getattr(a, kind), getattr(b, kind)
        if first is not None and second is not None and (wrong := np.flatnonzero(first != second)).size:
            row = int(wrong[0])
            raise InputError(
                f"{a.name} and {b.name} disagree on the {kind} of {wrong.size} of {len(first)} states (the first in "
                f"row {row}: '{first[row]}' and '{second[row]}'). Are their rows in the same order?"
            )
    return PairedLatents(a, b)
