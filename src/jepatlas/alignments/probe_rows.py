"""Before a probe is carried: do probe, map and latents fit together, and which rows are probe and map fitted on?

A map that has seen the rows that the probe learned from carries their noise with it, so each has a half of its own.
"""

from __future__ import annotations

import numpy as np

from jepatlas.align import LinearProbe
from jepatlas.alignments.matched import Matched
from jepatlas.base.errors import InputError
from jepatlas.base.linear import Split, hold_out
from jepatlas.base.linear_map import LinearMap
from jepatlas.base.seeding import numpy_generator

__all__ = ["check_known", "check_widths", "halves"]


def check_widths(matched: Matched, probe: LinearProbe | None, fitted: LinearMap | None) -> None:
    """Refuse a probe or a map that was made for other latents than these."""
    (a, d_a), (b, d_b) = ((one.name, one.h.shape[1]) for one in (matched.a, matched.b))
    if probe is not None and len(probe.x_mean) != d_a:
        raise InputError(f"The probe reads {len(probe.x_mean)} dimensions, but the latents of {a} have {d_a}. Give a "
                         "probe that was trained on them.")  # fmt: skip
    if fitted is not None and fitted.weight.shape != (d_b, d_a):
        d_out, d_in = fitted.weight.shape
        raise InputError(f"The map goes from {d_in} to {d_out} dimensions, but the latents of {a} have {d_a} and those "
                         f"of {b} have {d_b}. Give a map from {a} to {b}, or none: one is fitted then.")  # fmt: skip


def halves(rows: np.ndarray, labels: np.ndarray, groups: np.ndarray | None, seed: int) -> Split:
    """Rows for the map and rows for the probe. Groups stay whole; single rows are dealt class by class, the first of
    each to the probe: what is not in its half, it cannot know."""
    rng = numpy_generator(seed, "migrate halves")
    if groups is not None:
        if len(np.unique(groups[rows])) < 2:
            raise InputError("Probe and map are fitted on different groups of rows, but only 1 is not held out. Give "
                             "more groups (or shorter --blocks), or a --probe or a --map of other rows.")  # fmt: skip
        mapped, probed = hold_out(len(rows), rng, groups=groups[rows])
        return Split(rows[mapped], rows[probed])
    order, kinds = rng.permutation(len(rows)), np.unique(labels[rows], return_inverse=True)[1]
    order = order[np.argsort(kinds[order], kind="stable")]
    first = (np.arange(len(rows)) - np.searchsorted(kinds[order], kinds[order])) % 2 == 0
    if first.all():  # every row has a label of its own, and none would be left for the map
        first = np.arange(len(rows)) % 2 == 0
    return Split(np.sort(rows[order[~first]]), np.sort(rows[order[first]]))


def check_known(labels: np.ndarray, rows: np.ndarray) -> None:
    """Refuse classes that only rows show which the probe is not trained on."""
    if len(strange := np.setdiff1d(labels, labels[rows])):
        raise InputError(
            f"The probe does not know the labels {strange[:5].tolist()}: none of the {len(rows)} rows that it is "
            f"trained on, of {len(labels)}, has them, because rows (groups, time blocks) are held out or left to the "
            "map. Give more rows of these classes, a smaller --share, another --seed or a --probe; or leave them out."
        )
