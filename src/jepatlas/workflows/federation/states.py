"""Which states all members have seen, without naming those that only one of them has.

    h(id) = BLAKE2b_k(id),   k = PBKDF2(phrase)         the members' states are  ∩ₘ {h(id) : id of member m}

A member announces hashes, sorted, so that neither names nor order tell what else it has: states are often named by
files, places, patients. What a hash does not hide: how many states there are, and from one who guesses an id, whether
the guess is right. A phrase that members agree on by another way keeps guessing among themselves. Commuting encryption
(private set intersection) would take it from them, too, at two more rounds for every pair of members and a large power
for every state; members who agree on anchors are taken to work together, so that price is not paid.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache, reduce
from itertools import combinations

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["FEWEST", "agree", "as_bytes", "from_bytes", "hide"]

DIGEST = 16  # bytes: two of a billion states have one hash by accident once in 10²⁰ federations
FEWEST = 4
"""Agreed states: to fit maps on some, and to judge them by others."""
ROUNDS = 200_000  # of PBKDF2, so that phrases are dear to guess


def hide(ids: np.ndarray, phrase: str) -> np.ndarray:
    """A hash for each id, as text.

    >>> hide(np.array(["cup-1"]), "") == hide(np.array(["cup-1"]), "between us")
    array([False])
    """
    key = _key(phrase)
    return np.array([hashlib.blake2b(str(one).encode(), digest_size=DIGEST, key=key).hexdigest() for one in ids])


@cache
def _key(phrase: str) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", phrase.encode(), b"jepatlas federation", ROUNDS)


def as_bytes(hashes: np.ndarray) -> np.ndarray:
    """(n, 16) bytes, for a file that holds numbers only."""
    return np.frombuffer(bytes.fromhex("".join(hashes.tolist())), np.uint8).reshape(-1, DIGEST)


def from_bytes(rows: np.ndarray) -> np.ndarray:
    return np.array([row.tobytes().hex() for row in rows], dtype=f"<U{2 * DIGEST}")


def agree(announced: Mapping[str, np.ndarray], limit: int) -> np.ndarray:
    """Hashes of the states that every member has announced, sorted; of more than `limit`, the first.

    The first by hash are a choice that has nothing to do with what the states are.
    """
    shared = reduce(np.intersect1d, announced.values())
    if len(shared) < FEWEST:
        counts = ", ".join(f"{name} {len(own)}" for name, own in announced.items())
        pairs = ", ".join(
            f"{a} and {b} {len(np.intersect1d(announced[a], announced[b]))}" for a, b in combinations(announced, 2)
        )
        raise InputError(
            f"{len(shared)} states are shared by all members, but at least {FEWEST} are needed (announced: {counts}; "
            f"shared: {pairs}). Do all tables name the same states alike, did all give the same --phrase, and are the "
            "shared states in the --part that each announces?"
        )
    return shared[:limit]
