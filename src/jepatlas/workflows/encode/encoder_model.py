"""What encodes rows of a source: a function from items to latents, with the preprocessing that belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.errors import InputError

__all__ = ["EncoderModel", "Latents", "ModelOptions", "Pool", "default_device"]

Pool = Literal["auto", "cls", "mean"]
Reads = Literal["images", "clips", "texts"]
Latents = dict[str, Tensor]  # "h" (b, d), and "layer00", … if requested

WORDS: dict[str, str] = {"images": "images", "clips": "video clips", "texts": "texts"}


@dataclass(frozen=True)
class ModelOptions:
    """How a model is opened. Options that do not apply to a kind of model must keep their defaults."""

    pool: Pool = "auto"
    layers: str | None = None
    """`all`: also the latents after each block. A number: the latents after that block instead of the last."""
    size: int | None = None
    """Height and width of the images, if the model does not define its own."""
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    clip: int | None = None
    """Frames per clip, for video models; by default that of the model."""
    tokenizer: str | None = None
    """The tokenizer of an ONNX file of texts: a folder, or a name on the Hub; by default in the folder of the file."""
    untrained: bool = False
    """Random weights instead of the trained ones, as a control."""
    device: str | None = None

    def __post_init__(self) -> None:
        if self.layers not in (None, "all") and not str(self.layers).isdecimal():
            raise InputError(f"layers is '{self.layers}', but it must be 'all' or the number of a block.")
        if self.pool not in ("auto", "cls", "mean"):
            raise InputError(f"pool is '{self.pool}', but it must be 'auto', 'cls' or 'mean'.")

    def refuse(self, model: str, *names: str) -> None:
        """Raise InputError if one of these options is given, which do not apply to the model."""
        default = ModelOptions()
        for name in names:
            if getattr(self, name) != getattr(default, name):
                raise InputError(f"'{model}' does not take the option '{name}'. Leave it out.")

    def chosen(self, layers: Sequence[Tensor]) -> Latents:
        """The latents that `layers` asks for, of those after each block."""
        if self.layers == "all":
            return {"h": layers[-1]} | {f"layer{number:02d}": layer for number, layer in enumerate(layers)}
        number = int(self.layers or len(layers) - 1)
        if number >= len(layers):
            raise InputError(f"The model has the layers 0 to {len(layers) - 1}, but layer {number} was requested.")
        return {"h": layers[number]}


@dataclass(frozen=True)
class EncoderModel:
    """`encode(prepare(items))` are the latents of some items; `prepare` runs in another thread than `encode`."""

    name: str
    reads: Reads
    prepare: Callable[[Sequence[Any]], Any]
    encode: Callable[[Any], Latents]
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    frames: int = 1
    """Frames of a clip."""

    @torch.no_grad()
    def __call__(self, items: Sequence[Any]) -> dict[str, np.ndarray]:
        """Images (height, width, 3) or clips (frames, height, width, 3) in uint8, or texts, as latents (b, d)."""
        return self.latents(self.prepare(items), len(items))

    @torch.no_grad()
    def latents(self, prepared: Any, count: int) -> dict[str, np.ndarray]:
        """Latents of `count` prepared items, in float32. GPUs compute in mixed precision."""
        mixed = torch.autocast("cuda", torch.bfloat16) if self.device.type == "cuda" else nullcontext()
        with mixed:
            found = self.encode(prepared)
        for name, latents in found.items():
            if latents.ndim != 2 or len(latents) != count or not latents.shape[1]:
                raise InputError(
                    f"'{self.name}' must return one vector for each of {count} {WORDS[self.reads]}, but '{name}' has "
                    f"shape {tuple(latents.shape)}. Pool the other dimensions."
                )
        return {name: latents.float().cpu().numpy() for name, latents in found.items()}


def default_device(name: str | None) -> torch.device:
    """The named device, or the first GPU, or the CPU."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros((), device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(f"The device '{name}' cannot be used: {str(error).splitlines()[0]}") from error
    return device
