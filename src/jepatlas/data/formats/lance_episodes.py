"""Lance tables of stable-worldmodel: one row per time step, with `episode_idx` and `step_idx`.

Images are columns of JPEG bytes, everything else fixed-size lists of numbers. Images are decoded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError, require
from jepatlas.data.episode_arrays import EpisodeArrays
from jepatlas.data.formats.frame_cache import cached_frames, decode_image, fingerprint_of

__all__ = ["is_lance", "read_lance"]

INDEX = ("episode_idx", "step_idx")
BATCH = 256


def is_lance(folder: Path) -> bool:
    return (folder / "_versions").is_dir()


def read_lance(folder: Path) -> EpisodeArrays:
    """The episodes of a table, whose rows are contiguous for each episode."""
    library = require("lance", "interop", "Reading Lance tables")
    arrow = require("pyarrow", "interop", "Reading Lance tables")
    try:
        table = library.dataset(str(folder))
        schema = table.schema
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"{folder} cannot be read as a Lance table: {error}") from error
    if INDEX[0] not in schema.names:
        raise InputError(
            f"{folder} has no column '{INDEX[0]}', so its rows are not episodes: {', '.join(schema.names)}."
        )
    episode = table.to_table(columns=[INDEX[0]]).column(INDEX[0]).to_numpy()
    starts = np.append(0, np.flatnonzero(np.diff(episode)) + 1)
    if len(np.unique(episode)) != len(starts):
        raise InputError(f"The rows of an episode in {folder} are not contiguous. Write the table again.")
    arrays: dict[str, np.ndarray] = {}
    for field in schema:
        if field.name in INDEX:
            continue
        if arrow.types.is_binary(field.type) or arrow.types.is_large_binary(field.type):
            key = fingerprint_of(folder.rglob("*.lance"), field.name)
            frames = _frames(table, field.name, str(folder))
            arrays[field.name] = cached_frames(key, len(episode), frames, f"'{field.name}' of {folder}")
        elif not arrow.types.is_string(field.type):
            arrays[field.name] = _numbers(table.to_table(columns=[field.name]).column(0))
    return EpisodeArrays(arrays, np.diff(np.append(starts, len(episode))))


def _numbers(column: Any) -> np.ndarray:
    """A column of numbers, or of lists of equally many numbers."""
    joined = column.combine_chunks()
    if hasattr(joined.type, "list_size"):
        return joined.flatten().to_numpy(zero_copy_only=False).reshape(len(joined), joined.type.list_size)
    return joined.to_numpy(zero_copy_only=False)


def _frames(table: Any, name: str, where: str) -> Iterator[np.ndarray]:
    for batch in table.to_batches(columns=[name], batch_size=BATCH):
        for data in batch.column(0):
            yield decode_image(data.as_py(), where)
