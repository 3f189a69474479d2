"""Latents of images, videos, texts and episodes by models of any origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.workflows.encode.encode_rows import Encoded, EncodeOptions, encode_source, encode_to_file
    from jepatlas.workflows.encode.encode_sources import image_source, open_source
    from jepatlas.workflows.encode.encoder_model import EncoderModel, ModelOptions
    from jepatlas.workflows.encode.named_models import open_model
    from jepatlas.workflows.encode.source import Source, SourceOptions
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "EncodeOptions",
    "Encoded",
    "EncoderModel",
    "ModelOptions",
    "Source",
    "SourceOptions",
    "encode_source",
    "encode_to_file",
    "image_source",
    "open_model",
    "open_source",
]
