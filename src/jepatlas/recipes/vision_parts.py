"""From the recipe of an agent on images to what the loop trains: the objective, and the stream of its crops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jepatlas.core.distributed import rank, world_size
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split
from jepatlas.core.seeding import forked_rng
from jepatlas.data import Prefetched
from jepatlas.data.images import ImageStream, ViewTable, decode, official_split, split_states
from jepatlas.data.images.pixel_scale import pixel_scale
from jepatlas.objectives.vision import VisionParts
from jepatlas.recipes.image_sources import SmallNORBFiles
from jepatlas.recipes.vision import VisionRecipe
from jepatlas.training import check_batch_size, check_no_running_statistics

__all__ = ["SeenImages", "build_crops", "build_vision", "crop_stream", "see"]

CHANNELS = 3
LEAST = 2  # images: one alone has no interval


@dataclass(frozen=True)
class SeenImages:
    """The images of an agent's view, and which of them are learned from and which judged by."""

    table: ViewTable
    images: np.ndarray  # (n, height, width, 3), bytes, memory-mapped
    learnt: np.ndarray  # rows
    held: np.ndarray  # rows
    message: str  # about images that were left out


def see(
    recipe: VisionRecipe, progress: Callable[[int, int], None] | None = None, views: Sequence[str] = ()
) -> SeenImages:
    """Read the view of a recipe, or several `views`. What is held out depends on all that there are: agents of other
    views hold out the same."""
    table = recipe.images.read()
    held = np.zeros(len(table), bool)
    held[_split(table, recipe).score] = True
    mine = np.sort(np.concatenate([table.rows_of_view(view) for view in views or [_view(table, recipe.view)]]))
    size = (recipe.size, recipe.size)
    decoded = decode(table.only(mine), size, fit=recipe.fit, strict=recipe.strict, progress=progress)
    states = dict(zip(table.column("state")[mine].tolist(), held[mine].tolist(), strict=True))
    judged = np.array([states[state] for state in decoded.table.column("state").tolist()])
    learnt, judged_by = np.flatnonzero(~judged), np.flatnonzero(judged)
    _refuse_few(learnt, judged_by, decoded.message)
    return SeenImages(decoded.table, decoded.images, learnt, judged_by, decoded.message)


def _refuse_few(learnt: np.ndarray, held: np.ndarray, message: str) -> None:
    """Of a split by all views, one view may have next to nothing: said before an hour of training."""
    if min(len(learnt), len(held)) < LEAST:
        raise InputError(
            f"This view has images of {len(learnt)} states to learn from and of {len(held)} that are held out, but "
            f"either needs at least {LEAST}. Hold out another share (--held), split otherwise (--split), or give "
            f"images of more states. {message}".rstrip()
        )


def _split(table: ViewTable, recipe: VisionRecipe) -> Split:
    if isinstance(recipe.images, SmallNORBFiles) and recipe.images.official:
        return official_split(table, "testing")
    return split_states(table, recipe.held, recipe.split, by="group" if "group" in table.columns else "state")


def _view(table: ViewTable, view: str | None) -> str:
    if view is not None:
        return view
    if len(table.views) > 1:
        raise InputError(
            f"The images have {len(table.views)} views. Choose the agent's: --view {' or '.join(table.views[:8])}."
        )
    return table.views[0]


def build_vision(recipe: VisionRecipe, seen: SeenImages) -> Any:
    """The objective with fresh weights, and the scale of the pixels that it is to learn from."""
    mean, std = pixel_scale(seen.images, seen.learnt)
    with forked_rng(recipe.seed, "weights"):
        encoder = recipe.encoder.build((CHANNELS, recipe.size, recipe.size), mean, std)
        training = recipe.training
        parts = VisionParts(encoder, recipe.encoder.width, training.steps, recipe.seed, training.accumulate)
        objective = recipe.objective.build(parts)
    if recipe.training.ema:
        check_no_running_statistics(objective)
    rows = recipe.training.batch_size // recipe.training.accumulate
    check_batch_size(objective, rows, recipe.encoder.width)
    return objective


def build_crops(recipe: VisionRecipe, seen: SeenImages) -> Prefetched:
    """The stream of crops, made ahead by a thread of its own."""
    return Prefetched(crop_stream(recipe, seen))


def crop_stream(recipe: VisionRecipe, seen: SeenImages) -> ImageStream:
    """This process's share of every (micro-)batch."""
    return ImageStream(
        seen.images,
        recipe.training.batch_size // recipe.training.accumulate,
        recipe.seed,
        plan=recipe.augmentation.plan(recipe.objective),
        rows=seen.learnt,
        shuffle=recipe.shuffle,
        device=recipe.training.device,
        rank=rank(),
        world_size=world_size(),
    )
