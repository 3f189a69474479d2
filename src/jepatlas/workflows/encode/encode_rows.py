"""Encode the items of a source with a model, into files for `align`, `migrate` and `certify`.

Latents are written to `.NAME.encoding` beside the result while they are computed, so that an interrupted command
continues where it stopped when it is repeated. Results above 2 GB are split into numbered files.
"""

from __future__ import annotations

import glob
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from jepatlas.core.arrays import shard_names, write_arrays
from jepatlas.core.errors import InputError, check_count
from jepatlas.core.files import read_json, write_json
from jepatlas.core.locks import writer_lock
from jepatlas.core.progress import track
from jepatlas.data.batches import Prefetched
from jepatlas.workflows.encode.encoder_model import WORDS, EncoderModel
from jepatlas.workflows.encode.source import Source
from jepatlas.workflows.vision import downsample

__all__ = ["EncodeOptions", "Encoded", "encode_source", "encode_to_file"]

SHARD_BYTES = 2 * 10**9
BATCH = {"cpu": 32, "gpu": 128}
PENDING, DONE, UNREADABLE = 0, 1, 2
WORD_BUCKETS = 256  # of the bag of words that texts are compared with
SHOWN = 5
ABOUT = "encoding.json"


@dataclass(frozen=True)
class EncodeOptions:
    """How items are encoded and stored."""

    batch: int | None = None
    """Items at once; by default 32 on CPUs and 128 on GPUs, divided by the frames of a clip."""
    half: bool = False
    """Store latents in half precision."""
    shard_bytes: int = SHARD_BYTES
    """Split results that are larger."""

    def __post_init__(self) -> None:
        if self.batch is not None:
            check_count("batch", self.batch)
        check_count("shard_bytes", self.shard_bytes)


@dataclass
class Encoded:
    """The arrays of a result, and what was left out."""

    arrays: dict[str, np.ndarray]
    notes: list[str] = field(default_factory=list)


@dataclass
class _Store:
    """Arrays with one row per item, in memory-mapped files of a folder, and which items are done."""

    folder: Path
    count: int
    arrays: dict[str, np.memmap] = field(default_factory=dict)

    def open(self, fingerprint: dict[str, Any]) -> None:
        """Open the partial results of an interrupted command, or start anew if that was another command."""
        about = self.folder / ABOUT
        if about.is_file() and read_json(about) == fingerprint:
            names = [path.stem for path in self.folder.glob("*.npy")]
            self.arrays = {name: np.load(self.folder / f"{name}.npy", mmap_mode="r+") for name in names}
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            write_json(about, fingerprint)
        if "done" not in self.arrays:
            self._create("done", (), np.dtype(np.uint8))

    def remove_if_empty(self) -> None:
        """Remove the folder if nothing was encoded, so that no empty folder remains after an error."""
        if not np.any(self.arrays.get("done", PENDING) == DONE):
            shutil.rmtree(self.folder, ignore_errors=True)

    def _create(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> None:
        path = self.folder / f"{name}.npy"
        self.arrays[name] = np.lib.format.open_memmap(path, "w+", dtype, (self.count, *shape))

    def write(self, rows: np.ndarray, found: dict[str, np.ndarray]) -> None:
        for name, values in found.items():
            if name not in self.arrays:
                self._create(name, values.shape[1:], values.dtype)
            self.arrays[name][rows] = values
            self.arrays[name].flush()
        self.mark(rows, DONE)

    def mark(self, rows: np.ndarray, state: int) -> None:
        self.arrays["done"][rows] = state
        self.arrays["done"].flush()


def encode_to_file(
    model: EncoderModel,
    source: Source,
    out: Path,
    *,
    options: EncodeOptions | None = None,
    control: EncoderModel | None = None,
    key: str = "",
) -> tuple[list[Path], list[str], tuple[int, int]]:
    """Encode to a file; returns the files, notes, and the shape of the latents.

    `key` names what else the latents depend on: a command with another key does not resume the results of this one.
    `control` is the model with random weights, whose latents are written as `untrained`.
    """
    if out.suffix not in (".npz", ".safetensors", ".parquet"):
        raise InputError(f"{out} must end with .npz, .safetensors or .parquet.")
    options = options or EncodeOptions()
    store = _Store(out.with_name(f".{out.name}.encoding"), source.count)
    with writer_lock(out):
        try:
            encoded = _encoded(model, source, store, options, control, key=key)
        finally:
            store.remove_if_empty()
        arrays = _storable(out, encoded)
        files = _write(out, arrays, options.shard_bytes)
        shape = encoded.arrays["h"].shape
        shutil.rmtree(store.folder)
    return files, encoded.notes, (shape[0], shape[1])


def encode_source(
    model: EncoderModel,
    source: Source,
    *,
    options: EncodeOptions | None = None,
    control: EncoderModel | None = None,
) -> Encoded:
    """Encode in memory."""
    with TemporaryDirectory() as folder:
        store = _Store(Path(folder) / "encoding", source.count)
        encoded = _encoded(model, source, store, options or EncodeOptions(), control)
        return Encoded({name: np.array(array) for name, array in encoded.arrays.items()}, encoded.notes)


def _encoded(
    model: EncoderModel,
    source: Source,
    store: _Store,
    options: EncodeOptions,
    control: EncoderModel | None,
    *,
    key: str = "",
) -> Encoded:
    settings = {"model": model.name, "key": key, "half": options.half, "control": control is not None}
    store.open({"source": source.fingerprint, "items": source.count} | settings)
    precision = np.dtype(np.float16 if options.half else np.float32)
    errors: list[str] = []
    size = options.batch or max(1, BATCH["cpu" if model.device.type == "cpu" else "gpu"] // model.frames)
    waiting = np.flatnonzero(store.arrays["done"] == PENDING)
    batches = [part for part in np.split(waiting, range(size, len(waiting), size)) if len(part)]
    prepared = Prefetched(_Preparation(model, control, source, batches), ahead=1)
    for number in track(WORDS[model.reads], len(batches)):
        part: _Prepared = prepared(number)
        errors += part.errors
        if len(part.rows):
            found = _latents(model, part.inputs, len(part.rows))
            if control is not None:
                found["untrained"] = _latents(control, part.control_inputs, len(part.rows))["h"]
            store.write(part.rows, {name: _stored(name, h, precision) for name, h in found.items()} | part.raw)
        store.mark(np.setdiff1d(batches[number], part.rows), UNREADABLE)
    return _result(source, store, errors)


def _latents(model: EncoderModel, inputs: Any, count: int) -> dict[str, np.ndarray]:
    """Latents of a batch, in two halves if it does not fit into the memory of the GPU."""
    try:
        return model.latents(inputs, count)
    except torch.OutOfMemoryError:
        if count == 1 or not isinstance(inputs, torch.Tensor):
            raise InputError("A batch does not fit into memory. Give a smaller one with --batch.") from None
        torch.cuda.empty_cache()
        parts = [_latents(model, part, len(part)) for part in inputs.tensor_split(2)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _stored(name: str, h: np.ndarray, precision: np.dtype) -> np.ndarray:
    """Latents in the precision of the file; raises InputError for numbers that are too large for it."""
    with np.errstate(over="ignore"):
        stored = h.astype(precision)
    if np.isinf(stored).any() and np.isfinite(h).all():
        raise InputError(f"'{name}' reaches {np.abs(h).max():.3g}, too large for half precision: omit half.")
    return stored


@dataclass(frozen=True)
class _Prepared:
    """A batch that was read and preprocessed."""

    rows: np.ndarray  # of the items that could be read
    raw: dict[str, np.ndarray]
    inputs: Any
    control_inputs: Any
    errors: list[str]


@dataclass(frozen=True)
class _Preparation:
    """Reads and preprocesses batches by number, in another thread than the one that encodes."""

    model: EncoderModel
    control: EncoderModel | None
    source: Source
    batches: list[np.ndarray]

    def __call__(self, number: int) -> _Prepared | None:
        if number >= len(self.batches):
            return None
        rows = self.batches[number]
        items = [item for first, end in _runs(rows) for item in self.source.read(first, end)]
        errors = [str(item) for item in items if isinstance(item, InputError)]
        kept = [item for item in items if not isinstance(item, InputError)]
        ready = rows[[not isinstance(item, InputError) for item in items]]
        if not kept:
            return _Prepared(ready, {}, None, None, errors)
        control_inputs = None if self.control is None else self.control.prepare(kept)
        return _Prepared(ready, {"raw": _raw(kept)}, self.model.prepare(kept), control_inputs, errors)


def _runs(rows: np.ndarray) -> list[tuple[int, int]]:
    """Increasing rows as ranges of consecutive ones.

    >>> _runs(np.array([3, 4, 7]))
    [(3, 5), (7, 8)]
    """
    parts = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
    return [(int(part[0]), int(part[-1]) + 1) for part in parts]


def _raw(items: Sequence[Any]) -> np.ndarray:
    """Input of the controls: small images, the first frame of each clip, or counts of words."""
    if isinstance(items[0], str):
        from sklearn.feature_extraction.text import HashingVectorizer  # noqa: PLC0415  (takes a second to import)

        counts: Any = HashingVectorizer(n_features=WORD_BUCKETS).transform(items)  # a sparse matrix
        return np.asarray(counts.todense(), np.float32)
    images = [item[0] if item.ndim == 4 else item for item in items]
    return np.concatenate([downsample(np.array(image)[None]) for image in images])


def _result(source: Source, store: _Store, errors: list[str]) -> Encoded:
    """The arrays of all rows whose items could be read."""
    done = store.arrays["done"] == DONE
    notes = list(source.notes)
    lost = int((~done).sum())
    if lost == source.count:
        raise InputError(f"None of the {source.count} {source.what} could be read. {' '.join(errors[:1])}".rstrip())
    if lost:
        shown = "; ".join(error.rstrip(".") for error in errors[:SHOWN])
        notes.append(f"{lost} of {source.count} {source.what} were left out: {shown or 'they cannot be read'}.")
    items = {name: array for name, array in store.arrays.items() if name != "done"}
    if source.pairs is None:
        rows = np.flatnonzero(done)
        arrays = {name: array if len(rows) == len(array) else array[rows] for name, array in items.items()}
        return Encoded(arrays | {name: column[rows] for name, column in source.columns.items()}, notes)
    first, second = source.pairs
    arrays = {name: array[first] for name, array in (items | dict(source.columns)).items()}
    return Encoded(arrays | {"h_next": items["h"][second]}, notes)


def _storable(out: Path, encoded: Encoded) -> dict[str, np.ndarray]:
    """The arrays as the format of the file can hold them; adds a note on what it cannot hold."""
    if out.suffix == ".parquet":  # a column for each number of a row
        return {
            name: array if array.ndim < 3 else array.reshape(len(array), -1) for name, array in encoded.arrays.items()
        }
    if out.suffix == ".npz":
        return encoded.arrays
    texts = [name for name, array in encoded.arrays.items() if array.dtype.kind not in "fiub"]
    if texts:
        encoded.notes.append(
            f"safetensors hold no texts, so these were left out: {', '.join(texts)}. Use .npz for them."
        )
    return {name: array for name, array in encoded.arrays.items() if name not in texts}


def _write(out: Path, arrays: dict[str, np.ndarray], shard_bytes: int) -> list[Path]:
    """One file, or several numbered ones of equal numbers of rows, none above `shard_bytes`."""
    rows = len(arrays["h"])
    size = sum(array.nbytes for array in arrays.values())
    count = min(rows, -(-size // shard_bytes))
    files = [out] if count <= 1 else shard_names(out, count)
    edges = np.linspace(0, rows, len(files) + 1).round().astype(int)
    for file, begin, end in zip(files, edges[:-1], edges[1:], strict=True):
        write_arrays(file, {name: array[begin:end] for name, array in arrays.items()})
    _remove_earlier(out, files)
    return files


def _remove_earlier(out: Path, files: Sequence[Path]) -> None:
    """Remove what was written under this name in another number of files, which would be read instead."""
    numbered = re.compile(re.escape(out.stem) + r"-\d{5}-of-\d{5}")
    for other in out.parent.glob(f"{glob.escape(out.stem)}*{out.suffix}"):
        if other not in files and (other == out or numbered.fullmatch(other.stem)):
            other.unlink()
