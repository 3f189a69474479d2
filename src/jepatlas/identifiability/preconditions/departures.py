"""How a sample departs from a Gaussian, in words: few values, an atom, skewness, tails."""

from __future__ import annotations

import numpy as np

__all__ = ["departure"]

FEW, ATOM = 20, 0.1  # distinct values up to which they are counted; share of rows that one value takes
SKEWED, HEAVY, LIGHT = 0.3, 0.5, -0.3  # skewness and excess kurtosis that are named


def departure(sample: np.ndarray) -> str:
    """Of a standardised sample; what is discrete is not called skewed as well.

    >>> departure(np.repeat([-1.0, 1.0], 50))
    'it takes 2 values only'
    """
    _, counts = np.unique(sample, return_counts=True)
    if len(counts) <= FEW:
        return f"it takes {len(counts)} value{'' if len(counts) == 1 else 's'} only"
    if (share := counts.max() / len(sample)) >= ATOM:
        return f"it takes one and the same value in {share:.0%} of the rows"
    skewness, excess = float(np.mean(sample**3)), float(np.mean(sample**4)) - 3
    said = []
    if abs(skewness) > max(SKEWED, 3 * float(np.std(sample**3)) / np.sqrt(len(sample))):  # heavy tails feign it
        said.append(f"it leans to {'large' if skewness > 0 else 'small'} values (skewness {skewness:.2g})")
    if excess > HEAVY or excess < LIGHT:
        said.append(f"its tails are too {'heavy' if excess > 0 else 'light'} (excess kurtosis {excess:.2g})")
    return " and ".join(said) or "neither skewness nor tails tell, so look at its histogram"
