"""Stress by different widths: rectangular maps between models of different dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
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

__all__ = ["capacity", "capacity_between"]


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


def capacity_between(
    models: Mapping[str, np.ndarray],
    rng: np.random.Generator,
    *,
    fits: Fits = FITS,
    labels: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    split: Split | None = None,
    protocol: Protocol | None = None,
) -> StressCurve:
    """Map every model (n, d) to every other one, ordered by the ratio of their widths."""
    if len(models) < 2:
        raise InputError(f"'models' must have at least 2 models, but {len(models)} was given.")
    protocol = protocol or Protocol()

    def case(source: str, target: str) -> Case:
        latents = stress_pairs(models[source], models[target], labels, groups)
        draw_split = split_by_seed(latents, split, protocol)
        ratio = latents.b.h.shape[1] / latents.a.h.shape[1]
        return Case(ratio, f"{source} → {target}", lambda rng: {"": Trial.correct(latents, draw_split(rng), rng)})

    cases = sorted((case(*pair) for pair in permutations(models, 2)), key=lambda one: one.x)
    points = run_cases(cases, fits, protocol, protocol.draw(rng))
    return StressCurve(
        "Models of different width",
        "models",
        points,
        protocol.seeds,
        x_title="width of the target / width of the source",
        log_x=True,
        joined=False,
    )
