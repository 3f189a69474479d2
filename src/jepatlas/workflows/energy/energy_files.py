"""Saved energies: one safetensors file with weights and a plain description, and energies attached to an atlas.

The description (widths, head, floor) is stored as metadata, with a hash of the whole file in which the hash itself is
replaced by zeros. Files of versions before 0.2 have none and are read without it. Nothing is unpickled.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch

from jepatlas.alignment import Atlas, Attachment
from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.errors import InputError
from jepatlas.core.files import write_bytes
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.parsing import parse_json, parse_tensors, safetensors_metadata
from jepatlas.core.sealing import sha256_of_bytes
from jepatlas.energy import HEADS, EmbeddedEnergy, HeadConfig, IQEConfig, LeastAction, PortedEnergy
from jepatlas.energy.least_action.stored import LeastActionSpec, from_tensors, to_tensors
from jepatlas.nn import MLPConfig
from jepatlas.recipes import EnergyRecipe

__all__ = [
    "EnergySpec",
    "SavedEnergy",
    "attach_energy",
    "energy_for",
    "energy_from_bytes",
    "energy_of",
    "is_energy_file",
    "load_energy_file",
    "save_energy",
]

FORMAT = "jepatlas.Energy"
MAP_PREFIX = "to_source."
LONGEST_HEADER = 1_000_000  # bytes
MAP_FIELDS = [part.name for part in fields(LinearMap)]
ATTACHMENT_KIND = "energy"
NO_HASH = "0" * 64  # in place of the file's hash while it is computed


@dataclass(frozen=True)
class EnergySpec:
    """The architecture of an energy."""

    dim: int
    """Width of the latents or observations it takes."""
    embedding: MLPConfig = field(default_factory=MLPConfig)
    width: int = 256
    floor: float = 0.0
    head: HeadConfig = field(default_factory=IQEConfig)
    discount: float | None = None
    """γ, if its values are discounted energies."""

    @classmethod
    def of(cls, recipe: EnergyRecipe, dim: int) -> EnergySpec:
        discount = getattr(recipe.learning, "gamma", None)
        return cls(dim, recipe.embedding, recipe.width, recipe.floor, recipe.head, discount)

    def build(self) -> EmbeddedEnergy:
        return EmbeddedEnergy(self.head.build(self.width), self.embedding.build(self.dim, self.width), self.floor)


@dataclass(frozen=True)
class SavedEnergy:
    """An energy, its architecture, and the map from another model's latents if it was ported."""

    energy: EmbeddedEnergy | LeastAction
    spec: EnergySpec | LeastActionSpec
    threshold: float = float("inf")
    """Pairs with a larger energy are called unreachable."""
    to_source: LinearMap | None = None

    @classmethod
    def computed(cls, energy: LeastAction) -> SavedEnergy:
        """A least-action energy, which has no threshold: it is +∞ where no way was observed."""
        return cls(energy, LeastActionSpec.of(energy))

    @property
    def dim(self) -> int:
        """Width of the latents it takes."""
        return self.spec.dim if self.to_source is None else len(self.to_source.x_mean)

    def model(self) -> EmbeddedEnergy | LeastAction | PortedEnergy:
        """The module to call with latents."""
        return self.energy if self.to_source is None else PortedEnergy(self.energy, self.to_source)

    def ported(self, to_source: LinearMap) -> SavedEnergy:
        """The energy on another model's latents; `to_source` maps these to the latents this energy takes."""
        if len(to_source.y_mean) != self.dim:
            raise InputError(
                f"to_source maps to {len(to_source.y_mean)} dimensions, but the energy takes {self.dim} dimensions."
            )
        composed = to_source if self.to_source is None else to_source.compose(self.to_source)
        return replace(self, to_source=composed)

    def to_bytes(self) -> bytes:
        about = {"spec": to_plain(self.spec), "threshold": repr(self.threshold), "sha256": NO_HASH}
        if isinstance(self.energy, LeastAction):
            tensors = to_tensors(self.energy)
        else:
            tensors = {name: tensor.contiguous() for name, tensor in self.energy.state_dict().items()}
        if self.to_source is not None:
            for name in MAP_FIELDS:
                array = np.array(getattr(self.to_source, name), order="C")  # a fitted map may be transposed
                tensors[f"{MAP_PREFIX}{name}"] = torch.from_numpy(array)
        # A single metadata entry, because safetensors does not fix the order of several.
        data = safetensors.torch.save(tensors, {FORMAT: json.dumps(about)})
        return data.replace(NO_HASH.encode(), sha256_of_bytes(data).encode(), 1)


def save_energy(saved: SavedEnergy, path: Path) -> None:
    write_bytes(path, saved.to_bytes())


def load_energy_file(path: Path) -> SavedEnergy:
    """Read an energy file; raises InputError if it is not one."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    return energy_from_bytes(data, str(path))


def energy_from_bytes(data: bytes, source: str) -> SavedEnergy:
    """Parse and validate an energy; `source` names its origin in errors."""
    about = _metadata(data, source)
    _check_hash(data, about, source)
    tensors = parse_tensors(data, source)
    try:
        spec = from_plain(_spec_class(about["spec"]), about["spec"], "spec")
        threshold = float(about["threshold"])
        parts = {}
        for name in MAP_FIELDS:
            if f"{MAP_PREFIX}{name}" in tensors:
                parts[name] = tensors.pop(f"{MAP_PREFIX}{name}").numpy()
        energy = _build(spec, tensors)
        saved = SavedEnergy(energy.eval().requires_grad_(False), spec, threshold, _linear_map(parts))
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{source} is not a saved energy: {str(error).splitlines()[0]}") from error
    _check_usable(saved, source)
    return saved


def _spec_class(spec: Any) -> type[EnergySpec] | type[LeastActionSpec]:
    computed = isinstance(spec, dict) and spec.get("kind") == LeastActionSpec.kind
    return LeastActionSpec if computed else EnergySpec


def _build(spec: EnergySpec | LeastActionSpec, tensors: dict[str, torch.Tensor]) -> EmbeddedEnergy | LeastAction:
    """The energy with these tensors. Names and shapes are compared before memory is taken for the network."""
    if isinstance(spec, LeastActionSpec):
        return from_tensors(spec, tensors)
    if spec.embedding.depth > len(tensors):
        raise ValueError(f"spec declares {spec.embedding.depth} layers, but the file holds {len(tensors)} tensors.")
    if spec.head.kind in HEADS:  # a user-defined head need not support the meta device
        with torch.device("meta"):
            outline = spec.build()
        outline.load_state_dict(tensors, assign=True)
    energy = spec.build()
    energy.load_state_dict(tensors)
    return energy


def is_energy_file(path: Path) -> bool:
    """Whether the header of a file declares a saved energy. The rest of the file is not checked."""
    if path.suffix != ".safetensors":
        return False
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        return f'"{FORMAT}"'.encode() in file.read(min(length, LONGEST_HEADER))


def attach_energy(atlas: Atlas, chart: str, name: str, saved: SavedEnergy) -> Atlas:
    """The atlas with the energy `name` attached to the chart whose latents it takes."""
    width = atlas.chart(chart).width
    if saved.dim != width:
        raise InputError(f"The energy '{name}' takes {saved.dim} dimensions, but the chart '{chart}' has {width}.")
    return atlas.attach(chart, Attachment(ATTACHMENT_KIND, name, saved.to_bytes()))


def energy_of(atlas: Atlas, chart: str, name: str) -> SavedEnergy:
    """The energy `name` attached to a chart."""
    data = atlas.chart(chart).attachment(ATTACHMENT_KIND, name).data
    return energy_from_bytes(data, f"The energy '{name}' of the chart '{chart}'")


def energy_for(atlas: Atlas, chart: str, name: str, source: str) -> SavedEnergy:
    """The energy `name` of the chart `source`, ported to the latents of `chart`."""
    return energy_of(atlas, source, name).ported(atlas.map(chart, source))


def _linear_map(parts: dict[str, np.ndarray]) -> LinearMap | None:
    if not parts:
        return None
    result = LinearMap(**parts)
    if result.weight.shape != (result.y_mean.size, result.x_mean.size):
        raise ValueError(f"the weight of its map has shape {result.weight.shape}, which does not match its means.")
    return result


def _metadata(data: bytes, source: str) -> dict[str, Any]:
    """The metadata of a safetensors file, which starts with the header's length in eight bytes and the header."""
    try:
        about = safetensors_metadata(data, source).get(FORMAT)
        parsed = None if about is None else parse_json(about, source)
    except InputError as error:
        raise InputError(f"{source} is not a saved energy: its header cannot be read.") from error
    if not isinstance(parsed, dict):
        raise InputError(f"{source} is not a saved energy: its header does not declare one.")
    return parsed


def _check_hash(data: bytes, about: dict[str, Any], source: str) -> None:
    """Raise InputError if a file does not have the hash in its header."""
    if unknown := sorted(about.keys() - {"spec", "threshold", "sha256"}):
        raise InputError(f"{source} is not a saved energy that this jepatlas reads: it declares '{unknown[0]}'.")
    if "sha256" not in about:  # written before version 0.2
        return
    found = str(about["sha256"])
    if len(found) != len(NO_HASH) or not found.isascii() or not found.isalnum():
        raise InputError(f"{source} is a damaged saved energy: the hash in its header is not one.")
    if found != sha256_of_bytes(data.replace(found.encode(), NO_HASH.encode(), 1)):
        raise InputError(
            f"{source} is a damaged saved energy: its hash differs from the recorded one. Copy or write it again."
        )


def _check_usable(saved: SavedEnergy, source: str) -> None:
    bad = [name for name, tensor in saved.energy.state_dict().items() if not tensor.isfinite().all()]
    to_source = saved.to_source
    map_numbers = [] if to_source is None else [*to_source.raw_weight.flat, *to_source.x_mean, *to_source.y_mean]
    if not np.isfinite(map_numbers).all():
        bad.append("its map")
    if math.isnan(saved.threshold):
        bad.append("its threshold")
    if bad:
        raise InputError(f"{source} is not a usable energy: {', '.join(bad)} must be finite.")
    if to_source is not None and len(to_source.y_mean) != saved.spec.dim:
        raise InputError(
            f"{source} is not a usable energy: its map leads to {len(to_source.y_mean)} dimensions, but it takes "
            f"{saved.spec.dim}."
        )
