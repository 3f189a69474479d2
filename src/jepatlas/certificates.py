"""A certificate as a record: the verdicts on some latents, a headline, and charts to look at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.base.arrays import read_arrays
from jepatlas.base.errors import InputError
from jepatlas.base.linear import hold_out, procrustes
from jepatlas.base.provenance import provenance
from jepatlas.base.records import Record, Verdict
from jepatlas.base.seeding import numpy_generator
from jepatlas.identify import audit, certify

__all__ = ["certificate", "certify_file"]

SHOWN = 1500  # points of a scatter plot
CHARTS = {"z": "true state z", "x": "observation x", "h": "latent h", "h_rotated": "latent h, rotated to z"}


def certificate(
    title: str,
    arrays: Mapping[str, np.ndarray],
    *,
    rho: float | None,
    seed: int,
    audited: bool = False,
    note: str = "",
    about: Mapping[str, Any] | None = None,
) -> Record:
    """Judge the arrays `h` and `h_next`, with the truth `z`, the observations `x` and `groups` where they are given.

    `audited` asks first whether the pairs look like the world that the theorems speak of.
    """
    h, h_next, z, groups = (arrays.get(name) for name in ("h", "h_next", "z", "groups"))
    assert h is not None and h_next is not None
    verdicts = audit(h, h_next, groups=groups, seed=seed) if audited else []
    if z is not None or rho is not None:
        verdicts += certify(h, h_next, z, rho=rho, groups=groups, seed=seed)
    shown = {} if z is None else _shown(arrays, seed)
    return Record(
        title=title,
        summary=f"{_headline(verdicts)} {note}".strip(),
        provenance=provenance(seed) | {"samples": len(arrays["h"])} | dict(about or {}),
        verdicts=tuple(verdicts),
        figures=(_charts(shown),) if shown else (),
        arrays=shown,
    )


def certify_file(path: Path, *, rho: float | None, seed: int) -> Record:
    """Judge anybody's latents, from a file with `h`, `h_next` and, where they are known, `z` and `groups`."""
    arrays = read_arrays(path)
    if missing := {"h", "h_next"} - arrays.keys():
        raise InputError(
            f"{path}: a certificate needs the arrays 'h' and 'h_next' (latents of paired views, row by row), but "
            f"{' and '.join(sorted(missing))} is missing. Found: {', '.join(arrays)}."
        )
    note = "" if "z" in arrays or rho is not None else (
        "Without the truth 'z' or the pairs' correlation (--rho) no more can be said: whether the latents are the "
        "world's coordinates, and whether they miss a dimension, stays open."
    )  # fmt: skip
    return certificate(f"Certificate of {path.name}", arrays, rho=rho, seed=seed, audited=True, note=note)


def _headline(verdicts: list[Verdict]) -> str:
    by_name = {verdict.name: verdict for verdict in verdicts}
    judged = [verdict for verdict in verdicts if verdict.passed is not None]
    failed = [verdict.name for verdict in judged if not verdict.passed]
    tail = f"Not passed: {', '.join(failed)}." if failed else f"All {len(judged)} judged statements hold."
    if "r2" not in by_name:
        bound = by_name.get("bound_whitened")
        return tail if bound is None else f"Without the truth: bound {bound.value:.3f} after whitening. {tail}"
    r2, turn = by_name["r2"], by_name["orthogonality"]
    return f"Held-out R² {r2.value:.4f} [{r2.low:.4f}, {r2.high:.4f}], orthogonality error {turn.value:.3f}. {tail}"


def _shown(arrays: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """A few samples in all coordinates, for charts of two axes; the rotation is fitted on other samples."""
    h, z = arrays["h"], arrays["z"]
    if min(h.shape[1], z.shape[1]) < 2:
        return {}
    fit, score = hold_out(len(h), numpy_generator(seed, "shown"), share=min(0.5, SHOWN / len(h)))
    places = {name: arrays[name][score] for name in ("z", "x", "h") if name in arrays}
    places["h_rotated"] = procrustes(h[fit], z[fit]).apply(h[score])
    return {name: array.astype(np.float32) for name, array in places.items()}


def _charts(shown: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {
        "kind": "scatter",
        "title": "The same samples in different coordinates",
        "note": "Colour is the true state: angle as hue. Where the last panel looks like the first, h = Qz.",
        "panels": [{"title": title, "x": name, "columns": [0, 1], "color": "z", "color_columns": [0, 1]}
                   for name, title in CHARTS.items() if name in shown],
    }  # fmt: skip
