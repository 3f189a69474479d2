"""Pairs that the user gives in Python: arrays, a torch `Dataset`, or a `DataLoader`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset, default_collate

from jepatlas.core.errors import InputError
from jepatlas.core.records import Pairs
from jepatlas.core.seeding import torch_generator
from jepatlas.data.batches import check_batch_split, process_rows

__all__ = ["IndexedPairs", "LoaderPairs", "as_dataset", "hold_out_last", "pairs_of", "read_pairs"]

NAMES = ("x", "x_next", "z", "z_next")
FORMS = "arrays (x, x_next), a mapping with 'x' and 'x_next', a torch Dataset of pairs, or a DataLoader of them"
HELD = 0.1  # share of the rows that is held out
BATCH = 256


def pairs_of(batch: object, device: torch.device | str = "cpu") -> Pairs:
    """A collated batch: (x, x_next), (x, x_next, z, z_next), or a mapping with these names; z may be missing."""
    if isinstance(batch, Sequence) and not isinstance(batch, str) and len(batch) in (2, 4):
        batch = dict(zip(NAMES, batch, strict=False))
    if not isinstance(batch, Mapping) or not {"x", "x_next"} <= batch.keys():
        raise InputError(
            f"'data' must give pairs (x, x_next) or mappings with 'x' and 'x_next', but gave {_name(batch)}."
        )
    x = _tensor("x", batch["x"], device)
    z = _tensor("z", batch["z"], device) if "z" in batch else torch.empty(len(x), 0, device=device)
    x_next = _tensor("x_next", batch["x_next"], device)
    z_next = _tensor("z_next", batch["z_next"], device) if "z_next" in batch else z
    if not len(x) == len(x_next) == len(z) == len(z_next):
        tensors = dict(zip(NAMES, (x, x_next, z, z_next), strict=True))
        counts = ", ".join(f"{name} {len(tensor)}" for name, tensor in tensors.items() if name in batch)
        raise InputError(f"'data': all arrays must have equally many rows, but they have: {counts}.")
    return Pairs(x, x_next, z, z_next)


def _name(value: object) -> str:
    if isinstance(value, Mapping):
        return f"a mapping with {', '.join(map(str, value))}"
    size = f" of length {len(value)}" if isinstance(value, list | tuple) else ""
    return f"a {type(value).__name__}{size}"


def _tensor(name: str, value: Any, device: torch.device | str) -> Tensor:
    """float32, or uint8 for images."""
    try:
        tensor = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"'data': {name} cannot be converted to a tensor: {error}") from error
    if tensor.is_meta:
        raise InputError(f"'data': {name} is on the device 'meta', where tensors hold no numbers.")
    if tensor.ndim == 1:
        tensor = tensor[:, None]
    if tensor.ndim < 1 or (tensor.is_floating_point() and not tensor.isfinite().all()):
        raise InputError(f"'data': {name} must be rows of finite numbers.")
    return tensor.to(device, torch.uint8 if tensor.dtype == torch.uint8 else torch.float32)


def as_dataset(data: Any) -> Dataset[Any]:
    """Arrays as a dataset; a dataset as it is."""
    if isinstance(data, IterableDataset):
        raise InputError("'data' is an IterableDataset, which has no rows to choose from. Wrap it in a DataLoader.")
    if isinstance(data, Dataset):
        return data
    if data is None:
        raise InputError(f"'data' is missing: give {FORMS}.")
    if isinstance(data, Mapping | tuple | list):
        pairs = pairs_of(data)
        has_states = pairs.z.shape[1] > 0
        parts = (pairs.x, pairs.x_next, *((pairs.z, pairs.z_next) if has_states else ()))
        return TensorDataset(*parts)
    raise InputError(f"'data' must be {FORMS}, not a {type(data).__name__}.")


def hold_out_last(data: Dataset[Any]) -> tuple[Dataset[Any], Dataset[Any]]:
    """The rows to learn from, and the last tenth, which is held out because neighbouring rows may be similar."""
    rows = len(data)  # pyright: ignore[reportArgumentType]
    learnt = rows - int(rows * HELD)
    return Subset(data, range(learnt)), Subset(data, range(learnt, rows))


def _rows(data: Dataset[Any], rows: Sequence[int]) -> Any:
    """The collated items of these rows."""
    if isinstance(data, Subset):
        return _rows(data.dataset, [data.indices[row] for row in rows])
    if isinstance(data, TensorDataset):
        return data[rows]
    return default_collate([data[row] for row in rows])


def read_pairs(data: Dataset[Any] | DataLoader[Any]) -> Iterator[Pairs]:
    """All pairs in order, batch by batch."""
    if isinstance(data, DataLoader):
        for batch in data:
            yield pairs_of(batch)
        return
    count = len(data)  # pyright: ignore[reportArgumentType]
    for start in range(0, count, BATCH):
        yield pairs_of(_rows(data, range(start, min(count, start + BATCH))))


@dataclass(frozen=True)
class IndexedPairs:
    """Batches from a dataset: each epoch takes its rows in a new order, which follows from (seed, epoch)."""

    data: Dataset[Any]
    batch_size: int  # over all processes
    seed: int
    device: torch.device | str = "cpu"
    rank: int = 0
    world_size: int = 1

    def __post_init__(self) -> None:
        check_batch_split(self.batch_size, self.rank, self.world_size)
        if self.rows < self.batch_size:
            raise InputError(
                f"'data' has {self.rows} pairs to learn from, fewer than one batch of {self.batch_size}. Lower "
                "batch_size."
            )

    @property
    def rows(self) -> int:
        return len(self.data)  # pyright: ignore[reportArgumentType]

    def __call__(self, step: int) -> Pairs:
        epoch, number = divmod(step, self.rows // self.batch_size)
        order = torch.randperm(self.rows, generator=torch_generator(self.seed, "epoch", epoch))
        batch = order[number * self.batch_size :][: self.batch_size]
        mine = batch[process_rows(self.batch_size, self.rank, self.world_size)]
        return pairs_of(_rows(self.data, mine.tolist()), self.device)


class LoaderPairs:
    """The batches of a DataLoader, epoch after epoch. A resumed run starts a new epoch.

    Batches are drawn in order, so the loader decides which rows a step sees. Incomplete last batches are left out.
    """

    def __init__(self, loader: DataLoader[Any], device: torch.device | str = "cpu") -> None:
        if not loader.batch_size:
            raise InputError("'data': the DataLoader must have a batch_size.")
        self.loader = loader
        self.device = device
        self.batch_size = loader.batch_size
        self._batches: Iterator[Any] | None = None
        self._current: tuple[int, Pairs] | None = None

    def __call__(self, step: int) -> Pairs:
        if self._current is None or self._current[0] != step:  # the loop reads its first batch twice
            self._current = (step, self._next())
        return self._current[1]

    def _next(self) -> Pairs:
        for _ in range(2):  # the rest of this epoch, then a new one
            if self._batches is None:
                self._batches = iter(self.loader)
            for batch in self._batches:
                pairs = pairs_of(batch, self.device)
                if len(pairs.x) == self.batch_size:
                    return pairs
            self._batches = None
        raise InputError(f"'data': the DataLoader gives no batch of {self.batch_size} rows.")
