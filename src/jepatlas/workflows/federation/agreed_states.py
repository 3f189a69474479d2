"""Agreed states: the states that all members have, found by hashes of their ids, and their common groups.

    h(id) = BLAKE2b_k(id),   k = PBKDF2(phrase)         the members' states are  ∩ₘ {h(id) : id of member m}

A member announces sorted hashes, so that neither names nor order reveal which other states it has; ids are often names
of files, places or patients. A hash does not hide the number of states, nor, from someone who guesses an id, whether
the guess is right. With a secret phrase only members can test guesses. Private set intersection by commuting encryption
would prevent that, too, at two more rounds per pair of members and one modular power per state; members who agree on
anchors are assumed to cooperate.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from itertools import combinations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from jepatlas.core.errors import InputError

__all__ = ["FEWEST", "agree", "as_bytes", "common_groups", "from_bytes", "hide", "number_groups"]

DIGEST = 16  # bytes; among a billion states, two have the same hash with probability 10⁻²⁰
FEWEST = 4
"""Fewest agreed states: maps are fitted on some and judged on others."""
ROUNDS = 200_000  # of PBKDF2, so that guessing phrases is expensive


def hide(ids: np.ndarray, phrase: str) -> np.ndarray:
    """A hash (text) for each id.

    >>> hide(np.array(["cup-1"]), "") == hide(np.array(["cup-1"]), "secret")
    array([False])
    """
    key = _key(phrase)
    return np.array([hashlib.blake2b(str(one).encode(), digest_size=DIGEST, key=key).hexdigest() for one in ids])


@cache
def _key(phrase: str) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", phrase.encode(), b"jepatlas federation", ROUNDS)


def as_bytes(hashes: np.ndarray) -> np.ndarray:
    """Hashes as bytes (n, 16), for files that hold numbers only."""
    return np.frombuffer(bytes.fromhex("".join(hashes.tolist())), np.uint8).reshape(-1, DIGEST)


def from_bytes(rows: np.ndarray) -> np.ndarray:
    """Inverse of `as_bytes`."""
    return np.array([row.tobytes().hex() for row in rows], dtype=f"<U{2 * DIGEST}")


def agree(announced: Mapping[str, np.ndarray], limit: int) -> np.ndarray:
    """Sorted hashes of the states that all members announced, at most `limit`.

    The first by hash are kept, a choice that is independent of the states.
    """
    shared = reduce(np.intersect1d, announced.values())
    if len(shared) < FEWEST:
        counts = ", ".join(f"{name} {len(own)}" for name, own in announced.items())
        pairs = ", ".join(
            f"{a} and {b} {len(np.intersect1d(announced[a], announced[b]))}" for a, b in combinations(announced, 2)
        )
        raise InputError(
            f"{len(shared)} states are shared by all members, but at least {FEWEST} are needed (announced: {counts}; "
            f"shared: {pairs}). Check that all name the same states alike, give the same --phrase, and announce the "
            "--part that has the shared states."
        )
    return shared[:limit]


def number_groups(groups: np.ndarray) -> np.ndarray:
    """Group numbers in order of first rows, without the names of the groups.

    >>> number_groups(np.array(["mug", "cup", "mug"])).tolist()
    [0, 1, 0]
    """
    _, first, labels = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[labels].astype(np.int64)


def common_groups(groups: Sequence[np.ndarray]) -> np.ndarray | None:
    """Finest grouping that keeps the groups of all members whole; None without any groups.

    >>> common_groups([np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2])]).tolist()
    [0, 0, 0, 1]
    """
    if not groups:
        return None
    n = size = len(groups[0])  # nodes of a graph: the rows, and each member's groups
    nodes: list[np.ndarray] = []
    for one in groups:
        nodes.append(size + number_groups(one))
        size = int(nodes[-1].max()) + 1
    edges = np.tile(np.arange(n), len(groups)), np.concatenate(nodes)
    graph = coo_array((np.ones(len(edges[0])), edges), shape=(size, size))
    return number_groups(connected_components(graph, directed=False)[1][:n])
