"""Latents of images, as `jepatlas align` reads them: with the ids of their states, groups, labels and raw input."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from jepatlas.base.errors import InputError
from jepatlas.views.images import Decoded, Shuffle, ViewTable, augmented, pipeline_named

__all__ = ["Part", "encode_images", "encode_layers", "latents_by", "latents_of"]

BATCH = 256
RAW = 16  # height and width of the grey images that controls are made from

Part = Literal["held", "learnt", "all"]


@torch.no_grad()
def encode_images(objective: Any, images: np.ndarray, rows: np.ndarray, shuffle: Shuffle | None = None) -> np.ndarray:
    """Latents (b, d) of images (b, height, width, 3), whose numbers in the data set are `rows`.

    `objective` may be an encoder alone.
    """
    encode = getattr(objective, "encode", objective)
    parts = [encode(batch) for batch in _batches(objective, images, rows, shuffle)]
    return torch.cat(parts).float().cpu().numpy()


@torch.no_grad()
def encode_layers(
    objective: Any, images: np.ndarray, rows: np.ndarray, shuffle: Shuffle | None = None
) -> list[np.ndarray]:
    """Latents after each block of the encoder, first to last, each (b, d)."""
    if not hasattr(objective.encoder, "layers"):
        raise InputError(f"{type(objective.encoder).__name__} does not give the latents of its layers.")
    parts = [objective.encoder.layers(batch) for batch in _batches(objective, images, rows, shuffle)]
    return [torch.cat(layer).float().cpu().numpy() for layer in zip(*parts, strict=True)]


def _batches(objective: Any, images: np.ndarray, rows: np.ndarray, shuffle: Shuffle | None) -> Any:
    device = next(objective.parameters()).device
    for start in range(0, len(images), BATCH):
        some = np.asarray(images[start : start + BATCH])
        some = some if shuffle is None else shuffle(some, rows[start : start + BATCH])
        yield _channels_first(some).to(device)


def _channels_first(images: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2)


def latents_of(
    agent: Any,
    part: Part | np.ndarray = "held",
    *,
    layers: bool = False,
    pipeline: str | None = None,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Everything that `jepatlas align` and `jepatlas migrate` can use, of states held out or learned from; or of rows.

    A `pipeline` augments the images first, by the seed: so two agents see the same images from two views.
    `raw` are small grey images: the PCA control is made from what the agent was given, shuffled where that was.
    """
    seen, table, shuffle = agent.seen, agent.seen.table, agent.recipe.shuffle
    parts = {"held": seen.held, "learnt": seen.learnt, "all": np.arange(len(seen.images))}
    rows = parts[part] if isinstance(part, str) else part
    images = np.asarray(seen.images[rows])
    if pipeline is None:
        h = agent.latents(rows)
    else:
        images = _through(images, pipeline, seed)
        h = encode_images(agent.objective, images, rows, shuffle)
    arrays = _arrays(h, table, rows, images if shuffle is None else shuffle(images, rows))
    if layers:
        found = encode_layers(agent.objective, images, rows, shuffle)
        arrays |= {f"layer{number:02d}": layer for number, layer in enumerate(found)}
    return arrays


def latents_by(encoder: nn.Module, seen: Decoded, view: str | None = None) -> dict[str, np.ndarray]:
    """The same by an encoder of your own, (b, 3, height, width) bytes → (b, d), of all images or of one view's."""
    rows = np.arange(len(seen.images)) if view is None else seen.table.rows_of_view(view)
    images, modes = np.asarray(seen.images[rows]), {module: module.training for module in encoder.modules()}
    h = encode_images(encoder.eval(), images, rows)
    for module, learning in modes.items():  # each as it was: a part may be frozen
        module.training = learning
    return _arrays(h, seen.table, rows, images)


def _arrays(h: np.ndarray, table: ViewTable, rows: np.ndarray, images: np.ndarray) -> dict[str, np.ndarray]:
    """Latents with what is known of their states: groups and labels, where all of these have one."""
    arrays = {"h": h, "ids": table.column("state")[rows]}
    for name, column in (("groups", "group"), ("labels", "label")):
        if column in table.columns and (table.column(column)[rows] != "").all():
            arrays[name] = table.column(column)[rows]
    return arrays | {"raw": _small_grey(images)}


def _through(images: np.ndarray, pipeline: str, seed: int) -> np.ndarray:
    """Each image augmented once, as bytes again."""
    seen = augmented(images, pipeline_named(pipeline), images.shape[1:3], seed=seed, name=f"view {pipeline}")
    return (seen * 255).round().byte().permute(0, 2, 3, 1).numpy()


def _small_grey(images: np.ndarray) -> np.ndarray:
    """(b, height, width, 3) → (b, 16, 16), means over squares of pixels."""
    grey = torch.from_numpy(np.ascontiguousarray(images)).float().mean(-1)
    small = torch.nn.functional.adaptive_avg_pool2d(grey[:, None], (min(RAW, grey.shape[1]), min(RAW, grey.shape[2])))
    return small[:, 0].numpy()
