"""Which rows belong together, and which may judge: ids are matched, and splits keep a state, group or time block whole.

Rows of one state, object or moment are nearly copies of each other. If one of them is fitted on and another is
scored on, the score is that of memory.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out

__all__ = ["group_labels", "match_ids", "plain_ids", "split_rows", "time_blocks"]

WHOLE = 2**53
NAMED = 5
"""How many of the offending ids a message names."""


def match_ids(ids_a: np.ndarray, ids_b: np.ndarray, *, intersect: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a and of b that have the same id, in the order of a; each side has an id once.

    Both must hold the same ids, or else with `intersect` those that only one of them holds are left out.

    >>> match_ids(np.array(["x", "y", "z"]), np.array(["z", "x", "y"]))
    (array([0, 1, 2]), array([1, 2, 0]))
    """
    ids_a, ids_b = plain_ids("ids of a", ids_a), plain_ids("ids of b", ids_b)
    if ids_a.dtype.kind != ids_b.dtype.kind:
        raise InputError(
            f"The ids of a are {ids_a.dtype} and those of b are {ids_b.dtype}: a text never equals a number. "
            "Give both as texts, or both as numbers."
        )
    for name, ids in (("a", ids_a), ("b", ids_b)):
        values, counts = np.unique(ids, return_counts=True)
        _refuse(values[counts > 1], ("occurs", "occur"), f"more than once in {name}", "Give each row an id of its own.")
    if not intersect:
        _refuse_missing("a", np.setdiff1d(ids_a, ids_b), "b")
        _refuse_missing("b", np.setdiff1d(ids_b, ids_a), "a")
    rows, order = np.flatnonzero(np.isin(ids_a, ids_b)), np.argsort(ids_b)
    return rows, order[np.searchsorted(ids_b, ids_a[rows], sorter=order)]


def plain_ids(name: str, ids: np.ndarray) -> np.ndarray:
    """Ids as whole numbers (int64) or texts. Floats that are whole, as pandas makes them, are the numbers they show.

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
        # above, one float stands for several whole numbers
        if (wrong := np.flatnonzero((ids != np.round(ids)) | (np.abs(ids) > WHOLE))).size:
            raise InputError(f"The {name} must be whole numbers or texts, but row {wrong[0]} has {ids[wrong[0]]}.")
    elif ids.dtype.kind == "b" or (ids.dtype.kind == "u" and (ids > np.iinfo(np.int64).max).any()):
        raise InputError(f"The {name} must be whole numbers or texts, but they are {ids.dtype}.")
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
    """Hold out a share of the groups, or of the time blocks of `blocks` rows; of single rows where neither is given.

    With time blocks, rows are in the order of time, and the rows to fit on that are within `gap` steps of one to
    score on are left out: at a border, neighbours in time are nearly copies of each other.
    """
    if not 0 < share < 1:
        raise InputError(f"The share of rows to hold out must lie between 0 and 1, but {share} was given.")
    if blocks is None:
        if gap:
            raise InputError("A gap lies between time blocks: give their length as `blocks`, too.")
        return hold_out(n, rng, groups=None if groups is None else group_labels(groups, n), share=share)
    if groups is not None:
        raise InputError("Rows are split by groups or by time blocks, not by both. For several episodes, give groups.")
    fit, score = hold_out(n, rng, groups=time_blocks(n, blocks), share=share)
    far = fit[_steps_to(fit, score) > gap]
    if len(far) == 0:
        raise InputError(f"A gap of {gap} rows leaves nothing to fit on: {n} rows have blocks of {blocks} rows only.")
    return Split(far, score)


def time_blocks(n: int, length: int) -> np.ndarray:
    """The block that each of n rows in time belongs to; the last block takes what is left over.

    >>> time_blocks(8, 3)
    array([0, 0, 0, 1, 1, 1, 1, 1])
    """
    if length < 1:
        raise InputError(f"A time block must have at least 1 row, but {length} was given.")
    return np.minimum(np.arange(n) // length, max(n // length, 1) - 1)


def group_labels(groups: np.ndarray | None, n: int) -> np.ndarray:
    """Groups as numbers 0, 1, …; every row is a group of its own where there are none.

    >>> group_labels(np.array(["cup", "car", "cup"]), 3)
    array([1, 0, 1])
    """
    if groups is None:
        return np.arange(n)
    labels = np.unique(_labels("groups", groups), return_inverse=True)[1]
    if len(labels) != n:
        raise InputError(f"There are {n} rows, but {len(labels)} group labels. Give one label for each row.")
    return labels


def _labels(name: str, labels: np.ndarray) -> np.ndarray:
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.dtype.kind not in "iufbUS":
        raise InputError(
            f"The {name} must be one number or text for each row, but they have shape {labels.shape} and are "
            f"{labels.dtype}."
        )
    if labels.dtype.kind == "f" and (missing := np.flatnonzero(np.isnan(labels))).size:
        raise InputError(f"The {name} are missing (NaN) in {missing.size} rows, the first of them row {missing[0]}.")
    return labels


def _refuse_missing(name: str, ids: np.ndarray, other: str) -> None:
    remedy = (
        f"Leave those rows out of {name}, or add them to {other}; or pair the states that both have, and leave "
        "out the rest: --intersect (in Python intersect=True)."
    )
    _refuse(ids, (f"of {name} is", f"of {name} are"), f"missing in {other}", remedy)


def _refuse(ids: np.ndarray, verbs: tuple[str, str], what: str, remedy: str) -> None:
    """`verbs` are for one id and for several."""
    if len(ids):
        count = f"1 id {verbs[0]}" if len(ids) == 1 else f"{len(ids)} ids {verbs[1]}"
        more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
        raise InputError(f"{count} {what}: {', '.join(map(str, ids[:NAMED]))}{more}. {remedy}")


def _steps_to(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """How far each row is from the nearest of the others, both in ascending order."""
    after = np.searchsorted(others, rows)
    later = np.abs(others[np.minimum(after, len(others) - 1)] - rows)
    return np.minimum(later, np.abs(rows - others[np.maximum(after - 1, 0)]))
