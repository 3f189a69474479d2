"""Encoding of Fashion-MNIST with EfficientNet-Lite0, relative to the bare network on images that are already prepared.

`encode` reads, resizes to 224 × 224 and standardises in a second thread, and stores. CPU time counts both threads, so
on two free cores the difference of wall-clock times is smaller.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from benchmarks.measurement import Comparison, cpu_ms
from jepatlas.data.images import IDXImages, fashion_mnist_folder
from jepatlas.workflows.encode import EncodeOptions, SourceOptions, encode_source, image_source, open_model

__all__ = ["run"]

MODEL, IMAGES, BATCH, TURNS = "efficientnet-lite0", 128, 32, 5


def run() -> Iterator[Comparison]:
    model = open_model(MODEL)
    source = image_source(IDXImages.read(fashion_mnist_folder()), SourceOptions(most=IMAGES))
    batches = [model.prepare(source.read(first, first + BATCH)) for first in range(0, IMAGES, BATCH)]

    @torch.no_grad()
    def bare() -> None:
        for batch in batches:
            model.encode(batch)

    def encoded() -> None:
        encode_source(model, source, options=EncodeOptions(batch=BATCH))

    for warm in (bare, encoded):
        warm()
    first, second = [], []
    for _ in range(TURNS):
        first.append(cpu_ms(bare) / IMAGES)
        second.append(cpu_ms(encoded) / IMAGES)
    yield Comparison.of(f"one of {IMAGES} images by {MODEL}: bare network, encode", first, second, "ms")
