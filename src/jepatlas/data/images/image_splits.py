"""Splits of a table's rows by state and group.

Images of the same object, moment or photo are nearly identical, so rows are split by whole groups (instances, scenes,
blocks of time, image ids), and all views of a state are on one side.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from jepatlas.core.errors import InputError, check_argument, check_count
from jepatlas.core.linear import Split, hold_out
from jepatlas.core.seeding import numpy_generator
from jepatlas.data.images.view_table import ViewTable

__all__ = ["official_split", "split_states", "time_blocks_of"]


def split_states(table: ViewTable, held: float, seed: int, *, by: str | np.ndarray = "group") -> Split:
    """Split rows into training rows and held-out rows with a share `held` of the groups.

    `by` is a column of the table ("state" for image ids) or one group label per row.
    """
    check_argument("held", held, 0 < held < 1, "between 0 and 1")
    groups = table.column(by) if isinstance(by, str) else np.asarray(by)
    if len(groups) != len(table):
        raise InputError(f"The table has {len(table)} rows, but {len(groups)} groups were given.")
    _check_states_whole(table.column("state"), groups, "more than one group")
    if isinstance(by, str) and len(set(groups.tolist())) == 1:
        advice = "Add more." if by == "state" else "Add more, or remove the column."
        raise InputError(
            f"A split needs at least 2 groups, but the column '{by}' is '{groups[0]}' in all rows. {advice}"
        )
    return hold_out(len(table), numpy_generator(seed, "split states"), groups=groups, share=held)


def official_split(table: ViewTable, held: str) -> Split:
    """Split by the column `split` of the table: rows with the value `held` are held out."""
    held_out = table.column("split") == held
    if not 0 < held_out.sum() < len(held_out):
        known = ", ".join(sorted(set(table.column("split").tolist())))
        raise InputError(f"Holding out the split '{held}' leaves one side empty; the table has the splits: {known}.")
    for name in ("state", "group"):
        if name in table.columns:
            _check_states_whole(table.column(name), held_out, "both sides of the split", what=name)
    return Split(np.flatnonzero(~held_out), np.flatnonzero(held_out))


def time_blocks_of(table: ViewTable, length: int, *, column: str = "state") -> np.ndarray:
    """The time block of each row: `length` consecutive states, ordered by a column (as numbers if possible)."""
    check_count("length", length)
    values = table.column(column)
    with suppress(ValueError):
        values = values.astype(np.float64)
    return np.unique(values, return_inverse=True)[1] // length


def _check_states_whole(states: np.ndarray, groups: np.ndarray, where: str, what: str = "state") -> None:
    """Raise InputError unless every state lies in one group."""
    names, state = np.unique(states, return_inverse=True)
    label = np.unique(groups, return_inverse=True)[1]
    first = np.empty(len(names), np.int64)
    first[state] = label
    divided = np.flatnonzero(first[state] != label)
    if len(divided):
        raise InputError(f"The {what} '{names[state[divided[0]]]}' is in {where}. A {what} must not be divided.")
