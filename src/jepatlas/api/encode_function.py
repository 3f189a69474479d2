"""`encode`: latents of observations by a model of any origin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from jepatlas.api.inputs import as_array, as_path
from jepatlas.api.run_functions import load
from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.plugins import trusting
from jepatlas.recipes import VisionRecipe, WorldModelRecipe, any_recipe
from jepatlas.workflows.encode import (
    EncodeOptions,
    EncoderModel,
    ModelOptions,
    Source,
    SourceOptions,
    encode_source,
    encode_to_file,
    open_model,
    open_source,
)
from jepatlas.workflows.encoder_files import SavedEncoder
from jepatlas.workflows.plan import load_world_model
from jepatlas.workflows.vision import encode_images, load_agent

__all__ = ["encode"]

BATCH = 1024


def encode(
    model: Path | str | nn.Module,
    x: Any,
    *,
    out: Path | str | None = None,
    view: str | None = None,
    stride: int | None = None,
    most: int | None = None,
    untrained: bool = False,
    batch: int | None = None,
    half: bool = False,
    trust: bool = False,
    **model_options: Any,
) -> Any:
    """Latents of observations, (n, d), or the arrays of a source of observations.

    `model` is a module, a run folder, or what `jepatlas encode --model` takes: a name on the HuggingFace Hub or a
    folder, `timm:NAME`, `efficientnet-lite0`, `file.py:function`, `module:Class`, or a file (.onnx; with `trust` .pt2
    or .pt). `x` is an array of observations:

    module            what the module takes, as numpy or torch
    run               images (n, height, width, 3) in uint8 for an agent on images, observations of its world for others
    any other model   images or clips (n, frames, height, width, 3) in uint8, or a list of texts

    or the path of a source, such as a folder of images or of videos, a table, a text file or episodes. Then the result
    is a mapping with `h`, `ids` and, if known, `groups`, `labels`, `held`, `h_next`, `times` and `z`, or with `out` the
    path of the file that holds it. The other options are those of `jepatlas encode`; `pool`, `layers`, `size`, `mean`,
    `std`, `clip`, `tokenizer` and `device` go to the model.
    """
    is_source = isinstance(x, str | Path)
    if not is_source:
        _refuse(f"is for a source, but 'x' is a {type(x).__name__}", out=out, view=view, stride=stride, most=most)
        _refuse("is for a source", untrained=untrained)
    if isinstance(model, nn.Module) or (not is_source and _is_run(model)):
        if is_source:
            raise InputError("A module encodes arrays. For a source, name its code as 'file.py:function'.")
        _refuse("is not for a module or run on arrays", batch=batch, half=half, trust=trust, **model_options)
        return _encode_array(model, x)
    if not isinstance(model, str | Path):
        raise InputError(f"'model' must be a path, a name or an nn.Module, not a {type(model).__name__}.")
    options = _model_options(model_options)
    with trusting(trust):
        opened = open_model(str(model), options)
        control = open_model(str(model), replace(options, untrained=True, layers=None)) if untrained else None
    how = EncodeOptions(batch, half)
    if not is_source:
        return _encode_items(opened, x, how)
    source = open_source(str(x), SourceOptions(view, stride, most), opened.reads, opened.frames)
    if out is None:
        return encode_source(opened, source, options=how, control=control).arrays
    encode_to_file(opened, source, Path(out), options=how, control=control, key=repr(options))
    return Path(out)


def _is_run(model: object) -> bool:
    return isinstance(model, str | Path) and (Path(model) / "recipe.yaml").is_file()


def _refuse(why: str, **given: Any) -> None:
    for name, value in given.items():
        if value:
            raise InputError(f"'{name}' {why}.")


def _model_options(given: dict[str, Any]) -> ModelOptions:
    try:
        return ModelOptions(**given)
    except TypeError as error:
        raise InputError(f"encode has no such option: {error}") from error


def _encode_items(model: EncoderModel, x: Any, options: EncodeOptions) -> np.ndarray:
    """Images, clips or texts in memory."""
    if model.reads == "texts":
        items = [x] if isinstance(x, str) else list(x)
        if not items or not all(isinstance(text, str) for text in items):
            raise InputError(f"'x' must be a list of texts for '{model.name}'.")
    else:
        items = as_array("x", x)
        axes = 4 if model.reads == "images" else 5
        if items.ndim != axes or items.shape[-1] != 3 or items.dtype != np.uint8 or not len(items):
            shape = "(n, height, width, 3)" if axes == 4 else "(n, frames, height, width, 3)"
            raise InputError(
                f"'x' must be {shape} in uint8 for '{model.name}', but has shape {items.shape} and type {items.dtype}."
            )
    source = Source("items", len(items), lambda first, end: list(items[first:end]), {}, "")
    return encode_source(model, source, options=options).arrays["h"]


def _encode_array(model: Path | str | nn.Module, x: Any) -> np.ndarray:
    path = as_path("model", model) if isinstance(model, str | Path) else None
    observations = as_array("x", x)
    if observations.ndim < 2 or not observations.size:
        raise InputError(f"'x' must have one row per observation, but has shape {observations.shape}.")
    check_finite("x", observations)
    try:
        if path is None:
            return _encode_by_module(model, observations)
        return _encode_by_run(path, observations)
    except RuntimeError as error:
        raise InputError(f"'x' of shape {observations.shape} does not suit this model: {error}") from error


def _encode_by_run(folder: Path, x: np.ndarray) -> np.ndarray:
    recipe = any_recipe(folder)
    if isinstance(recipe, VisionRecipe):
        if x.ndim != 4 or x.shape[-1] != 3 or x.dtype != np.uint8:
            raise InputError(
                f"'x' must be images (n, height, width, 3) in uint8, but has shape {x.shape} and type {x.dtype}."
            )
        agent = load_agent(folder)
        size = agent.seen.images.shape[1:3]
        if x.shape[1:3] != size:
            raise InputError(
                f"'x' must be images of {size[0]} × {size[1]} pixels, but has {x.shape[1]} × {x.shape[2]}."
            )
        return encode_images(agent.objective, x, np.arange(len(x)), recipe.shuffle)
    if isinstance(recipe, WorldModelRecipe):
        return load_world_model(folder).encode(x).float().cpu().numpy()
    loaded = load(folder)
    if not isinstance(loaded, nn.Module):
        raise InputError(f"'model': {folder} is an energy, which has no encoder.")
    return _encode_by_module(loaded, x)


@torch.no_grad()
def _encode_by_module(model: Any, x: np.ndarray) -> np.ndarray:
    if not isinstance(model, nn.Module):
        raise InputError(f"'model' must be a run folder or an nn.Module, not a {type(model).__name__}.")
    if isinstance(model, SavedEncoder):
        return model.encode(x).numpy()
    function: Any = getattr(model, "encode", model)
    parameter = next(model.parameters(), torch.empty(0))
    rows = torch.from_numpy(np.ascontiguousarray(x))
    parts = [function(part.to(parameter)).float().cpu() for part in rows.split(BATCH)]
    return torch.cat(parts).numpy()
