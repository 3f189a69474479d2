"""What an alignment looks like: both models in one plane, the map's spectrum, and layers against layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jepatlas.alignment import cka_debiased
from jepatlas.alignment.paired import PairedLatents
from jepatlas.core.errors import require
from jepatlas.core.linear_map import LinearMap

__all__ = ["layers_figure", "projections", "spectrum_figure"]

Figure = dict[str, Any]
NAMES = 12
ROUNDING = 1e-9


def projections(
    matched: PairedLatents, told: np.ndarray, *, umap: bool = False, seed: int = 0, prefix: str = ""
) -> tuple[list[Figure], dict[str, np.ndarray]]:
    """The source's latents, the target's, and the source's as `told` by the map: by PCA, and by UMAP if asked for.

    The last two panels have one pair of axes, chosen by the target alone: where they look alike, the map is right. A
    record with several such figures tells their arrays apart by a `prefix`.
    """
    a, b, names, labels = matched.a.h, matched.b.h, (matched.a.name, matched.b.name), matched.labels
    own = {key: f"{prefix}{key}" for key in ("a", "b", "told", "label")}
    places = {own["a"]: _principal(a, a), own["b"]: _principal(b, b), own["told"]: _principal(b, told)}
    if labels is None:
        colour = {"color": own["b"], "color_columns": [0, 1], "color_label": f"{names[1]}, PCA"}
        note, marks = "the target's place", {}
    else:
        colour, note, marks = (
            {"color": own["label"], "color_label": "label"},
            "the label",
            {own["label"]: _tags(labels)},
        )
    figures = [_panels("PCA", names, {key: own[key] for key in ("a", "b", "told")}, colour, note)]
    if umap:
        places |= {f"{prefix}{name}": array for name, array in _umap(a, b, told, seed).items()}
        shown = {key: f"{prefix}umap_{key}" for key in ("a", "b", "told")}
        figures.append(_panels("UMAP", names, shown, colour, note))
    return figures, {name: array.astype(np.float32) for name, array in places.items()} | marks


def _tags(labels: np.ndarray) -> np.ndarray:
    """Names; numbers stay numbers where there are many, because they have an order."""
    many = labels.dtype.kind in "fiu" and len(np.unique(labels)) > NAMES
    return labels.astype(np.float32) if many else labels.astype(str)


def _panels(how: str, names: tuple[str, str], arrays: Mapping[str, str], colour: Figure, note: str) -> Figure:
    a, b = names
    titles = {"a": a, "b": b, "told": f"{a}, taken to {b}"}
    panels = [
        {"title": titles[key], "x": array, "columns": [0, 1], "label": how, **colour}
        | ({} if key == "a" else {"range": "target"})
        for key, array in arrays.items()
    ]
    return {
        "kind": "scatter",
        "title": f"The same held-out states in both models ({how})",
        "panels": panels,
        "note": f"Colour is {note}. The map was fitted on other states.",
    }


def _principal(axes_of: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Coordinates of x along the two principal directions of `axes_of`, zeros where there is only one."""
    mean = axes_of.mean(0)
    directions = np.linalg.svd(axes_of - mean, full_matrices=False)[2][:2]
    plane = (x - mean) @ directions.T
    return np.pad(plane, [(0, 0), (0, 2 - plane.shape[1])])


def _umap(a: np.ndarray, b: np.ndarray, told: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    library = require("umap", "interop", "A UMAP projection")
    settings = {"random_state": seed, "n_neighbors": min(15, len(b) - 1), "n_jobs": 1}  # more jobs: other bits
    target = library.UMAP(**settings).fit(b)
    own = library.UMAP(**settings).fit_transform(a)
    return {"umap_a": own, "umap_b": np.asarray(target.embedding_), "umap_told": target.transform(told)}


def spectrum_figure(fitted: LinearMap) -> Figure:
    """Singular values of the map: all ones for a rotation, in coordinates where both sides are white.

    Those that are rounding would stretch the axis over ten decades that nobody asked for: they are counted instead.
    """
    found = {"as fitted": fitted.weight, "raw coordinates": fitted.raw_weight}
    every = {name: np.linalg.svd(weight, compute_uv=False) for name, weight in found.items()}
    kept = {name: values[values > ROUNDING * values.max(initial=0.0)] for name, values in every.items()}
    series = [
        {"name": name, "x": list(range(1, len(values) + 1)), "y": values.tolist()}
        for name, values in kept.items()
        if len(values)
    ]
    lost = [
        f"{name}: {len(every[name]) - len(values)} of {len(every[name])} are zero but for rounding."
        for name, values in kept.items()
        if len(values) < len(every[name])
    ]
    note = " ".join(["All alike for a rotation, up to its scale.", *lost])
    return {
        "kind": "curves",
        "title": "Singular values of the map",
        "x_label": "number",
        "y_label": "singular value",
        "log_y": True,
        "series": series,
        "note": note,
    }


def layers_figure(matched: PairedLatents) -> Figure | None:
    """Debiased CKA of every layer of one model with every layer of the other, where both have several."""
    a, b = matched.a.layers, matched.b.layers
    if min(len(a), len(b)) < 2:
        return None
    matrix = [[cka_debiased(_flat(one), _flat(other)) for other in b.values()] for one in a.values()]
    return {
        "kind": "heatmap",
        "title": f"Debiased CKA of the layers of {matched.a.name} and of {matched.b.name}",
        "matrix": matrix,
        "x": list(b),
        "y": list(a),
        "x_label": f"layers of {matched.b.name}",
        "y_label": f"layers of {matched.a.name}",
    }


def _flat(layer: np.ndarray) -> np.ndarray:
    return layer.reshape(len(layer), -1)
