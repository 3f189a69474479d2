"""A certificate's charts: the same samples as the truth, the observations and the latents have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jepatlas.core.linear import hold_out, procrustes
from jepatlas.core.seeding import numpy_generator

__all__ = ["chart", "shown_samples"]

SHOWN = 1500  # points of a scatter plot
CHARTS = {"z": "true state z", "x": "observation x", "h": "latent h", "h_rotated": "latent h, rotated to z"}


def shown_samples(arrays: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """A few samples in all coordinates, for charts of two axes; the rotation is fitted on other samples."""
    h, z = arrays["h"], arrays["z"]
    if min(h.shape[1], z.shape[1]) < 2:
        return {}
    fit, score = hold_out(len(h), numpy_generator(seed, "shown"), share=min(0.5, SHOWN / len(h)))
    places = {name: arrays[name][score] for name in ("z", "x", "h") if name in arrays}
    places["h_rotated"] = procrustes(h[fit], z[fit]).apply(h[score])
    return {name: array.astype(np.float32) for name, array in places.items()}


def chart(shown: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {
        "kind": "scatter",
        "title": "The same samples in different coordinates",
        "note": "Colour is the true state: angle as hue. Where the last panel looks like the first, h = Qz.",
        "panels": [
            {"title": title, "x": name, "columns": [0, 1], "color": "z", "color_columns": [0, 1]}
            for name, title in CHARTS.items()
            if name in shown
        ],
    }
