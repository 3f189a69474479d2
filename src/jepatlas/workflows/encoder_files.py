"""Saved encoders: one safetensors file with the weights and a plain description of the network.

Unlike an exported program, it is loaded as a module that can be trained further; unlike a run, it needs neither the
data nor the world of the training. Nothing is unpickled.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.errors import InputError
from jepatlas.core.files import write_bytes
from jepatlas.core.parsing import parse_json, parse_tensors, safetensors_metadata
from jepatlas.nn import ConvConfig, CouplingConfig, MLPConfig, ViTConfig
from jepatlas.recipes import any_recipe
from jepatlas.workflows.export import encoder_of

__all__ = ["EncoderSpec", "SavedEncoder", "is_encoder_file", "load_encoder_file", "save_encoder"]

FORMAT = "jepatlas.Encoder"
LONGEST_HEADER = 1_000_000  # bytes
BATCH = 512


@dataclass(frozen=True)
class EncoderSpec:
    """The architecture of an encoder, and what it takes."""

    network: MLPConfig | ConvConfig | CouplingConfig | ViTConfig
    shape: tuple[int, ...]
    """Shape of one observation: (p,), or (channels, height, width)."""
    latents: int
    """Width of the latents."""
    pixels: bool
    """Whether observations are in uint8."""

    def build(self) -> nn.Module:
        if isinstance(self.network, ViTConfig):
            return self.network.build(self.shape)  # its width is that of the latents
        if isinstance(self.network, ConvConfig):
            return self.network.build(self.shape, self.latents)
        return self.network.build(self.shape[0], self.latents)


class SavedEncoder(nn.Module):
    """Maps observations (b, ...) as they were in training to latents (b, d)."""

    def __init__(self, spec: EncoderSpec, encoder: nn.Module) -> None:
        super().__init__()
        self.spec = spec
        self.encoder = encoder

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x)

    @torch.no_grad()
    def encode(self, x: np.ndarray | Tensor) -> Tensor:
        """Latents without gradients; images may have channels last."""
        rows = torch.as_tensor(x)
        channels, *size = self.spec.shape
        if size and rows.shape[1:] == (*size, channels):
            rows = rows.movedim(-1, 1)
        if rows.shape[1:] != self.spec.shape:
            shape = f"(n, {', '.join(map(str, self.spec.shape))})"
            raise InputError(f"'x' must have the shape {shape} for this encoder, but has {tuple(rows.shape)}.")
        if self.spec.pixels and rows.dtype != torch.uint8:
            raise InputError(f"'x' must be images in uint8 for this encoder, but has type {rows.dtype}.")
        parameter = next(self.parameters())
        found = []
        for part in rows.split(BATCH):
            given = part.to(parameter.device) if self.spec.pixels else part.to(parameter)
            found.append(self.encoder(given).float().cpu())
        return torch.cat(found)

    def to_bytes(self) -> bytes:
        tensors = {name: tensor.contiguous().cpu() for name, tensor in self.encoder.state_dict().items()}
        # A single metadata entry, because safetensors does not fix the order of several.
        return safetensors.torch.save(tensors, {FORMAT: json.dumps(to_plain(self.spec))})


def save_encoder(run: Path, path: Path) -> SavedEncoder:
    """Write the encoder of a run to a file."""
    recipe: Any = any_recipe(run)
    network = getattr(recipe, "encoder", None)
    module, example = encoder_of(run)
    if not isinstance(network, MLPConfig | ConvConfig | CouplingConfig | ViTConfig):
        raise InputError(f"The encoder of {run} is your own code. Export it instead: jepatlas export.")
    with torch.no_grad():
        latents = module.eval()(example).shape[1]
    spec = EncoderSpec(network, tuple(example.shape[1:]), latents, example.dtype == torch.uint8)
    saved = SavedEncoder(spec, module).eval()
    write_bytes(path, saved.to_bytes())
    return saved


def load_encoder_file(path: Path) -> SavedEncoder:
    """Read an encoder; raises InputError if the file is not one."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    about = safetensors_metadata(data, path).get(FORMAT)
    if about is None:
        raise InputError(f"{path} is not a saved encoder: its header does not declare one.")
    tensors = parse_tensors(data, path)
    try:
        spec = from_plain(EncoderSpec, parse_json(about, path), f"The encoder of {path}")
        encoder = _build(spec, tensors)
    except (AttributeError, IndexError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"{path} is not a saved encoder: {str(error).splitlines()[0]}") from error
    if bad := [name for name, tensor in tensors.items() if not tensor.isfinite().all()]:
        raise InputError(f"{path} is not a usable encoder: '{bad[0]}' must be finite.")
    return SavedEncoder(spec, encoder).eval()


def _build(spec: EncoderSpec, tensors: dict[str, Tensor]) -> nn.Module:
    """The network with these tensors. Names and shapes are compared before memory is taken for it."""
    network: Any = spec.network
    layers = max(getattr(network, name, 0) for name in ("depth", "layers"))
    if layers > len(tensors):
        raise ValueError(f"it declares {layers} layers, but holds {len(tensors)} tensors.")
    with torch.device("meta"):
        outline = spec.build()
    outline.load_state_dict(tensors, assign=True)
    encoder = spec.build()
    encoder.load_state_dict(tensors)
    return encoder


def is_encoder_file(path: Path) -> bool:
    """Whether the header of a file declares a saved encoder. The rest of the file is not checked."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        return f'"{FORMAT}"'.encode() in file.read(min(length, LONGEST_HEADER))
