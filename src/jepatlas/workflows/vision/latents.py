"""Latents of images, as `jepatlas align` reads them: with the ids of their states, groups, labels and raw input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.data.images import Decoded, Shuffle, ViewTable, augmented, pipeline_named
from jepatlas.recipes import Part, ViewImages, VisionRecipe, build_vision

__all__ = ["before_training", "encode_images", "latents_by", "latents_of"]

BATCH = 256
RAW = 16  # height and width of the images that controls are made from


def encode_images(objective: Any, images: np.ndarray, rows: np.ndarray, shuffle: Shuffle | None = None) -> np.ndarray:
    """Latents (b, d) of b `rows` of a data set's images (n, height, width, 3), which may be larger than memory.

    `objective` may be an encoder alone.
    """
    return _encoded(objective, _given(images, rows, shuffle)).h


def latents_of(
    agent: Any,
    part: Part | np.ndarray = "held",
    *,
    layers: bool = False,
    pipeline: str | None = None,
    seed: int = 0,
    untrained: bool = False,
) -> dict[str, np.ndarray]:
    """Everything that `jepatlas align` and `jepatlas migrate` can use, of states held out or learned from; or of rows.

    A `pipeline` augments the images first, by the seed: so two agents see the same images from two views.
    `raw` are small images: the PCA control is made from what the agent was given, shuffled where that was.
    Of all states, `held` marks those that were not learned from. `untrained` adds the latents of the same images by the
    same network before its first step: the control that tells what training did.
    """
    seen, everything = agent.seen, np.arange(len(agent.seen.images))
    parts = {"held": seen.held, "learnt": seen.learnt, "all": everything}
    rows = parts[part] if isinstance(part, str) else part

    def given() -> Iterator[np.ndarray]:
        return _given(seen.images, rows, agent.recipe.shuffle, None if pipeline is None else (pipeline, seed))

    arrays = _arrays(_encoded(agent.objective, given(), layers=layers), seen.table, rows)
    if untrained:
        arrays["untrained"] = _encoded(before_training(agent.recipe, seen), given()).h
    return arrays | {"held": np.isin(everything, seen.held)} if isinstance(part, str) and part == "all" else arrays


def before_training(recipe: VisionRecipe, seen: ViewImages) -> Any:
    """An agent's network before its first step: its seed draws the same weights again."""
    return build_vision(recipe, seen).to(recipe.training.device_here()).eval()


def latents_by(encoder: nn.Module, seen: Decoded, view: str | None = None) -> dict[str, np.ndarray]:
    """The same by an encoder of your own, of all images or of one view's.

    It takes images (b, 3, height, width), light from 0 to 1, and gives latents (b, d).
    """
    rows = np.arange(len(seen.images)) if view is None else seen.table.rows_of_view(view)
    modes = {module: module.training for module in encoder.modules()}
    found = _encoded(encoder.eval(), _given(seen.images, rows))
    for module, learning in modes.items():  # each as it was: a part may be frozen
        module.training = learning
    return _arrays(found, seen.table, rows)


@dataclass(frozen=True)
class _Encoded:
    """What a network makes of b images, and small ones of what it was given."""

    h: np.ndarray  # (b, d)
    raw: np.ndarray  # (b, 16, 16, 3) at most, bytes
    layers: list[np.ndarray]  # each (b, d), the first block first; none where they were not asked for


def _given(
    images: np.ndarray, rows: np.ndarray, shuffle: Shuffle | None = None, view: tuple[str, int] | None = None
) -> Iterator[np.ndarray]:
    """Batches of what an agent is given; `view` is a pipeline by which each image is augmented once, and its seed."""
    for start in range(0, len(rows), BATCH):
        part = rows[start : start + BATCH]
        some = np.asarray(images[part])
        some = some if shuffle is None else shuffle(some, part)
        yield some if view is None else _through(some, part, *view)


@torch.no_grad()
def _encoded(objective: Any, given: Iterable[np.ndarray], *, layers: bool = False) -> _Encoded:
    encode, device = getattr(objective, "encode", objective), next(objective.parameters()).device
    if layers and not hasattr(objective.encoder, "layers"):
        raise InputError(f"{type(objective.encoder).__name__} does not give the latents of its layers.")
    h, raw, blocks = list[Tensor](), list[np.ndarray](), list[list[Tensor]]()
    for some in given:
        batch = _channels_first(some).to(device)
        h.append(encode(batch).float().cpu())
        raw.append(_small(some))
        if layers:
            blocks.append([layer.float().cpu() for layer in objective.encoder.layers(batch)])
    found = [torch.cat(layer).numpy() for layer in zip(*blocks, strict=True)]
    return _Encoded(torch.cat(h).numpy(), np.concatenate(raw), found)


def _channels_first(images: np.ndarray) -> Tensor:
    """Light from 0 to 1, as crops are in training."""
    return torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2) / 255


def _arrays(found: _Encoded, table: ViewTable, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Latents with what is known of their states: groups and labels, where all of these have one."""
    arrays = {"h": found.h, "ids": table.column("state")[rows]}
    for name, column in (("groups", "group"), ("labels", "label")):
        if column in table.columns and (table.column(column)[rows] != "").all():
            arrays[name] = table.column(column)[rows]
    return arrays | {"raw": found.raw} | {f"layer{number:02d}": layer for number, layer in enumerate(found.layers)}


def _through(images: np.ndarray, rows: np.ndarray, pipeline: str, seed: int) -> np.ndarray:
    """Each image augmented once, as bytes again."""
    named = pipeline_named(pipeline)
    seen = augmented(images, named, images.shape[1:3], rows, seed=seed, name=f"view {pipeline}")
    return (seen * 255).round().byte().permute(0, 2, 3, 1).numpy()


def _small(images: np.ndarray) -> np.ndarray:
    """(b, height, width, 3) → (b, 16, 16, 3), means over squares of pixels."""
    size = (min(RAW, images.shape[1]), min(RAW, images.shape[2]))
    small = 255 * torch.nn.functional.adaptive_avg_pool2d(_channels_first(images), size)
    return small.round().byte().permute(0, 2, 3, 1).numpy()
