"""Training on images: overhead beyond the networks, cost of masked patches, and reading of smallNORB.

A training step of I-JEPA includes crops, masks, the moving average and the optimiser. It is compared with the forward
and backward pass of the same networks on crops in memory. The first 10 steps are excluded. Both keep freed memory in
the allocator, as the training loop does; the effect of that is measured first.
"""

from __future__ import annotations

import multiprocessing
import struct
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measurement import Comparison, compare
from jepatlas.core.patches import patch_grid
from jepatlas.core.seeding import numpy_generator
from jepatlas.data import Prefetched
from jepatlas.data.images import CropPlan, ImageStream, SmallNORB
from jepatlas.nn import ViTConfig
from jepatlas.objectives.vision import CropObjective, IJEPAConfig, VisionParts
from jepatlas.training import TrainingConfig, train
from jepatlas.training.runtime import keep_freed_memory

__all__ = ["run"]

SIZE, BATCH, FIRST, STEPS, TURNS = 64, 64, 10, 30, 5
RATIOS = (0.25, 0.5, 0.75)
PAIRS, PIXELS = 24_300, 96  # of each of smallNORB's two parts


def run() -> Iterator[Comparison]:
    images = _images()
    yield _freed_memory()
    keep_freed_memory()
    for pipeline in ("A", "B"):
        bare, whole = zip(*[(_bare(images), _trained(images, pipeline)) for _ in range(TURNS)], strict=True)
        named = f"a step of I-JEPA, ViT 96 wide, {BATCH} images of {SIZE}×{SIZE}"
        yield Comparison.of(f"{named}: forward and backward alone, the loop with pipeline {pipeline}", bare, whole)
    yield from _masked()
    yield from _norb()


def _images() -> np.ndarray:
    return numpy_generator(0, "images").integers(0, 256, (2048, SIZE, SIZE, 3), np.uint8)


def _freed_memory() -> Comparison:
    """Measured in separate processes, because the setting of the C library cannot be undone."""
    spawned = multiprocessing.get_context("spawn")
    took: dict[bool, list[float]] = {False: [], True: []}
    for kept in (False, True) * 3:
        with ProcessPoolExecutor(1, spawned) as pool:
            took[kept].append(pool.submit(_bare_in_process, kept).result())
    named = f"forward and backward of I-JEPA, {BATCH} images of {SIZE}×{SIZE}"
    return Comparison.of(f"{named}: freed memory given back, kept for the next step", took[False], took[True])


def _bare_in_process(kept: bool) -> float:
    torch.set_num_threads(1)
    if kept:
        keep_freed_memory()
    return _bare(_images())


def _objective() -> CropObjective:
    torch.manual_seed(0)
    encoder = ViTConfig().build((3, SIZE, SIZE))
    return IJEPAConfig().build(VisionParts(encoder, encoder.width, FIRST + STEPS))


def _bare(images: np.ndarray) -> float:
    """Milliseconds of one forward and backward pass, with precomputed crops and masks."""
    objective: Any = _objective()
    crops = ImageStream(images, BATCH, 0, plan=CropPlan("one"))(0)
    drawn = objective.masks(crops.x, patch_grid((SIZE, SIZE), objective.encoder.patch), 0)
    objective.masks = lambda *_: drawn
    began = 0.0
    for step in range(-FIRST, STEPS):
        if step == 0:
            began = time.perf_counter()
        objective(crops, step + FIRST).total.backward()
        objective.zero_grad()
    return 1e3 * (time.perf_counter() - began) / STEPS


def _trained(images: np.ndarray, pipeline: str) -> float:
    """Milliseconds of one training step."""
    stream = ImageStream(images, BATCH, 0, plan=CropPlan("one", (pipeline,)))
    took = []
    for steps in (FIRST, FIRST + STEPS):
        with tempfile.TemporaryDirectory() as folder:
            config = replace(TrainingConfig(), steps=steps, batch_size=BATCH, log_every=10)
            began = time.perf_counter()
            train(_objective(), Prefetched(stream), config, folder, recipe="")
            took.append(time.perf_counter() - began)
    return 1e3 * (took[1] - took[0]) / STEPS


def _masked() -> Iterator[Comparison]:
    encoder = ViTConfig().build((3, SIZE, SIZE))
    x, count = torch.rand(BATCH, 3, SIZE, SIZE), (SIZE // encoder.patch) ** 2
    for ratio in RATIOS:
        keep = torch.rand(BATCH, count).argsort(1)[:, : round(ratio * count)]
        yield compare(
            f"forward and backward of the encoder, {BATCH} images of {count} patches: all, {ratio:.0%} of them",
            lambda: encoder.tokens(x).sum().backward(),
            lambda keep=keep: encoder.tokens(x, keep).sum().backward(),
        )


def _norb() -> Iterator[Comparison]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, split in enumerate(("training", "testing")):
            _write_norb(folder, split, number)
        files = sorted(folder.glob("*-dat.mat"))
        yield compare(
            f"{2 * PAIRS:,} stereo pairs of smallNORB, {sum(file.stat().st_size for file in files) / 2**20:.0f} MiB in "
            "the system's cache, faster than any disk: the bytes of its files, tables and every image",
            lambda: [_read(file) for file in files],
            lambda: _every_image(SmallNORB.read(folder)),
            turns=3,
        )


def _write_norb(folder: Path, split: str, number: int) -> None:
    """Files in the published format: a magic number, the shape, and the data."""
    numbers = np.arange(PAIRS, dtype="<i4")
    info = np.stack([numbers // 972 % 10, numbers % 9, 2 * (numbers // 9 % 18), numbers // 162 % 6], 1)
    pixels = numpy_generator(0, "pixels", number).integers(0, 256, (PAIRS, 2, PIXELS, PIXELS), np.uint8)
    written = {"dat": (0x1E3D4C55, pixels), "cat": (0x1E3D4C54, numbers % 5), "info": (0x1E3D4C54, info)}
    for kind, (magic, values) in written.items():
        axes = (*values.shape, *[1] * (3 - values.ndim))
        head = struct.pack(f"<Ii{len(axes)}i", magic, values.ndim, *axes)
        (folder / f"smallnorb-{split}-{kind}.mat").write_bytes(head + values.tobytes())


def _read(file: Path) -> None:
    part = bytearray(2**20)
    with open(file, "rb", buffering=0) as opened:
        while opened.readinto(part):
            pass


def _every_image(table: SmallNORB) -> None:
    for row in range(len(table)):
        table.image(row, mode="grey").tobytes()
