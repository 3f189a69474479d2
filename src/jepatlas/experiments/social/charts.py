"""What two agents, their networks before training, and PCA of their images make of the same states, row by row.

    agents       h¹(s) → h²(s)                   what is claimed
    untrained    the same networks before their first step
    pca, pca_16  principal components of small images, as wide as the latents, and 16 of them
    pixels       principal components of the first view → h²: what of the second agent needs no first agent

Maps are fitted on states that the agents learned from, and judged on whole objects or blocks of time that they did not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.alignment.controls import pca_control
from jepatlas.core.arrays import read_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.social.runs import LATENTS

__all__ = ["COMPARED", "CONTROLS", "NAMES", "Met", "charts_of", "leading", "meet"]

Arrays = dict[str, np.ndarray]
Charts = dict[str, tuple[np.ndarray, np.ndarray]]

FEW = 16
SHARE = 0.99
NAMES = {
    "agents": "trained agents",
    "untrained": "untrained agents",
    "pca": "PCA of pixels, as wide",
    "pca_16": "PCA of pixels, 16 wide",
    "pixels": "PCA of the first view → second agent",
}
CONTROLS = ("untrained", "pca", "pca_16")
"""Which have as much to translate as the agents, but learned nothing."""
COMPARED = ("agents", *CONTROLS)


@dataclass(frozen=True)
class Met:
    """Two agents' arrays of the states that both know."""

    a: Arrays
    b: Arrays
    split: Split

    @property
    def groups(self) -> np.ndarray:
        """What is kept whole: an object, a block of time, or the state itself."""
        return self.a.get("groups", self.a["ids"])


def meet(first: Result, second: Result) -> Met:
    """The rows of both agents whose states are the same."""
    a, b = (read_arrays(result.folder / LATENTS) for result in (first, second))
    both, rows_a, rows_b = np.intersect1d(a["ids"], b["ids"], return_indices=True)
    if not len(both):
        raise InputError(f"The agents of {first.folder.name} and {second.folder.name} have no state in common.")
    layers = [np.cumsum(one["held"])[rows] - 1 for one, rows in ((a, rows_a), (b, rows_b))]  # these have held-out rows
    held = a["held"][rows_a]
    if (held != b["held"][rows_b]).any():
        raise InputError(f"{first.folder.name} and {second.folder.name} did not hold out the same states.")
    first_met, second_met = (
        {name: array[(place[held] if name.startswith("layer") else rows)] for name, array in one.items()}
        for one, rows, place in ((a, rows_a, layers[0]), (b, rows_b, layers[1]))
    )
    return Met(first_met, second_met, Split(np.flatnonzero(~held), np.flatnonzero(held)))


def charts_of(met: Met) -> Charts:
    """The two sides of every translation that is compared."""
    a, b, fit = met.a, met.b, met.split.fit
    wide, few = (
        [pca_control(side["raw"], min(width, side["h"].shape[1]), fit) for side in (a, b)] for width in (10**6, FEW)
    )
    return {
        "agents": (a["h"], b["h"]),
        "untrained": (a["untrained"], b["untrained"]),
        "pca": (wide[0], wide[1]),
        "pca_16": (few[0], few[1]),
        "pixels": (wide[0], b["h"]),
    }


def leading(h: np.ndarray, fit: np.ndarray, share: float = SHARE) -> np.ndarray:
    """Standardised latents along the principal directions that hold a share of their variance, by the rows of `fit`.

    A ViT's last normalisation leaves one direction without variance, and short training leaves many with next to none:
    the condition number of a map between all of them is that of rounding.
    """
    h = h.astype(np.float64) - h[fit].mean(0, dtype=np.float64)
    spread = h[fit].std(0)
    h /= np.where(spread > 0, spread, 1.0)
    _, values, directions = np.linalg.svd(h[fit], full_matrices=False)
    held = np.cumsum(np.square(values)) / max(np.square(values).sum(), np.finfo(float).tiny)
    return h @ directions[: int(np.searchsorted(held, share)) + 1].T
