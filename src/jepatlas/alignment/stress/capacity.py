"""What an alignment withstands: models of different width, by rectangular maps.

Given two models, one side is made narrower; given several, each is mapped to each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Literal

import numpy as np

from jepatlas.alignment.controls import pca_control
from jepatlas.alignment.stress.curve import StressCurve
from jepatlas.alignment.stress.runs import FITS, Case, Protocol, divider, run_cases
from jepatlas.alignment.stress.trial import Fits, LatentPairs, Trial
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
    """One side reduced to its leading principal directions (of the rows to fit on), or projected to random ones.

    R² is of what is to be predicted: with `side` b, of fewer dimensions at every point. Widths above that of the side
    are left out.
    """
    latents, protocol = LatentPairs.of(a, b, labels, groups), protocol or Protocol()
    if side not in ("a", "b") or by not in ("principal", "random"):
        raise InputError(f"Side 'a' or 'b' is reduced by 'principal' or 'random' directions, not '{side}' by '{by}'.")
    full: np.ndarray = getattr(latents, side)
    within = sorted({width for width in widths if 1 <= width <= full.shape[1]})
    if not within:
        raise InputError(
            f"'{side}' has {full.shape[1]} dimensions, and none of the widths {list(widths)} is within that."
        )
    divide = divider(latents, split, protocol)

    def trials(width: int, own: np.random.Generator) -> dict[str, Trial]:
        rows = divide(own)
        narrow = pca_control(full, width, rows.fit) if by == "principal" else _projected(full, width, own)
        return {"": Trial.right(replace(latents, **{side: narrow}), rows, own)}

    cases = [Case(width, str(width), lambda own, width=width: trials(width, own)) for width in within]
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
    """Every model (n, d) mapped to every other one, by the ratio of their widths."""
    if len(models) < 2:
        raise InputError(f"Maps go between at least 2 models, but {len(models)} was given.")
    protocol = protocol or Protocol()

    def case(source: str, target: str) -> Case:
        latents = LatentPairs.of(models[source], models[target], labels, groups)
        divide = divider(latents, split, protocol)
        ratio = latents.b.shape[1] / latents.a.shape[1]
        return Case(ratio, f"{source} → {target}", lambda own: {"": Trial.right(latents, divide(own), own)})

    cases = sorted((case(*pair) for pair in permutations(models, 2)), key=lambda one: one.x)
    points = run_cases(cases, fits, protocol, protocol.draw(rng))
    return StressCurve(
        "Models of different width",
        "models",
        points,
        protocol.seeds,
        apart="width of the target / width of the source",
        log_x=True,
        joined=False,
    )


def _projected(full: np.ndarray, width: int, rng: np.random.Generator) -> np.ndarray:
    """Onto orthonormal random directions."""
    return full @ np.linalg.qr(rng.standard_normal((full.shape[1], width)))[0]
