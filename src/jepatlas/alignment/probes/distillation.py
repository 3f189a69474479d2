"""Knowledge distillation of a linear probe: a head of the target that learns the source probe's logits.

    V = argmin Σ ‖logits(a) − V b‖² + λ‖V‖²        over pairs of rows (a, b) of the same states

It needs no labels, but latents of both models, as the map does; unlike a map it carries nothing but this one probe.
"""

from __future__ import annotations

import numpy as np

from jepatlas.alignment.maps import RidgeMap
from jepatlas.alignment.probes.probe import LinearProbe

__all__ = ["distil"]


def distil(probe: LinearProbe, a: np.ndarray, b: np.ndarray, groups: np.ndarray | None = None) -> LinearProbe:
    """A head on b's latents from a probe on a's; λ is chosen by held-out score, which keeps `groups` whole."""
    head = RidgeMap().fit(b, probe.logits(a), groups=groups).map_
    return LinearProbe(probe.classes, head.y_scale[:, None] * head.weight, head.y_mean, head.x_mean, head.x_scale)
