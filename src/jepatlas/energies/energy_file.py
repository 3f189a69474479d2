"""A learned energy as one file that can be mailed: weights, and what they are the weights of.

The format is safetensors, with a plain description (widths, head, floor) as its metadata; nothing is ever unpickled.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import nn

from jepatlas.base.config import from_plain, to_plain
from jepatlas.base.errors import InputError
from jepatlas.base.files import write_bytes
from jepatlas.base.records import LinearMap
from jepatlas.encoders import MLPConfig
from jepatlas.energy import EmbeddedEnergy, PortedEnergy
from jepatlas.energy.heads import HeadConfig, IQEConfig
from jepatlas.recipes import EnergyRecipe

__all__ = ["EnergySpec", "SavedEnergy", "energy_from_bytes", "load_energy_file", "save_energy"]

FORMAT = "jepatlas.Energy"
MAP = "to_source."
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
            tensors |= {f"{MAP}{name}": torch.from_numpy(np.array(getattr(self.to_source, name))) for name in PARTS}
        return safetensors.torch.save(tensors, {"format": FORMAT, "about": json.dumps(about)})


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
        spec, threshold = from_plain(EnergySpec, about["spec"], where), float(about["threshold"])
        energy, tensors = spec.build(), safetensors.torch.load(data)
        parts = {name: tensors.pop(f"{MAP}{name}").numpy() for name in PARTS if f"{MAP}{name}" in tensors}
        energy.load_state_dict(tensors)
    except (KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        raise InputError(f"{where} is not a saved energy: {str(error).splitlines()[0]}") from error
    _refuse_nan(energy, where)
    saved = SavedEnergy(energy.eval().requires_grad_(False), spec, threshold)
    return saved.ported(LinearMap(**parts)) if parts else saved


def _about(data: bytes, where: str) -> dict[str, Any]:
    """The metadata: the header's length in eight bytes, then the header itself."""
    try:
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        metadata = header.get("__metadata__", {})
        if metadata.get("format") != FORMAT:
            raise InputError(f"{where} is not a saved energy: it is {metadata.get('format') or 'something else'}.")
        return json.loads(metadata["about"])
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise InputError(f"{where} is not a saved energy: its header cannot be read.") from error


def _refuse_nan(energy: nn.Module, where: str) -> None:
    if bad := [name for name, tensor in energy.state_dict().items() if not tensor.isfinite().all()]:
        raise InputError(f"{where} is not a usable energy: {', '.join(bad)} has entries that are not finite.")
