"""Parsers of data from files that others wrote: JSON, YAML, numpy and safetensors, within limits.

Whatever is wrong with the data is an InputError that names its source. Sizes are compared with those of the data before
memory is taken.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import tokenize
from pathlib import Path
from typing import IO, Any

import numpy as np
import safetensors.numpy
import yaml
from safetensors import SafetensorError

from jepatlas.core.errors import InputError

__all__ = [
    "check_size",
    "parse_json",
    "parse_safetensors",
    "parse_tensors",
    "parse_yaml",
    "read_numpy",
    "safetensors_metadata",
]

LARGE = 1 << 26
"""Bytes from which an array may be mapped from disk instead of read."""

UNPICKLING = (
    "which are not read, because unpickling can run foreign code. Save numbers or strings, for example with "
    "numpy.save(path, array.astype(float))."
)
DEPTH = 100  # of nested lists and mappings
BROKEN_TENSORS = (SafetensorError, ValueError, TypeError, KeyError, AttributeError, OverflowError, MemoryError)
BROKEN_HEADER = (ValueError, TypeError, SyntaxError, tokenize.TokenError, OverflowError, MemoryError, RecursionError)


def parse_json(data: str | bytes, source: object) -> Any:
    """
    >>> parse_json('{"a": [1, 2]}', "a file")
    {'a': [1, 2]}
    """
    try:
        return json.loads(data)
    except RecursionError as error:
        raise InputError(f"{source} is not valid JSON that can be read: it is nested too deeply.") from error
    except ValueError as error:  # not JSON, not UTF-8, or a number of thousands of digits
        raise InputError(f"{source} is not valid JSON ({error}). Was it edited or cut short?") from error


class _Loader(yaml.SafeLoader):
    """YAML without aliases, which let a few hundred bytes describe any amount of data, and of limited depth."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError(f"it holds the alias {self.peek_event().anchor!r}; write the value in full")
        self.depth += 1
        if self.depth > DEPTH:
            raise yaml.YAMLError("it is nested too deeply")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def parse_yaml(text: str, source: object) -> Any:
    """
    >>> parse_yaml("a: [1, 2]", "a file")
    {'a': [1, 2]}
    """
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: an impossible date or number
        raise InputError(f"{source} is not valid YAML: {error}") from error


def parse_safetensors(data: bytes | Path, source: object) -> dict[str, np.ndarray]:
    """The arrays of safetensors, given as bytes or as a file; bfloat16, which numpy lacks, as float64."""
    try:
        return safetensors.numpy.load(data) if isinstance(data, bytes) else safetensors.numpy.load_file(data)
    except BROKEN_TENSORS as error:
        if not any(name in str(error) for name in ("bfloat16", "BF16")):
            raise _not_safetensors(source, error) from error
    tensors = parse_tensors(data, source)
    return {name: (t.double() if t.is_floating_point() else t).numpy() for name, t in tensors.items()}


def parse_tensors(data: bytes | Path, source: object) -> dict[str, Any]:
    """The torch tensors of safetensors, given as bytes or as a file."""
    torch_format = importlib.import_module("safetensors.torch")  # only here, because reporting must not import torch
    try:
        return torch_format.load(data) if isinstance(data, bytes) else torch_format.load_file(data)
    except BROKEN_TENSORS as error:
        raise _not_safetensors(source, error) from error


def _not_safetensors(source: object, error: Exception) -> InputError:
    return InputError(f"{source} does not hold valid safetensors: {error}")


def safetensors_metadata(data: bytes, source: object) -> dict[str, str]:
    """The strings in the header of safetensors: eight bytes with its length, then JSON."""
    header = parse_json(data[8 : 8 + int.from_bytes(data[:8], "little")], f"The header of {source}")
    texts = header.get("__metadata__", {}) if isinstance(header, dict) else None
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise InputError(f"{source} does not hold valid safetensors: its header cannot be read.")
    return texts


def read_numpy(file: IO[bytes], size: int, source: object, *, mapped: bool = False) -> np.ndarray:
    """The array of a .npy file of `size` bytes; nothing is unpickled.

    If `mapped`, a large array stays on disk. It can be written to, but that does not change the file.
    """
    magic = np.lib.format.MAGIC_PREFIX
    start = file.read(len(magic))
    if start[:1] == b"\x80":  # the first byte of every pickle since protocol 2
        raise InputError(f"{source} is a pickle of Python objects, {UNPICKLING}")
    if start != magic:
        raise InputError(f"{source} is not an array in the .npy format of numpy.")
    file.seek(0)
    try:
        version = np.lib.format.read_magic(file)
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, fortran_order, dtype = read_header(file)
        count = math.prod(shape)
        valid = all(length >= 0 for length in shape)
    except KeyError as error:
        raise InputError(f"{source} is in a version of the .npy format that holds no plain arrays.") from error
    except BROKEN_HEADER as error:
        raise InputError(f"{source} is not an array in the .npy format of numpy: {error}.") from error
    if dtype.hasobject:
        raise InputError(f"{source} holds Python objects, {UNPICKLING}")
    needed = count * dtype.itemsize
    if not valid or needed > size:
        raise InputError(
            f"{source} declares an array of shape {shape} and type {dtype}, but has only {size} bytes. Is it cut short?"
        )
    if mapped and needed >= LARGE:
        order = "F" if fortran_order else "C"
        return np.asarray(np.memmap(file, dtype, "c", offset=file.tell(), shape=shape, order=order))
    buffer = bytearray(needed)
    if file.readinto(buffer) != needed:  # type: ignore[attr-defined]
        raise InputError(f"{source} ends before its array does. Was it cut short?")
    flat = np.frombuffer(buffer, dtype, count)
    return flat.reshape(shape[::-1]).T if fortran_order else flat.reshape(shape)


def check_size(size: int, source: object) -> None:
    """Raise InputError if data would take more bytes than JEPATLAS_MAX_BYTES, by default the memory of the machine."""
    given = os.environ.get("JEPATLAS_MAX_BYTES", "")
    limit = int(given) if given.isdecimal() else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > limit:
        raise InputError(
            f"{source} would take {size / 1e9:.3g} GB of memory, more than the limit of {limit / 1e9:.3g} GB. If the "
            "file is trusted, raise the limit with the environment variable JEPATLAS_MAX_BYTES."
        )
