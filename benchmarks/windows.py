"""Windows of episodes from a file: time per batch, and the share of time that training waits for batches.

Frames of 64×64 pixels are compressed as by `EpisodeWriter`; a batch has 128 windows of two frames. The waiting time is
measured in a loop with the default image encoder, forward and backward, on one thread: with batches read on demand, and
with `Prefetched` around the same stream.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from torch import Tensor

from benchmarks.measurement import Comparison, compare
from jepatlas.core.contracts import Batches
from jepatlas.core.seeding import numpy_generator
from jepatlas.data import EpisodeFile, EpisodeWriter, Prefetched, WindowStream
from jepatlas.nn import ConvConfig

__all__ = ["frames", "run"]

EPISODES, LENGTH, BATCH = 100, 100, 128
STEPS, TURNS = 15, 3
LATENT = 32


def run() -> Iterator[Comparison]:
    with tempfile.TemporaryDirectory() as folder:
        file = written(Path(folder) / "episodes.h5")
        stream = WindowStream(file, BATCH, seed=0)
        named = f"{BATCH} windows of 2 frames, 64×64"
        yield compare(f"{named}: a list of rows given to h5py, ours", by_list(file), lambda: stream(0), turns=5)
        held = WindowStream(file, BATCH, seed=0, preload=True)
        yield compare(f"{named}: from the file, from memory", lambda: stream(0), lambda: held(0))
        times = [(waiting(stream), waiting(Prefetched(stream))) for _ in range(TURNS)]
        ms = np.median([step for pair in times for _, step in pair])
        shares = [[100 * share for share, _ in side] for side in zip(*times, strict=True)]
        name = f"share of time waiting for {named}, at a step of the encoder of about {ms:.0f} ms: in turn, ahead"
        yield Comparison.of(name, *shares, unit="%")


def frames(count: int, number: int) -> np.ndarray:
    """A red disc that wanders over a light ground with a dark wall."""
    walk = np.cumsum(numpy_generator(0, "walk", number).normal(0, 1.5, (count, 2)), axis=0) % 64
    rows, columns = np.mgrid[:64, :64]
    image = np.full((64, 64, 3), 240.0)
    image[:, 30:34] = 60
    away = np.hypot(rows - walk[:, 0, None, None], columns - walk[:, 1, None, None])
    disc = np.clip(6 - away, 0, 1)[..., None]
    return (image * (1 - disc) + np.array([200, 30, 30]) * disc).astype(np.uint8)


def written(path: Path) -> EpisodeFile:
    with EpisodeWriter(path) as writer:
        for number in range(EPISODES):
            action = numpy_generator(0, "action", number).uniform(-1, 1, (LENGTH, 2)).astype(np.float32)
            writer.append({"pixels": frames(LENGTH, number), "action": action})
    return EpisodeFile(path)


def by_list(file: EpisodeFile) -> Callable[[], object]:
    import h5py  # noqa: PLC0415  (of the extra `sim`)

    starts = numpy_generator(0, "starts").integers(0, EPISODES * LENGTH - 1, BATCH)
    rows = np.unique(np.append(starts, starts + 1))

    def read() -> object:
        with h5py.File(file.path) as opened:
            return opened["pixels"][rows]  # pyright: ignore

    return read


def waiting(batches: Batches) -> tuple[float, float]:
    """The share of the loop's time that goes by waiting for batches, and the milliseconds of a step without it."""
    network = ConvConfig().build((3, 64, 64), LATENT)
    waited = began = 0.0
    for step in range(-1, STEPS):
        if step == 0:  # the first one, which begins everything, does not count
            waited, began = 0.0, time.perf_counter()
        asked = time.perf_counter()
        images: Tensor = batches(step + 1).frames
        waited += time.perf_counter() - asked
        network(images.flatten(0, 1)).square().mean().backward()
    whole = time.perf_counter() - began
    return waited / whole, 1e3 * (whole - waited) / STEPS
