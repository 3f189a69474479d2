"""Along how many directions latents vary: the exponential of the entropy of their shares of the variance.

Where there are fewer than two, latents say next to nothing of an image: they collapsed.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import student_quantile

__all__ = ["ENOUGH", "collapse_verdict", "effective_directions"]

ENOUGH = 2.0  # directions: latents that vary along fewer say next to nothing of images
PARTS = 20  # of the images, or of their groups, each left out in turn
FEW_ROWS, FEW_GROUPS = 10, 5


def collapse_verdict(h_bd: np.ndarray, groups: np.ndarray | None = None, why: str = "") -> Verdict:
    """Whether latents vary, with what is to be said of the reasons where they hardly do.

    The interval is a jackknife's, by `groups` of rows that are alike where there are any, each left out in turn. (A
    bootstrap draws rows twice, which vary along fewer directions than the rows do.) Few rows vary along few directions
    whatever the agent is, so that of them nothing is said.
    """
    h_bd = h_bd.astype(np.float64)
    found, units = _jackknifed(h_bd, groups)
    if len(h_bd) < FEW_ROWS or units < FEW_GROUPS:
        return Verdict.judge("directions", found, direction="higher", good=_too_few(len(h_bd), units))
    return Verdict.judge(
        "directions",
        found,
        direction="higher",
        threshold=ENOUGH,
        good=f"Latents of held-out images vary along {found.value:.1f} of {h_bd.shape[1]} directions.",
        bad=f"{_collapsed(found, h_bd.shape[1])} {why}".rstrip(),
    )


def _jackknifed(h_bd: np.ndarray, groups: np.ndarray | None) -> tuple[Estimate, int]:
    """Directions with Student's interval by what is left out in turn: groups, or parts of the rows; how many there are
    to choose from."""
    rows = np.arange(len(h_bd)) if groups is None else np.unique(groups, return_inverse=True)[1]
    units = int(rows.max(initial=-1)) + 1
    part = numpy_generator(0, "collapse").permutation(units)[rows] % PARTS
    left_out = [effective_directions(h_bd[part != one]) for one in range(min(PARTS, units)) if (part != one).any()]
    value, margin = effective_directions(h_bd), np.inf
    if len(left_out) > 1:
        spread = np.sqrt((len(left_out) - 1) * np.var(left_out))
        margin = float(student_quantile(len(left_out) - 1) * spread)
    low, high = max(value - margin, min(value, 1.0)), min(value + margin, float(h_bd.shape[1]))
    return Estimate(value, low, max(high, value), len(h_bd)), units


def effective_directions(h_bd: np.ndarray) -> float:
    """0 where what varies is rounding."""
    if not len(h_bd):
        return 0.0
    h_bd = h_bd.astype(np.float64)
    values = np.linalg.svd(h_bd - h_bd.mean(0), compute_uv=False) ** 2
    if values.sum() <= 1e-8 * np.square(h_bd).sum():
        return 0.0
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def _too_few(images: int, units: int) -> str:
    whole = "" if units == images else f" in {units} groups"
    return (
        f"Whether latents collapsed cannot be told: {images} held-out images{whole} are too few, for n of them vary "
        f"along n − 1 directions at most. Hold out at least {FEW_ROWS} images, of {FEW_GROUPS} groups where there are "
        "groups."
    )


def _collapsed(found: Estimate, dim: int) -> str:
    if found.value >= ENOUGH:
        return (
            f"Perhaps collapsed: {found.value:.1f} [{found.low:.1f}, {found.high:.1f}] of {dim} directions, along "
            "which latents of held-out images vary, are not surely more than two. Judge by more held-out images, or "
            "train longer; where that does not help, try another objective."
        )
    return (
        f"Collapsed: latents of held-out images vary along {found.value:.1f} of {dim} directions, so "
        "they say next to nothing of an image. Try a smaller learning rate, more steps or another objective."
    )
