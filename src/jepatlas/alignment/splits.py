"""Matching of ids, and splits that keep states, groups and time blocks whole.

Rows of one state, object or moment are nearly copies of each other. If some are fitted on and others scored on, the
score measures memorisation.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out

__all__ = ["first_seen_numbers", "group_labels", "match_ids", "plain_ids", "split_rows", "time_blocks"]

WHOLE = 2**53
NAMED = 5
"""Number of ids that an error message names."""


def match_ids(ids_a: np.ndarray, ids_b: np.ndarray, *, intersect: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a and of b with the same id, in the order of a; ids must be unique on each side.

    Both sides must have the same ids. With `intersect`, ids that only one side has are left out.

    >>> match_ids(np.array(["x", "y", "z"]), np.array(["z", "x", "y"]))
    (array([0, 1, 2]), array([1, 2, 0]))
    """
    ids_a, ids_b = plain_ids("ids of a", ids_a), plain_ids("ids of b", ids_b)
    if ids_a.dtype.kind != ids_b.dtype.kind:
        raise InputError(
            f"The ids of a are {ids_a.dtype} and those of b are {ids_b.dtype}: strings and numbers never match. "
            "Give both as strings, or both as numbers."
        )
    for name, ids in (("a", ids_a), ("b", ids_b)):
        values, counts = np.unique(ids, return_counts=True)
        _refuse(values[counts > 1], ("occurs", "occur"), f"more than once in {name}", "Give each row a unique id.")
    if not intersect:
        _refuse_missing("a", np.setdiff1d(ids_a, ids_b), "b")
        _refuse_missing("b", np.setdiff1d(ids_b, ids_a), "a")
    rows, order = np.flatnonzero(np.isin(ids_a, ids_b)), np.argsort(ids_b)
    return rows, order[np.searchsorted(ids_b, ids_a[rows], sorter=order)]


def plain_ids(name: str, ids: np.ndarray) -> np.ndarray:
    """Ids as integers (int64) or strings. Floats with integer values, as pandas makes them, become integers.

    >>> plain_ids("ids", np.array([3.0, 1.0]))
    array([3, 1])
    """
    ids = np.asarray(ids)
    if ids.dtype.kind == "O" and all(isinstance(one, str) for one in ids.flat):
        ids = ids.astype(str)
    ids = _labels(name, ids)
    if ids.dtype.kind in "US":
        return ids.astype(str)
    if ids.dtype.kind == "f":
        # larger floats do not represent every integer
        if (wrong := np.flatnonzero((ids != np.round(ids)) | (np.abs(ids) > WHOLE))).size:
            raise InputError(f"The {name} must be whole numbers or strings, but row {wrong[0]} has {ids[wrong[0]]}.")
    elif ids.dtype.kind == "b" or (ids.dtype.kind == "u" and (ids > np.iinfo(np.int64).max).any()):
        raise InputError(f"The {name} must be whole numbers or strings, but they are {ids.dtype}.")
    return ids.astype(np.int64)


def split_rows(
    n: int,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    blocks: int | None = None,
    gap: int = 0,
    share: float = 0.5,
) -> Split:
    """Hold out a share of the groups, of time blocks of `blocks` rows, or of single rows.

    With time blocks, rows must be in order of time. Rows to fit on within `gap` steps of a row to score on are left
    out, because neighbours in time are nearly copies of each other.
    """
    if not 0 < share < 1:
        raise InputError(f"'share', of rows to hold out, must be in (0, 1), but {share} was given.")
    if blocks is None:
        if gap:
            raise InputError("'gap' needs 'blocks', the length of time blocks.")
        return hold_out(n, rng, groups=None if groups is None else group_labels(groups, n), share=share)
    if groups is not None:
        raise InputError("Rows are split by groups or by time blocks, not by both. For several episodes, give groups.")
    fit, score = hold_out(n, rng, groups=time_blocks(n, blocks), share=share)
    far = fit[_steps_to(fit, score) > gap]
    if len(far) == 0:
        raise InputError(f"'gap' {gap} leaves no rows to fit on: {n} rows have time blocks of {blocks} rows.")
    return Split(far, score)


def time_blocks(n: int, length: int) -> np.ndarray:
    """Block number of each of n rows in time; the last block includes the remainder.

    >>> time_blocks(8, 3)
    array([0, 0, 0, 1, 1, 1, 1, 1])
    """
    if length < 1:
        raise InputError(f"Time blocks must have at least 1 row, but {length} was given.")
    return np.minimum(np.arange(n) // length, max(n // length, 1) - 1)


def group_labels(groups: np.ndarray | None, n: int) -> np.ndarray:
    """Groups as numbers 0, 1, …; without groups, each row is its own group.

    >>> group_labels(np.array(["cup", "car", "cup"]), 3)
    array([1, 0, 1])
    """
    if groups is None:
        return np.arange(n)
    labels = np.unique(_labels("groups", groups), return_inverse=True)[1]
    if len(labels) != n:
        raise InputError(f"'groups' must have one label for each of {n} rows, but has {len(labels)}.")
    return labels


def first_seen_numbers(labels: np.ndarray) -> np.ndarray:
    """Groups as numbers in the order of their first rows.

    >>> first_seen_numbers(np.array([7, 2, 7, 5])).tolist()
    [0, 1, 0, 2]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def _labels(name: str, labels: np.ndarray) -> np.ndarray:
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.dtype.kind not in "iufbUS":
        raise InputError(
            f"The {name} must be one number or string for each row, but they have shape {labels.shape} and are "
            f"{labels.dtype}."
        )
    if labels.dtype.kind == "f" and (missing := np.flatnonzero(np.isnan(labels))).size:
        raise InputError(f"The {name} are missing (NaN) in {missing.size} rows, the first of them row {missing[0]}.")
    return labels


def _refuse_missing(name: str, ids: np.ndarray, other: str) -> None:
    remedy = (
        f"Leave those rows out of {name}, add them to {other}, or pair only the states that both have: --intersect (in "
        "Python intersect=True)."
    )
    _refuse(ids, (f"of {name} is", f"of {name} are"), f"missing in {other}", remedy)


def _refuse(ids: np.ndarray, verbs: tuple[str, str], what: str, remedy: str) -> None:
    """Raise InputError if there are any ids; `verbs` are singular and plural."""
    if len(ids):
        count = f"1 id {verbs[0]}" if len(ids) == 1 else f"{len(ids)} ids {verbs[1]}"
        more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
        raise InputError(f"{count} {what}: {', '.join(map(str, ids[:NAMED]))}{more}. {remedy}")


def _steps_to(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Distance of each row to the nearest of the others, both in ascending order."""
    after = np.searchsorted(others, rows)
    later = np.abs(others[np.minimum(after, len(others) - 1)] - rows)
    return np.minimum(later, np.abs(rows - others[np.maximum(after - 1, 0)]))
