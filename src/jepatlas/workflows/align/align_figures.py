"""Figures of an alignment: projections, singular values of the map, CKA between layers, and the paired states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jepatlas.alignment import PairedLatents, cka_debiased
from jepatlas.core.errors import require
from jepatlas.core.figures import Curve, Curves, Heatmap, ImagePanel, ImageRow, Images, Scatter, ScatterPanel
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.pictures import as_pictures, picture_range, shrunk, spread_rows

__all__ = ["layers_figure", "pairs_figure", "projections", "spectrum_figure"]

MOST_NAMES = 12
"""Numeric labels with more distinct values are coloured by value."""
ROUNDING = 1e-9
MOST_STATES = 8
UMAP_NEIGHBOURS = 15


def projections(
    pairs: PairedLatents, mapped: np.ndarray, *, umap: bool = False, seed: int = 0, prefix: str = ""
) -> tuple[list[Scatter], dict[str, np.ndarray]]:
    """PCA (and UMAP) of the source, the target and the `mapped` source, with the arrays that the figures show.

    The last two panels share the axes of the target, so they look alike if the map is right. `prefix` keeps the arrays
    of several such figures in one record apart.
    """
    a, b, labels = pairs.a.h, pairs.b.h, pairs.labels
    names = (pairs.a.name, pairs.b.name)
    key_a, key_b, key_mapped = keys = (f"{prefix}a", f"{prefix}b", f"{prefix}mapped")
    places = {key_a: _principal(a, a), key_b: _principal(b, b), key_mapped: _principal(b, mapped)}
    marks: dict[str, np.ndarray] = {}
    if labels is None:
        colour = ScatterPanel("", color=key_b, color_columns=[0, 1], color_label=f"{names[1]}, PCA")
        note = "Colour is the position in the target. The map was fitted on other states."
    else:
        key = f"{prefix}label"
        colour = ScatterPanel("", color=key, color_label="label")
        note = "Colour is the label. The map was fitted on other states."
        marks[key] = _label_values(labels)
    figures = [_scatter("PCA", names, keys, colour, note)]
    if umap:
        umap_keys = (f"{prefix}umap_a", f"{prefix}umap_b", f"{prefix}umap_mapped")
        places |= dict(zip(umap_keys, _umap(a, b, mapped, seed), strict=True))
        figures.append(_scatter("UMAP", names, umap_keys, colour, note))
    return figures, {name: array.astype(np.float32) for name, array in places.items()} | marks


def _label_values(labels: np.ndarray) -> np.ndarray:
    """Labels as strings, or as numbers if there are many numeric values."""
    many = labels.dtype.kind in "fiu" and len(np.unique(labels)) > MOST_NAMES
    return labels.astype(np.float32) if many else labels.astype(str)


def _scatter(
    method: str, names: tuple[str, str], keys: tuple[str, str, str], colour: ScatterPanel, note: str
) -> Scatter:
    titles = (names[0], names[1], f"{names[0]}, mapped to {names[1]}")
    panels = [
        replace(colour, title=title, x=key, columns=[0, 1], label=method, range=None if number == 0 else "target")
        for number, (title, key) in enumerate(zip(titles, keys, strict=True))
    ]
    return Scatter(title=f"The same held-out states in both models ({method})", note=note, panels=panels)


def _principal(reference: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Coordinates of x along the two principal directions of `reference`; zeros if there is only one."""
    mean = reference.mean(0)
    directions = np.linalg.svd(reference - mean, full_matrices=False)[2][:2]
    plane = (x - mean) @ directions.T
    return np.pad(plane, [(0, 0), (0, 2 - plane.shape[1])])


def _umap(a: np.ndarray, b: np.ndarray, mapped: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    library = require("umap", "interop", "A UMAP projection")
    # with several jobs the result would not be reproducible
    settings = {"random_state": seed, "n_neighbors": min(UMAP_NEIGHBOURS, len(b) - 1), "n_jobs": 1}
    target = library.UMAP(**settings).fit(b)
    source = library.UMAP(**settings).fit_transform(a)
    return source, np.asarray(target.embedding_), target.transform(mapped)


def spectrum_figure(fitted: LinearMap) -> Curves:
    """Singular values of the map; those at rounding level are counted in the note instead of drawn."""
    series: list[Curve] = []
    notes = ["A rotation has equal singular values, up to its scale."]
    for name, weight in {"as fitted": fitted.weight, "raw coordinates": fitted.raw_weight}.items():
        values = np.linalg.svd(weight, compute_uv=False)
        kept = values[values > ROUNDING * values.max(initial=0.0)]
        if len(kept):
            series.append(Curve(name, list(range(1, len(kept) + 1)), kept.tolist()))
        if len(kept) < len(values):
            notes.append(f"{name}: {len(values) - len(kept)} of {len(values)} are zero up to rounding.")
    return Curves(
        title="Singular values of the map",
        x_label="number",
        y_label="singular value",
        log_y=True,
        series=series,
        note=" ".join(notes),
    )


def layers_figure(pairs: PairedLatents) -> Heatmap | None:
    """Debiased CKA between all layers of both models; None unless both have several layers."""
    a, b = pairs.a.layers, pairs.b.layers
    if min(len(a), len(b)) < 2:
        return None
    flat_a = [layer.reshape(len(layer), -1) for layer in a.values()]
    flat_b = [layer.reshape(len(layer), -1) for layer in b.values()]
    return Heatmap(
        title=f"Debiased CKA of the layers of {pairs.a.name} and of {pairs.b.name}",
        matrix=[[cka_debiased(one, other) for other in flat_b] for one in flat_a],
        x=list(b),
        y=list(a),
        x_label=f"layers of {pairs.b.name}",
        y_label=f"layers of {pairs.a.name}",
    )


def pairs_figure(pairs: PairedLatents) -> tuple[list[Images], dict[str, np.ndarray]]:
    """Raw images of a few paired states and their arrays; empty unless the raw inputs of both are images."""
    if pairs.a.raw is None or pairs.b.raw is None:
        return [], {}
    rows = spread_rows(len(pairs), MOST_STATES, pairs.labels)
    arrays: dict[str, np.ndarray] = {}
    notes = ["Controls are computed from raw inputs, which may hold less than the model saw."]
    for key, side, raw in (("raw_a", pairs.a, pairs.a.raw), ("raw_b", pairs.b, pairs.b.raw)):
        images = as_pictures(raw[rows], picture_range(raw))
        if images is None:
            return [], {}
        arrays[key] = shrunk(images)
        notes.append(_image_format(side.name, raw))
    panel = ImagePanel(
        captions=_captions(pairs, rows),
        rows=[ImageRow(side.name, key) for side, key in zip((pairs.a, pairs.b), arrays, strict=True)],
    )
    return [Images(title="Raw inputs of the same held-out states", note=" ".join(notes), panels=[panel])], arrays


def _image_format(name: str, raw: np.ndarray) -> str:
    low, high = picture_range(raw)
    shape = " × ".join(map(str, raw.shape[1:]))
    return f"{name}: {shape}, {raw.dtype}, {low:g} is black and {high:g} white."


def _captions(pairs: PairedLatents, rows: np.ndarray) -> list[str]:
    """The id of each state, with its label unless the id contains it."""
    ids, labels = pairs.ids, pairs.labels
    captions: list[str] = []
    for row in rows:
        name = f"row {row}" if ids is None else str(ids[row])
        label = "" if labels is None else str(labels[row])
        captions.append(name if label in name else f"{label}, {name}")
    return captions
