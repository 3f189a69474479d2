"""Splits of a table's rows by state and group: what is judged by shows nothing that was learned from.

Two images of one toy, one moment or one photo are nearly copies of each other. So rows are split by whole groups:
instances, scenes, blocks of time, image ids; and a state, in all of its views, lies on one side.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out
from jepatlas.core.seeding import numpy_generator
from jepatlas.data.images.table import ViewTable

__all__ = ["official_split", "split_states", "time_blocks_of"]


def split_states(table: ViewTable, held: float, seed: int, *, by: str | np.ndarray = "group") -> Split:
    """Rows to learn from, and rows of a share `held` of the groups to judge by.

    Groups are a column of the table ("state" for image ids), or one label for each row.
    """
    if not 0 < held < 1:
        raise InputError(f"The share of groups to hold out must lie between 0 and 1, but {held} was given.")
    groups = table.column(by) if isinstance(by, str) else np.asarray(by)
    if len(groups) != len(table):
        raise InputError(f"The table has {len(table)} rows, but {len(groups)} groups were given.")
    _check_whole(table.column("state"), groups, "two groups")
    if isinstance(by, str) and len(set(groups.tolist())) == 1:
        advice = "Name more of them" + ("." if by == "state" else ", or leave the column out.")
        raise InputError(
            f"Whole groups are held out, so there must be at least 2, but the column '{by}' has only 1: "
            f"'{groups[0]}' in all rows. {advice}"
        )
    return hold_out(len(table), numpy_generator(seed, "split states"), groups=groups, share=held)


def official_split(table: ViewTable, held: str) -> Split:
    """Rows by the table's own column `split`: `held` to judge by, all others to learn from; groups are whole."""
    sides = table.column("split") == held
    if not 0 < sides.sum() < len(sides):
        raise InputError(
            f"The table's split has the parts {', '.join(sorted(set(table.column('split').tolist())))}, "
            f"so holding out '{held}' leaves one side empty."
        )
    for name in ("state", "group"):
        if name in table.columns:
            _check_whole(table.column(name), sides, "both sides of the split", what=name)
    return Split(np.flatnonzero(~sides), np.flatnonzero(sides))


def time_blocks_of(table: ViewTable, length: int, *, column: str = "state") -> np.ndarray:
    """The block of time of each row: `length` states after each other, by a column that grows with time.

    Numbers are ordered as numbers, and texts as texts.
    """
    if length < 1:
        raise InputError(f"A time block must have at least 1 state, but {length} was given.")
    values = table.column(column)
    with suppress(ValueError):
        values = values.astype(np.float64)
    return np.unique(values, return_inverse=True)[1] // length


def _check_whole(states: np.ndarray, groups: np.ndarray, where: str, what: str = "state") -> None:
    """Every state lies in one group."""
    names, state = np.unique(states, return_inverse=True)
    label = np.unique(groups, return_inverse=True)[1]
    first = np.empty(len(names), np.int64)
    first[state] = label
    if (wrong := np.flatnonzero(first[state] != label)).size:
        raise InputError(f"The {what} '{names[state[wrong[0]]]}' lies in {where}. Whole {what}s belong on one side.")
