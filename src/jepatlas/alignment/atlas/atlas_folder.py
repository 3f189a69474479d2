"""Save and load an atlas as a sealed folder:

atlas.json                                 charts, certificates, provenance, verdicts; size and hash of every file
anchors.safetensors                        ids and frame coordinates of the anchors
charts/NAME.safetensors                    the standardiser of a chart and its map to the frame
attachments/NAME/KIND/WHAT.safetensors     probes, energies, ...
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from jepatlas.alignment.atlas.chart import Attachment, CertificateSummary, Chart
from jepatlas.alignment.atlas.chart_atlas import Anchors, Atlas
from jepatlas.core.errors import InputError
from jepatlas.core.figures import Table
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.parsing import parse_safetensors
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.sealing import SealedFolder, read_sealed_folder, write_sealed_folder

__all__ = ["exchanged", "load_atlas", "load_sealed_atlas", "save_atlas", "size_table"]

KIND, VERSION = "atlas", 1
ANCHORS = "anchors.safetensors"
MAPS = ("standardiser", "to_frame")
PARTS = [part.name for part in fields(LinearMap)]


def save_atlas(atlas: Atlas, path: Path | str) -> str:
    """Write the folder atomically, replacing an older atlas, and return its seal."""
    judged = None if atlas.judged is None else [verdict.to_json() for verdict in atlas.judged]
    content = {"width": atlas.width, "charts": [_describe(chart) for chart in atlas.charts], "verdicts": judged}
    return write_sealed_folder(Path(path), KIND, VERSION, content, _files(atlas))


def load_atlas(path: Path | str, *, seal: str | None = None) -> Atlas:
    """Read an atlas; raises InputError for changed files, or if its seal is not `seal`."""
    atlas, found = load_sealed_atlas(path)
    if seal is not None and found != seal:
        raise InputError(f"{path} has the seal {found}, but {seal} was expected.")
    return atlas


def load_sealed_atlas(path: Path | str) -> tuple[Atlas, str]:
    """An atlas and the seal of the bytes that it was read from."""
    path = Path(path)
    sealed = read_sealed_folder(path, KIND, VERSION)
    try:
        charts = tuple(_chart(sealed, entry) for entry in sealed.content["charts"])
        atlas = Atlas(charts, _anchors(sealed), _judged(sealed.content.get("verdicts")))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path / 'atlas.json'} does not describe an atlas: {error!r}.") from error
    if {atlas.width, *(len(chart.to_frame.y_mean) for chart in atlas.charts)} != {sealed.content["width"]}:
        raise InputError(
            f"{path}: charts and anchors do not have the {sealed.content['width']} dimensions that atlas.json gives."
        )
    return atlas, sealed.seal


def exchanged(atlas: Atlas) -> dict[str, int]:
    """Bytes exchanged for each chart (with its attachments) and for the anchors."""
    sizes = {chart.name: 0 for chart in atlas.charts} | {ANCHORS: 0}
    for name, data in _files(atlas).items():
        owner = name if name == ANCHORS else Path(name).parts[1].removesuffix(".safetensors")
        sizes[owner] += len(data)
    return sizes


def size_table(atlas: Atlas) -> Table:
    """Sizes of what is exchanged: maps, attachments and frame coordinates of the anchors, but no latents."""
    sizes = exchanged(atlas)
    rows = [
        [chart.name, str(chart.width), str(len(chart.attachments)), f"{sizes[chart.name]:,}"] for chart in atlas.charts
    ]
    rows.append([f"anchors ({len(atlas.anchors.ids)} states)", str(atlas.width), "", f"{sizes[ANCHORS]:,}"])
    rows.append(["total", "", "", f"{sum(sizes.values()):,}"])
    return Table("Exchanged data", ["chart", "dimensions", "attachments", "bytes"], rows)


def _files(atlas: Atlas) -> dict[str, bytes]:
    files = {ANCHORS: _save({"coordinates": atlas.anchors.coordinates, "ids": _ids_as_numbers(atlas.anchors.ids)})}
    for chart in atlas.charts:
        maps = {f"{name}.{part}": getattr(getattr(chart, name), part) for name in MAPS for part in PARTS}
        files[_chart_file(chart.name)] = _save(maps)
        files |= {_attached_file(chart.name, one.kind, one.name): one.data for one in chart.attachments}
    return files


def _chart_file(name: str) -> str:
    return f"charts/{name}.safetensors"


def _attached_file(chart: str, kind: str, name: str) -> str:
    return f"attachments/{chart}/{kind}/{name}.safetensors"


def _describe(chart: Chart) -> dict[str, Any]:
    return {
        "name": chart.name,
        "width": chart.width,
        "tied": chart.tied,
        "states": chart.states,
        "certificate": None if chart.certificate is None else asdict(chart.certificate),
        "provenance": dict(chart.provenance),
        "attachments": [{"kind": one.kind, "name": one.name} for one in chart.attachments],
    }


def _chart(sealed: SealedFolder, entry: Mapping[str, Any]) -> Chart:
    name, width, frame = str(entry["name"]), int(entry["width"]), int(sealed.content["width"])
    file = _chart_file(name)
    tensors = _load(sealed, file, {f"{one}.{part}" for one in MAPS for part in PARTS})
    standardiser, to_frame = (LinearMap(**{part: tensors[f"{one}.{part}"] for part in PARTS}) for one in MAPS)
    sizes = {"standardiser": (width, width), "to_frame": (frame, width)}
    for one, (rows, columns) in sizes.items():
        expected = [(rows, columns), (columns,), (rows,), (columns,), (rows,)]
        if (found := [tensors[f"{one}.{part}"].shape for part in PARTS]) != expected:
            raise InputError(f"{file}: the {one} has the shapes {found}, but {expected} are expected.")
    attached = tuple(
        Attachment(str(one["kind"]), str(one["name"]), sealed.files[_attached_file(name, one["kind"], one["name"])])
        for one in entry["attachments"]
    )
    return Chart(
        name,
        standardiser,
        to_frame,
        int(entry["tied"]),
        int(entry["states"]),
        _certificate(entry["certificate"]),
        dict(entry["provenance"]),
        attached,
    )


def _certificate(entry: Mapping[str, Any] | None) -> CertificateSummary | None:
    if entry is None:
        return None
    bound = entry["bound"]
    value, low, high = (float(bound[key]) for key in ("value", "low", "high"))  # JSON stores "inf" and "nan" as strings
    estimate = Estimate(value, low, high, int(bound["n"]))
    identified = None if entry["identified"] is None else bool(entry["identified"])
    return CertificateSummary(estimate, identified, bool(entry["whitened"]))


def _judged(entries: Sequence[Mapping[str, Any]] | None) -> tuple[Verdict, ...] | None:
    """Stored verdicts; None if the atlas was written without them, for example by an older version."""
    if entries is None:
        return None
    verdicts = tuple(Verdict.from_json(entry) for entry in entries)
    for one in verdicts:
        if not isinstance(one.name, str) or not isinstance(one.advice, str) or one.passed not in (True, False, None):
            raise InputError(f"atlas.json: the entry '{one.name}' is not a verdict.")
    return verdicts


def _anchors(sealed: SealedFolder) -> Anchors:
    tensors = _load(sealed, ANCHORS, {"ids", "coordinates"})
    ids, coordinates = _ids_from_numbers(tensors["ids"]), tensors["coordinates"]
    if coordinates.ndim != 2 or ids.shape != coordinates.shape[:1] or len(np.unique(ids)) < len(ids):
        raise InputError(f"{ANCHORS}: ids of shape {ids.shape} do not match coordinates of shape {coordinates.shape}.")
    return Anchors(ids, coordinates)


def _save(tensors: Mapping[str, np.ndarray]) -> bytes:
    return safetensors.numpy.save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()})


def _load(sealed: SealedFolder, file: str, names: set[str]) -> dict[str, np.ndarray]:
    if file not in sealed.files:
        raise InputError(f"{file} is not listed in atlas.json.")
    tensors = parse_safetensors(sealed.files[file], file)
    if tensors.keys() != names or not all(np.isfinite(tensor).all() for tensor in tensors.values()):
        raise InputError(f"{file} must hold {', '.join(sorted(names))} with finite numbers.")
    return tensors


def _ids_as_numbers(ids: np.ndarray) -> np.ndarray:
    """Strings as rows of code points, because safetensors hold numbers only."""
    return ids if ids.dtype.kind == "i" else ids.view(np.uint32).reshape(len(ids), -1)


def _ids_from_numbers(numbers: np.ndarray) -> np.ndarray:
    if numbers.ndim == 1 and numbers.dtype == np.int64:
        return numbers
    if numbers.ndim != 2 or numbers.dtype != np.uint32 or 0 in numbers.shape or numbers.max() > sys.maxunicode:
        raise InputError(f"{ANCHORS}: the ids are neither whole numbers nor strings.")
    return np.ascontiguousarray(numbers).view(f"<U{numbers.shape[1]}")[:, 0]
