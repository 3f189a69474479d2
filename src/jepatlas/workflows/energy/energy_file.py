"""A learned energy as one file that can be mailed: weights, and what they are the weights of.

The format is safetensors, with a plain description (widths, head, floor) as its metadata; nothing is ever unpickled.
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
from safetensors import SafetensorError

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.errors import InputError
from jepatlas.core.files import write_bytes
from jepatlas.core.linear_map import LinearMap
from jepatlas.energy import EmbeddedEnergy, PortedEnergy
from jepatlas.energy.heads import HeadConfig, IQEConfig
from jepatlas.nn import MLPConfig
from jepatlas.recipes import EnergyRecipe

__all__ = ["EnergySpec", "SavedEnergy", "energy_from_bytes", "is_energy_file", "load_energy_file", "save_energy"]

FORMAT = "jepatlas.Energy"
MAP = "to_source."
LONGEST_HEADER = 1_000_000  # bytes
PARTS = [part.name for part in fields(LinearMap)]


@dataclass(frozen=True)
class EnergySpec:
    """What an energy is made of."""

    dim: int
    """Width of the latents or observations that it takes."""
    embedding: MLPConfig = field(default_factory=MLPConfig)
    width: int = 256
    floor: float = 0.0
    head: HeadConfig = field(default_factory=IQEConfig)
    discount: float | None = None
    """γ, where what it gives is a discounted energy."""

    @classmethod
    def of(cls, recipe: EnergyRecipe, dim: int) -> EnergySpec:
        discount = getattr(recipe.learning, "gamma", None)
        return cls(dim, recipe.embedding, recipe.width, recipe.floor, recipe.head, discount)

    def build(self) -> EmbeddedEnergy:
        return EmbeddedEnergy(self.head.build(self.width), self.embedding.build(self.dim, self.width), self.floor)


@dataclass(frozen=True)
class SavedEnergy:
    """An energy, what it is made of, and the map that carries it to another model's latents where it was ported."""

    energy: EmbeddedEnergy
    spec: EnergySpec
    threshold: float = float("inf")
    """Above it, pairs are called unreachable."""
    to_source: LinearMap | None = None

    @property
    def dim(self) -> int:
        """Width of the latents that it takes."""
        return self.spec.dim if self.to_source is None else len(self.to_source.x_mean)

    def model(self) -> EmbeddedEnergy | PortedEnergy:
        """What is called with latents."""
        return self.energy if self.to_source is None else PortedEnergy(self.energy, self.to_source)

    def ported(self, to_source: LinearMap) -> SavedEnergy:
        """For another model, whose latents `to_source` takes to those that this energy takes."""
        if len(to_source.y_mean) != self.dim:
            raise InputError(f"The map leads to {len(to_source.y_mean)} dimensions, but the energy takes {self.dim}.")
        onward = to_source if self.to_source is None else to_source.compose(self.to_source)
        return replace(self, to_source=onward)

    def to_bytes(self) -> bytes:
        about = {"spec": to_plain(self.spec), "threshold": repr(self.threshold)}
        tensors = {name: tensor.contiguous() for name, tensor in self.energy.state_dict().items()}
        if self.to_source is not None:
            parts = {
                name: np.array(getattr(self.to_source, name), order="C") for name in PARTS
            }  # a fit may be transposed
            tensors |= {f"{MAP}{name}": torch.from_numpy(part) for name, part in parts.items()}
        return safetensors.torch.save(tensors, {FORMAT: json.dumps(about)})  # one entry: of several, the order varies


def save_energy(saved: SavedEnergy, path: Path) -> None:
    write_bytes(path, saved.to_bytes())


def load_energy_file(path: Path) -> SavedEnergy:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    return energy_from_bytes(data, str(path))


def energy_from_bytes(data: bytes, where: str) -> SavedEnergy:
    """Read strictly: what is not a whole energy is refused, and `where` says which."""
    about = _about(data, where)
    try:
        spec, threshold = from_plain(EnergySpec, about["spec"], "spec"), float(about["threshold"])
        energy, tensors = spec.build(), safetensors.torch.load(data)
        parts = {name: tensors.pop(f"{MAP}{name}").numpy() for name in PARTS if f"{MAP}{name}" in tensors}
        energy.load_state_dict(tensors)
        saved = SavedEnergy(energy.eval().requires_grad_(False), spec, threshold, _map(parts))
    except (KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        raise InputError(f"{where} is not a saved energy: {str(error).splitlines()[0]}") from error
    _refuse_unusable(saved, where)
    return saved


def is_energy_file(path: Path) -> bool:
    """Whether a file says of itself that it is a saved energy; it may still be a broken one."""
    if path.suffix != ".safetensors":
        return False
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        return f'"{FORMAT}"'.encode() in file.read(min(length, LONGEST_HEADER))


def _map(parts: dict[str, np.ndarray]) -> LinearMap | None:
    if not parts:
        return None
    found = LinearMap(**parts)
    if found.weight.shape != (found.y_mean.size, found.x_mean.size):
        raise ValueError(f"its map has a weight of {found.weight.shape}, which does not fit its means.")
    return found


def _about(data: bytes, where: str) -> dict[str, Any]:
    """The metadata: the header's length in eight bytes, then the header itself."""
    try:
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        about = header.get("__metadata__", {}).get(FORMAT)
        found = None if about is None else json.loads(about)
    except (ValueError, AttributeError, TypeError) as error:
        raise InputError(f"{where} is not a saved energy: its header cannot be read.") from error
    if not isinstance(found, dict):
        raise InputError(f"{where} is not a saved energy: its header does not say so.")
    return found


def _refuse_unusable(saved: SavedEnergy, where: str) -> None:
    bad = [name for name, tensor in saved.energy.state_dict().items() if not tensor.isfinite().all()]
    led = saved.to_source
    bad += [] if led is None or np.isfinite([*led.raw_weight.flat, *led.x_mean, *led.y_mean]).all() else ["its map"]
    bad += ["its threshold"] if math.isnan(saved.threshold) else []
    if bad:
        raise InputError(f"{where} is not a usable energy: {', '.join(bad)} has entries that are not finite.")
    if led is not None and len(led.y_mean) != saved.spec.dim:
        raise InputError(
            f"{where} is not a usable energy: its map leads to {len(led.y_mean)} dimensions, but it takes "
            f"{saved.spec.dim}."
        )
