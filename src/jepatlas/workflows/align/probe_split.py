"""Rows for training a probe, for fitting a map, and for scoring; stratified by class if there are groups.

Probe and map are fitted on different rows: a map fitted on the probe's training rows would carry their noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jepatlas.alignment import LinearProbe, PairedLatents, split_rows, time_blocks
from jepatlas.alignment.probes.linear_probe import check_classes
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.seeding import numpy_generator
from jepatlas.workflows.align.align_options import HALF
from jepatlas.workflows.align.align_study import marked_split

__all__ = ["ProbeSplit", "check_widths", "halve", "known_rows", "not_scored_note", "probe_split", "stratified_groups"]


class ProbeSplit(NamedTuple):
    """Rows to train the probe on, to fit the map on (the same rows if one of both is given), and to score on."""

    probe: np.ndarray
    map: np.ndarray
    score: np.ndarray


def check_widths(pairs: PairedLatents, probe: LinearProbe | None, fitted: LinearMap | None) -> None:
    """Raise InputError if a given probe or map does not have the dimensions of the latents."""
    a, b = pairs.a.name, pairs.b.name
    d_a, d_b = pairs.a.h.shape[1], pairs.b.h.shape[1]
    if probe is not None and len(probe.x_mean) != d_a:
        raise InputError(
            f"The probe reads {len(probe.x_mean)} dimensions, but the latents of {a} have {d_a}. Give a probe that "
            "was trained on them."
        )
    if fitted is not None and fitted.weight.shape != (d_b, d_a):
        d_out, d_in = fitted.weight.shape
        raise InputError(
            f"The map goes from {d_in} to {d_out} dimensions, but the latents of {a} have {d_a} and those of {b} have "
            f"{d_b}. Give a map from {a} to {b}, or leave it out to have one fitted."
        )


def probe_split(
    pairs: PairedLatents,
    labels: np.ndarray,
    given: Sequence[str],
    *,
    blocks: int | None,
    share: float | None,
    seed: int,
) -> ProbeSplit:
    """Split by the marks of the files, else at random; groups are stratified by class.

    `given` names what is not fitted here: "probe", "map" or both.
    """
    groups = pairs.groups
    marked = marked_split(pairs, share, blocks)
    if marked is not None:
        return _divide_marked(marked, groups, labels, given, seed)
    share = HALF if share is None else share
    split = split_rows(len(labels), numpy_generator(seed, "migrate split"), groups=groups, blocks=blocks, share=share)
    if groups is not None:  # the random split only serves to check the arguments
        return _stratify(groups, labels, given, share, seed)
    if given:
        return ProbeSplit(split.fit, split.fit, split.score)
    map_rows, probe_rows = halve(split.fit, labels, None if blocks is None else time_blocks(len(labels), blocks), seed)
    return ProbeSplit(probe_rows, map_rows, split.score)


def _divide_marked(
    marked: Split, groups: np.ndarray | None, labels: np.ndarray, given: Sequence[str], seed: int
) -> ProbeSplit:
    """Divide the rows to fit on between probe and map, if both are fitted."""
    if given:
        return ProbeSplit(marked.fit, marked.fit, marked.score)
    if groups is None:
        map_rows, probe_rows = halve(marked.fit, labels, None, seed)
        return ProbeSplit(probe_rows, map_rows, marked.score)
    _check_groups(len(np.unique(groups[marked.fit])))
    rng = numpy_generator(seed, "migrate groups")
    part = stratified_groups(groups[marked.fit], labels[marked.fit], [HALF, HALF], rng, first=0)
    return ProbeSplit(marked.fit[part == 0], marked.fit[part == 1], marked.score)


def _stratify(groups: np.ndarray, labels: np.ndarray, given: Sequence[str], share: float, seed: int) -> ProbeSplit:
    """Classes with few groups go to the probe's part first: it cannot predict classes that its part lacks."""
    check_classes(labels, "the rows")
    rng = numpy_generator(seed, "migrate groups")
    rest = 1 - share
    if given:
        part = stratified_groups(groups, labels, [rest, share], rng, first=None if "probe" in given else 0)
        fit, score = np.flatnonzero(part == 0), np.flatnonzero(part == 1)
        return ProbeSplit(fit, fit, score)
    _check_groups(len(np.unique(groups)) - 1)
    part = stratified_groups(groups, labels, [rest / 2, rest / 2, share], rng, first=0)
    return ProbeSplit(np.flatnonzero(part == 0), np.flatnonzero(part == 1), np.flatnonzero(part == 2))


def halve(rows: np.ndarray, labels: np.ndarray, blocks: np.ndarray | None, seed: int) -> Split:
    """Rows for the map and rows for the probe.

    Time blocks stay whole. Single rows are divided class by class, the first of each class to the probe.
    """
    rng = numpy_generator(seed, "migrate halves")
    if blocks is not None:
        _check_groups(len(np.unique(blocks[rows])))
        map_rows, probe_rows = hold_out(len(rows), rng, groups=blocks[rows])
        return Split(rows[map_rows], rows[probe_rows])
    order = rng.permutation(len(rows))
    classes = np.unique(labels[rows], return_inverse=True)[1]
    order = order[np.argsort(classes[order], kind="stable")]
    for_probe = (np.arange(len(rows)) - np.searchsorted(classes[order], classes[order])) % 2 == 0
    if for_probe.all():  # every row has its own label
        for_probe = np.arange(len(rows)) % 2 == 0
    return Split(np.sort(rows[order[~for_probe]]), np.sort(rows[order[for_probe]]))


def _check_groups(count: int) -> None:
    if count < 2:
        raise InputError(
            "Probe and map are fitted on different groups of rows, but only 1 group is not held out. Give more groups "
            "(or shorter --blocks), or a --probe or a --map of other rows."
        )


def known_rows(labels: np.ndarray, split: ProbeSplit, *, stratified: bool) -> np.ndarray:
    """Held-out rows of classes that the probe is trained on; at least two classes are required.

    Only with a stratified split may rows be left out: no other seed would include them.
    """
    if not stratified:
        unknown = np.setdiff1d(labels, labels[split.probe])
        if len(unknown):
            raise InputError(
                f"The labels {unknown[:5].tolist()} do not occur in the {len(split.probe)} of {len(labels)} rows that "
                "the probe is trained on; the others are held out or used for the map. Give more rows of these "
                "classes, a smaller --share, another --seed or a --probe, or leave these classes out."
            )
        return split.score
    known = split.score[np.isin(labels[split.score], labels[split.probe])]
    classes = len(np.unique(labels[known]))
    if classes < 2:
        raise InputError(
            f"Scores need at least 2 classes, but {classes} of the classes that the probe is trained on occur among "
            f"the {len(split.score)} held-out rows. Groups stay whole, and most classes have too few of them. Give "
            "more groups of each class, another --share or a --probe."
        )
    return known


def not_scored_note(labels: np.ndarray, held: np.ndarray, known: np.ndarray) -> list[str]:
    """One sentence on held-out rows of classes unknown to the probe; empty if there are none."""
    if len(known) == len(held):
        return []
    names = np.setdiff1d(labels[held], labels[known]).tolist()
    more = " and others" if len(names) > 5 else ""
    return [
        f"{len(held) - len(known)} of {len(held)} held-out rows are not scored: the probe was trained on no row with "
        f"their labels {names[:5]}{more}."
    ]


def stratified_groups(
    groups: np.ndarray,
    labels: np.ndarray,
    shares: Sequence[float],
    rng: np.random.Generator,
    *,
    first: int | None = None,
) -> np.ndarray:
    """Stratified group split: the part of each row, such that every class is in every part if possible.

    A group has the class of most of its rows. Each class gives one group to every part, to part `first` before the
    others, and then follows the `shares`. Deviations from the shares are compensated by the next, larger classes.

    >>> labels = np.repeat(["cup", "car"], 6)
    >>> stratified_groups(np.arange(12) // 2, labels, [0.5, 0.25, 0.25], np.random.default_rng(0))
    array([1, 1, 2, 2, 0, 0, 0, 0, 2, 2, 1, 1])
    """
    number = np.unique(groups, return_inverse=True)[1]
    classes = _majority_class(number, np.unique(labels, return_inverse=True)[1])
    part = np.empty(len(classes), int)
    missing = np.zeros(len(shares))  # number of groups that each part should still get
    for members in _groups_by_class(classes, rng):
        missing += np.multiply(shares, len(members))
        without = list(range(len(shares)))
        for group in members:
            neediest = max(without or range(len(shares)), key=missing.__getitem__)
            chosen = first if first in without else neediest
            part[group] = chosen
            missing[chosen] -= 1
            without = [other for other in without if other != chosen]
    _fill_empty_parts(part, len(shares))
    return part[number]


def _majority_class(number: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The most frequent class of each group; the lower one of two equally frequent."""
    width = classes.max() + 1
    pairs, counts = np.unique(number * width + classes, return_counts=True)
    order = np.lexsort((pairs, -counts, pairs // width))
    return (pairs % width)[order][np.unique(pairs[order] // width, return_index=True)[1]]


def _groups_by_class(classes: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """The groups of each class in random order, smallest class first."""
    order = rng.permutation(len(classes))
    order = order[np.argsort(classes[order], kind="stable")]
    found = np.split(order, np.flatnonzero(np.diff(classes[order])) + 1)
    return sorted((found[index] for index in rng.permutation(len(found))), key=len)


def _fill_empty_parts(part: np.ndarray, parts: int) -> None:
    """Move one group from the largest part to each empty one, in place."""
    for empty in np.setdiff1d(np.arange(parts), part):
        part[np.flatnonzero(part == np.bincount(part).argmax())[-1]] = empty
