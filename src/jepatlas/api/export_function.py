"""`export`: an encoder as a file that runs without jepatlas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from jepatlas.api.inputs import as_array, as_folder
from jepatlas.core.errors import InputError
from jepatlas.workflows.export import encoder_of, export_encoder

__all__ = ["export"]


def export(model: Path | str | nn.Module, path: Path | str, example: Any = None) -> Path:
    """Write the encoder of a run, or a module, as ONNX (`encoder.onnx`) or as a torch.export program (`encoder.pt2`).

    The file takes `x`, with any number of rows, and gives the latents `h`. The encoder of a run takes what it was
    trained on: vectors in float32, or images (b, channels, height, width) in uint8. For a module, `example` is a batch
    of its input.
    """
    file = Path(as_folder("path", path))
    if not isinstance(model, nn.Module):
        encoder, given = encoder_of(as_folder("model", model))
    else:
        if example is None:
            raise InputError("'example' is missing: give a batch of the input of this module.")
        encoder, given = model, None
    if example is not None:
        given = torch.from_numpy(as_array("example", example))
    assert given is not None
    return export_encoder(encoder, given, file)
