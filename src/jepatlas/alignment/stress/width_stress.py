"""Stress by different widths: rectangular maps between models of different dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from jepatlas.alignment.controls import pca_control
from jepatlas.alignment.paired import Latents
from jepatlas.alignment.stress.stress_curve import StressCurve
from jepatlas.alignment.stress.stress_trial import (
    FITS,
    Case,
    Fits,
    Protocol,
    Trial,
    run_cases,
    split_by_seed,
    stress_pairs,
)
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split

__all__ = ["capacity"]


def capacity(
    a: np.ndarray,
    b: np.ndarray,
    rng: np.random.Generator,
    *,
    widths: Sequence[int],
    side: Literal["a", "b"] = "b",
    by: Literal["principal", "random"] = "principal",
    fits: Fits = FITS,
    labels: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    split: Split | None = None,
    protocol: Protocol | None = None,
) -> StressCurve:
    """Reduce one side to its leading principal directions (of the fitted rows) or to random directions.

    With `side="b"` the target of R² has fewer dimensions at every point. Widths above that of the side are left out.
    """
    latents = stress_pairs(a, b, labels, groups)
    protocol = protocol or Protocol()
    if side not in ("a", "b") or by not in ("principal", "random"):
        raise InputError(f"'side' must be a or b and 'by' principal or random, but '{side}' and '{by}' were given.")
    whole: Latents = getattr(latents, side)
    dim = whole.h.shape[1]
    within = sorted({width for width in widths if 1 <= width <= dim})
    if not within:
        raise InputError(f"'widths' must have a number from 1 to {dim}, but {list(widths)} was given.")
    draw_split = split_by_seed(latents, split, protocol)

    def trials(width: int, rng: np.random.Generator) -> dict[str, Trial]:
        rows = draw_split(rng)
        if by == "principal":
            narrow = pca_control(whole.h, width, rows.fit)
        else:  # orthonormal random directions
            narrow = whole.h @ np.linalg.qr(rng.standard_normal((dim, width)))[0]
        return {"": Trial.correct(replace(latents, **{side: replace(whole, h=narrow)}), rows, rng)}

    cases = [Case(width, str(width), lambda rng, width=width: trials(width, rng)) for width in within]
    points = run_cases(cases, fits, protocol, protocol.draw(rng))
    return StressCurve(f"Width of {side} ({by} directions)", f"width of {side}", points, protocol.seeds, log_x=True)
