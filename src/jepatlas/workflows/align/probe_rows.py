"""Before a probe is carried: do probe, map and latents fit together, and which rows are probe and map fitted on?

A map that has seen the rows that the probe learned from carries their noise with it, so each has a part of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jepatlas.alignment import LinearProbe, split_rows, time_blocks
from jepatlas.alignment.paired import PairedLatents
from jepatlas.alignment.probes.probe import check_classes
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.seeding import numpy_generator
from jepatlas.workflows.align.dealing import deal_groups
from jepatlas.workflows.align.marked import HALF, marked_split

__all__ = ["Parts", "check_widths", "halves", "known_rows", "parts", "unscored"]


class Parts(NamedTuple):
    """Rows to train the probe on, rows to fit the map on (the same ones, where one of both is given), and the rest."""

    probed: np.ndarray
    mapped: np.ndarray
    scored: np.ndarray


def check_widths(matched: PairedLatents, probe: LinearProbe | None, fitted: LinearMap | None) -> None:
    """Refuse a probe or a map that was made for other latents than these."""
    (a, d_a), (b, d_b) = ((one.name, one.h.shape[1]) for one in (matched.a, matched.b))
    if probe is not None and len(probe.x_mean) != d_a:
        raise InputError(
            f"The probe reads {len(probe.x_mean)} dimensions, but the latents of {a} have {d_a}. Give a "
            "probe that was trained on them."
        )
    if fitted is not None and fitted.weight.shape != (d_b, d_a):
        d_out, d_in = fitted.weight.shape
        raise InputError(
            f"The map goes from {d_in} to {d_out} dimensions, but the latents of {a} have {d_a} and those "
            f"of {b} have {d_b}. Give a map from {a} to {b}, or none: one is fitted then."
        )


def parts(
    matched: PairedLatents,
    labels: np.ndarray,
    given: tuple[str, ...],
    *,
    blocks: int | None,
    share: float | None,
    seed: int,
) -> Parts:
    """Which rows each may see. Groups are dealt class by class; time blocks and single rows are held out by chance.
    Where files mark what is held out, that is scored on."""
    n, groups = len(labels), matched.groups
    if (marked := marked_split(matched, share, blocks)) is not None:
        return _as_marked(marked, groups, labels, given, seed)
    share = HALF if share is None else share
    split = split_rows(n, numpy_generator(seed, "migrate split"), groups=groups, blocks=blocks, share=share)
    if groups is not None:  # what cannot be split is refused by now
        return _dealt(groups, labels, given, share, seed)
    if given:
        return Parts(split.fit, split.fit, split.score)
    mapped, probed = halves(split.fit, labels, None if blocks is None else time_blocks(n, blocks), seed)
    return Parts(probed, mapped, split.score)


def _as_marked(
    marked: Split, groups: np.ndarray | None, labels: np.ndarray, given: tuple[str, ...], seed: int
) -> Parts:
    """All rows that are not held out for the one that is fitted, or halves of them for the two."""
    if given:
        return Parts(marked.fit, marked.fit, marked.score)
    if groups is None:
        mapped, probed = halves(marked.fit, labels, None, seed)
        return Parts(probed, mapped, marked.score)
    _check_groups(len(np.unique(groups[marked.fit])))
    rng = numpy_generator(seed, "migrate groups")
    part = deal_groups(groups[marked.fit], labels[marked.fit], [HALF, HALF], rng, first=0)
    return Parts(marked.fit[part == 0], marked.fit[part == 1], marked.score)


def _dealt(groups: np.ndarray, labels: np.ndarray, given: tuple[str, ...], share: float, seed: int) -> Parts:
    """What the probe's part lacks it cannot know, so a class of few groups goes there first, if one is trained."""
    check_classes(labels, "the rows")
    rng, rest = numpy_generator(seed, "migrate groups"), 1 - share
    if given:
        part = deal_groups(groups, labels, [rest, share], rng, first=None if "probe" in given else 0)
        fit, score = (np.flatnonzero(part == one) for one in range(2))
        return Parts(fit, fit, score)
    _check_groups(len(np.unique(groups)) - 1)
    part = deal_groups(groups, labels, [rest / 2, rest / 2, share], rng, first=0)
    return Parts(*(np.flatnonzero(part == one) for one in range(3)))


def halves(rows: np.ndarray, labels: np.ndarray, blocks: np.ndarray | None, seed: int) -> Split:
    """Rows for the map and rows for the probe. Time blocks stay whole; single rows are dealt class by class, the first
    of each to the probe: what is not in its half, it cannot know."""
    rng = numpy_generator(seed, "migrate halves")
    if blocks is not None:
        _check_groups(len(np.unique(blocks[rows])))
        mapped, probed = hold_out(len(rows), rng, groups=blocks[rows])
        return Split(rows[mapped], rows[probed])
    order, kinds = rng.permutation(len(rows)), np.unique(labels[rows], return_inverse=True)[1]
    order = order[np.argsort(kinds[order], kind="stable")]
    first = (np.arange(len(rows)) - np.searchsorted(kinds[order], kinds[order])) % 2 == 0
    if first.all():  # every row has a label of its own, and none would be left for the map
        first = np.arange(len(rows)) % 2 == 0
    return Split(np.sort(rows[order[~first]]), np.sort(rows[order[first]]))


def _check_groups(left: int) -> None:
    if left < 2:
        raise InputError(
            "Probe and map are fitted on different groups of rows, but only 1 is not held out. Give "
            "more groups (or shorter --blocks), or a --probe or a --map of other rows."
        )


def known_rows(labels: np.ndarray, found: Parts, *, dealt: bool) -> np.ndarray:
    """Held-out rows of classes that the probe is trained on: two of these, at least, for it to tell apart.

    Only where groups were dealt class by class may others be left out: no other seed would bring them in.
    """
    if not dealt:
        _check_known(labels, found.probed)
        return found.scored
    known = found.scored[np.isin(labels[found.scored], labels[found.probed])]
    if (classes := len(np.unique(labels[known]))) < 2:
        raise InputError(
            f"Of the classes that the probe is trained on, {classes or 'none'} is among the {len(found.scored)} rows "
            "that are held out, but scores need at least 2: groups stay whole, and most classes have too few of them. "
            "Give more groups of each class, another --share or a --probe."
        )
    return known


def unscored(labels: np.ndarray, held: np.ndarray, known: np.ndarray) -> list[str]:
    """What a summary says of held-out rows that the probe cannot know; nothing where there are none."""
    if len(known) == len(held):
        return []
    names = np.setdiff1d(labels[held], labels[known]).tolist()
    return [
        f"{len(held) - len(known)} of {len(held)} held-out rows are not scored: no row that the probe is trained "
        f"on has their labels {names[:5]}{' and others' if len(names) > 5 else ''}."
    ]


def _check_known(labels: np.ndarray, rows: np.ndarray) -> None:
    """Refuse classes that only rows show which the probe is not trained on."""
    if len(strange := np.setdiff1d(labels, labels[rows])):
        raise InputError(
            f"The probe does not know the labels {strange[:5].tolist()}: none of the {len(rows)} rows that it is "
            f"trained on, of {len(labels)}, has them, because rows (groups, time blocks) are held out or left to the "
            "map. Give more rows of these classes, a smaller --share, another --seed or a --probe; or leave them out."
        )
