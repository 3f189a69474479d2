"""Trained agents on images, and latents of images in the format of `jepatlas align`.

Latents come with state ids, groups, labels, and downsampled raw images for the PCA control.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jepatlas.core.contracts import Objective
from jepatlas.core.errors import InputError
from jepatlas.data.images import Shuffle, ViewTable, augmented, pipeline_named
from jepatlas.recipes import Part, ViewImages, VisionRecipe, build_vision, load_recipe, read_images
from jepatlas.workflows.runs import trained

__all__ = [
    "VisionAgent",
    "downsample",
    "encode_images",
    "groups_of",
    "labels_of",
    "latents_of",
    "load_agent",
    "untrained_objective",
]

BATCH = 256
RAW_SIZE = 16  # height and width of the raw images for controls


@dataclass(frozen=True)
class VisionAgent:
    """A trained agent and the images of its view."""

    recipe: VisionRecipe
    objective: Any  # a CropObjective
    seen: ViewImages

    def latents(self, rows: np.ndarray) -> np.ndarray:
        """Latents (b, d) of some of its images."""
        return encode_images(self.objective, self.seen.images, rows, self.recipe.shuffle)


def load_agent(folder: Path | str) -> VisionAgent:
    """Load an agent from its run folder, on the device of its training if available."""
    folder = Path(folder)
    recipe = load_recipe(folder, VisionRecipe)
    seen = read_images(recipe)
    objective = trained(build_vision(recipe, seen), recipe, folder)
    return VisionAgent(recipe, objective.to(recipe.training.device_here()), seen)


def untrained_objective(recipe: VisionRecipe, seen: ViewImages) -> nn.Module:
    """The agent's objective before its first step: the seed reproduces the initial weights."""
    return build_vision(recipe, seen).to(recipe.training.device_here()).eval()


def groups_of(seen: ViewImages, rows: np.ndarray) -> np.ndarray | None:
    """The object or time block of each image; None if the table has no groups."""
    return seen.table.column("group")[rows] if "group" in seen.table.columns else None


def labels_of(table: ViewTable, rows: np.ndarray) -> np.ndarray | None:
    """Labels of the rows; None if one is missing."""
    if "label" not in table.columns:
        return None
    labels = table.columns["label"][rows]
    return None if (labels == "").any() else labels


def encode_images(
    objective: Objective | nn.Module, images: np.ndarray, rows: np.ndarray, shuffle: Shuffle | None = None
) -> np.ndarray:
    """Latents (b, d) of b rows of images (n, height, width, 3), which may be memory-mapped.

    `objective` may also be an encoder.
    """
    return _encode(objective, _batches(images, rows, shuffle)).h


def latents_of(
    agent: VisionAgent,
    part: Part | np.ndarray = "held",
    *,
    layers: bool = False,
    pipeline: str | None = None,
    seed: int = 0,
    untrained: bool = False,
) -> dict[str, np.ndarray]:
    """Arrays for `jepatlas align` and `jepatlas migrate`, of held-out, learned or all states, or of given rows.

    `raw` are downsampled images as the agent receives them (shuffled if it was trained so), for the PCA control. With
    "all", `held` marks the held-out states. A `pipeline` augments the images first; with equal seeds two agents see the
    same images in two views. `untrained` adds the latents of the network before training, as a control.
    """
    seen = agent.seen
    everything = np.arange(len(seen.images))
    parts = {"held": seen.held, "learnt": seen.learnt, "all": everything}
    rows = parts[part] if isinstance(part, str) else part

    def batches() -> Iterator[np.ndarray]:
        view = None if pipeline is None else (pipeline, seed)
        return _batches(seen.images, rows, agent.recipe.shuffle, view)

    arrays = _to_arrays(_encode(agent.objective, batches(), layers=layers), seen.table, rows)
    if untrained:
        arrays["untrained"] = _encode(untrained_objective(agent.recipe, seen), batches()).h
    if isinstance(part, str) and part == "all":
        arrays["held"] = np.isin(everything, seen.held)
    return arrays


@dataclass(frozen=True)
class _Encoded:
    h: np.ndarray  # (b, d)
    raw: np.ndarray  # (b, 16, 16, 3) at most, uint8
    layers: list[np.ndarray]  # each (b, d), first block first; empty unless requested


def _batches(
    images: np.ndarray, rows: np.ndarray, shuffle: Shuffle | None = None, view: tuple[str, int] | None = None
) -> Iterator[np.ndarray]:
    """Batches of images as an agent receives them; `view` is a pipeline and a seed."""
    for start in range(0, len(rows), BATCH):
        numbers = rows[start : start + BATCH]
        batch = np.asarray(images[numbers])
        if shuffle is not None:
            batch = shuffle(batch, numbers)
        yield batch if view is None else _augment_once(batch, numbers, *view)


@torch.no_grad()
def _encode(objective: Any, batches: Iterable[np.ndarray], *, layers: bool = False) -> _Encoded:
    encode = getattr(objective, "encode", objective)
    device = next(objective.parameters()).device
    if layers and not hasattr(objective.encoder, "layers"):
        raise InputError(
            f"layers needs an encoder with outputs per layer; {type(objective.encoder).__name__} has none."
        )
    h: list[Tensor] = []
    raw: list[np.ndarray] = []
    blocks: list[list[Tensor]] = []
    for images in batches:
        x = _to_network(images).to(device)
        h.append(encode(x).float().cpu())
        raw.append(downsample(images))
        if layers:
            blocks.append([layer.float().cpu() for layer in objective.encoder.layers(x)])
    joined = [torch.cat(layer).numpy() for layer in zip(*blocks, strict=True)]
    return _Encoded(torch.cat(h).numpy(), np.concatenate(raw), joined)


def _to_network(images: np.ndarray) -> Tensor:
    """Channels first and in 0 … 1, as crops are in training."""
    return torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2) / 255


def _to_bytes(x: Tensor) -> np.ndarray:
    return x.round().byte().permute(0, 2, 3, 1).numpy()


def _to_arrays(found: _Encoded, table: ViewTable, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Latents with state ids, and with groups and labels if all rows have one."""
    arrays = {"h": found.h, "ids": table.column("state")[rows]}
    for name, column in (("groups", "group"), ("labels", "label")):
        if column in table.columns and (table.column(column)[rows] != "").all():
            arrays[name] = table.column(column)[rows]
    arrays["raw"] = found.raw
    for number, layer in enumerate(found.layers):
        arrays[f"layer{number:02d}"] = layer
    return arrays


def _augment_once(images: np.ndarray, rows: np.ndarray, pipeline: str, seed: int) -> np.ndarray:
    size = images.shape[1:3]
    return _to_bytes(augmented(images, pipeline_named(pipeline), size, rows, seed=seed, name=f"view {pipeline}") * 255)


def downsample(images: np.ndarray) -> np.ndarray:
    """(b, height, width, 3) → (b, 16, 16, 3), by averaging."""
    size = (min(RAW_SIZE, images.shape[1]), min(RAW_SIZE, images.shape[2]))
    return _to_bytes(255 * torch.nn.functional.adaptive_avg_pool2d(_to_network(images), size))
