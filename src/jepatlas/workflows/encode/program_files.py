"""Encoders that are files: TorchScript, `torch.export` programs and ONNX.

Loading TorchScript or an exported program can run code of the file, so the user must allow it. ONNX holds no code. A
program of images takes (b, 3, height, width), in uint8 or in floats of unspecified scale: settings in a
`preprocessor_config.json` beside the file are followed, otherwise the pixels are in 0 … 1 unless `mean` and `std` are
given. An ONNX program of texts takes `input_ids` and `attention_mask`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.errors import InputError, require
from jepatlas.core.files import read_json
from jepatlas.core.plugins import check_trusted
from jepatlas.workflows.encode.encoder_model import EncoderModel, Latents, ModelOptions, default_device
from jepatlas.workflows.encode.preprocessing import Preprocessing
from jepatlas.workflows.encode.transformers_models import pooled_tokens, text_preparation

__all__ = ["SUFFIXES", "pixel_preparation", "program_model"]

TORCHSCRIPT = (".pt", ".pth", ".ts", ".jit", ".torchscript")
SUFFIXES = (".onnx", ".pt2", *TORCHSCRIPT)
IMAGE_AXES, CLIP_AXES = 4, 5


def program_model(path: Path, options: ModelOptions) -> EncoderModel:
    """Open a file by its suffix."""
    options.refuse(str(path), "layers", "untrained")
    if path.suffix == ".onnx":
        return _onnx_model(path, options)
    kind = "torch.export program" if path.suffix == ".pt2" else "TorchScript file"
    check_trusted(path, kind)
    options.refuse(str(path), "pool", "tokenizer")
    device = default_device(options.device)
    try:
        if path.suffix == ".pt2":
            program = torch.export.load(str(path))
            module, shape, dtype = program.module(), *_example_of(program)
        else:
            module, shape, dtype = torch.jit.load(str(path), map_location=device).eval(), None, torch.float32
    except (RuntimeError, OSError, ValueError, KeyError, AttributeError) as error:
        first = str(error).strip().split("\n", maxsplit=1)[0]
        raise InputError(f"{path} could not be loaded as a {kind}: {first}") from error
    module = module.to(device)
    clip = options.clip or (shape[1] if shape is not None and len(shape) == CLIP_AXES else None)
    prepare = pixel_preparation(path.parent, options, shape, whole=dtype == torch.uint8, clips=clip is not None)

    def encode(pixels: Tensor) -> Latents:
        return {"h": _only_tensor(module(pixels.to(device)), path)}

    return EncoderModel(str(path), "images" if clip is None else "clips", prepare, encode, device, clip or 1)


def _example_of(program: torch.export.ExportedProgram) -> tuple[tuple[int, ...] | None, torch.dtype]:
    given = program.example_inputs
    found = [value for value in (given[0] if given else ()) if isinstance(value, Tensor)]
    return (tuple(found[0].shape), found[0].dtype) if found else (None, torch.float32)


def _only_tensor(output: Any, path: Path) -> Tensor:
    values = [output] if isinstance(output, Tensor) else list(output)
    if len(values) != 1 or not isinstance(values[0], Tensor):
        raise InputError(f"{path} must return one tensor (b, d), but returns {len(values)} values.")
    return values[0]


def pixel_preparation(
    folder: Path | None, options: ModelOptions, shape: Sequence[int] | None, *, whole: bool = False, clips: bool = False
) -> Callable[[Sequence[np.ndarray]], Tensor]:
    """Images, or clips, to what a network takes: (b, 3, height, width) or (b, frames, 3, height, width).

    `shape` is that of an example of its input, and `whole` whether this is in uint8.
    """
    settings = None if folder is None else folder / "preprocessor_config.json"
    base = Preprocessing()
    if settings is not None and settings.is_file():
        base = Preprocessing.from_config(read_json(settings))
    elif shape is not None:
        base = Preprocessing(size=(int(shape[-2]), int(shape[-1])))
    one = base.changed(options.size, options.mean, options.std)

    def prepared(images: Iterable[np.ndarray]) -> np.ndarray:
        return np.moveaxis(one.resized(images), 3, 1) if whole else one(images)

    def prepare(items: Sequence[np.ndarray]) -> Tensor:
        return torch.from_numpy(np.stack([prepared(clip) for clip in items]) if clips else prepared(items))

    return prepare


def _onnx_model(path: Path, options: ModelOptions) -> EncoderModel:
    library = require("onnxruntime", "export", "Encoding with an ONNX file")
    try:
        session = library.InferenceSession(str(path), providers=library.get_available_providers())
    except Exception as error:  # onnxruntime's own exceptions have no common class
        first = str(error).strip().split("\n", maxsplit=1)[0]
        raise InputError(f"{path} could not be opened as an ONNX file: {first}") from error
    inputs = session.get_inputs()
    if inputs[0].name == "input_ids":
        return _onnx_text_model(path, session, options)
    options.refuse(str(path), "pool", "tokenizer")
    first = inputs[0]
    if len(inputs) != 1 or len(first.shape) not in (IMAGE_AXES, CLIP_AXES):
        listed = ", ".join(f"{one.name} {one.shape}" for one in inputs)
        raise InputError(f"{path} takes {listed}, but one input of images (b, 3, height, width) is expected.")
    clips = len(first.shape) == CLIP_AXES
    fixed = [side for side in first.shape[-2:] if isinstance(side, int)]
    shape = fixed if len(fixed) == 2 else None
    prepare = pixel_preparation(path.parent, options, shape, whole=first.type == "tensor(uint8)", clips=clips)

    def encode(pixels: Tensor) -> Latents:
        return {"h": torch.from_numpy(session.run(None, {first.name: pixels.numpy()})[0])}

    frames = options.clip or (first.shape[1] if clips and isinstance(first.shape[1], int) else 1)
    return EncoderModel(str(path), "clips" if clips else "images", prepare, encode, frames=frames)


def _onnx_text_model(path: Path, session: Any, options: ModelOptions) -> EncoderModel:
    options.refuse(str(path), "size", "mean", "std", "clip")
    prepare, pool, unit = text_preparation(options.tokenizer or str(path.parent), options)
    names = {one.name for one in session.get_inputs()}
    floats = [one for one in session.get_outputs() if one.type == "tensor(float)"]
    chosen = next((one.name for one in floats if len(one.shape) == 2 and options.pool == "auto"), floats[0].name)

    def encode(tokens: Any) -> Latents:
        given = {name: tokens[name].numpy() for name in names if name in tokens}
        output = torch.from_numpy(session.run([chosen], given)[0])
        return {"h": output if output.ndim == 2 else pooled_tokens(output, tokens["attention_mask"], pool, unit)}

    return EncoderModel(str(path), "texts", prepare, encode)
