"""Batches of windows of episodes, for training world models.

A window of horizon t and frame skip k starts at row s of an episode. It contains the frames x_j = x[s + j k] for
j = 0 … t and the actions u_j = (a[s + j k], …, a[s + j k + k − 1]), concatenated along the action axis as in LeWM.
It spans t k + 1 rows within one episode. (Windows of LeWM span (t + 1) k rows, because the last frame has actions too;
missing actions at the end of an episode are set to 0 there.)

With a history of m, each frame is stacked with earlier ones:

    x̃_s = (x[s − (m − 1) k], …, x[s − k], x[s]),    rows before the start of the episode are replaced by its first row

Frames are concatenated along the channels of images or along vectors, oldest first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.errors import InputError, check_count
from jepatlas.core.records import Windows
from jepatlas.core.seeding import torch_generator
from jepatlas.data.batches import check_batch_split, process_rows
from jepatlas.data.episode_arrays import Episodes, FileColumn, MemoryColumn, rows_of_episodes
from jepatlas.data.image_axes import channels_first

__all__ = ["WindowStream", "history_rows", "stack_history"]

ColumnReader = Callable[[np.ndarray], Tensor]
"""Row numbers → rows of a column as a CPU tensor."""


@dataclass(frozen=True)
class WindowStream:
    """Random batches of windows, uniform over all windows, a function of (seed, step).

    Each process draws the joint batch and reads its rows, so the joint batch does not depend on the number of
    processes. Images stay uint8 with shape (b, t + 1, c m, height, width); vectors are float32 (b, t + 1, m n).
    Actions and states are kept in memory. Observations are too with `preload`; otherwise each batch is read from the
    file.
    """

    source: Episodes
    batch_size: int  # over all processes
    seed: int
    horizon: int = 1  # t
    skip: int = 1  # k
    x: str = "pixels"  # observation column
    u: str = "action"  # action column
    z: str | None = None  # column of the true state, if wanted
    episodes: Sequence[int] | np.ndarray | None = None  # episodes to sample from; None for all
    preload: bool = False
    history: int = 1  # m
    device: torch.device | str = "cpu"
    rank: int = 0
    world_size: int = 1

    def __post_init__(self) -> None:
        check_batch_split(self.batch_size, self.rank, self.world_size)
        if self.horizon < 1 or self.skip < 1:
            raise InputError(f"horizon and skip must be at least 1, but are {self.horizon} and {self.skip}.")
        check_count("history", self.history)
        if not self.count:
            longest = self.source.lengths[self._chosen].max(initial=0)
            raise InputError(
                f"All {len(self._chosen)} episodes are too short: a window of horizon {self.horizon} and skip "
                f"{self.skip} needs {self._span + 1} rows, but the longest episode has {longest}. Reduce horizon or "
                "skip."
            )
        self._check_history()
        _ = self._columns  # validates the columns before the first step

    @property
    def count(self) -> int:
        """Number of windows."""
        return int(self._window_ends.max(initial=0))

    def __call__(self, step: int) -> Windows:
        generator = torch_generator(self.seed, "windows", step)
        drawn = torch.randint(self.count, (self.batch_size,), generator=generator).numpy()
        return self.windows(drawn[process_rows(self.batch_size, self.rank, self.world_size)])

    def windows(self, numbers: np.ndarray) -> Windows:
        """The windows with these numbers; windows are numbered episode by episode."""
        read_x, read_u, read_z = self._columns
        starts = self._start_rows(numbers)[:, None]
        frames = starts + self.skip * np.arange(self.horizon + 1)
        actions = read_u(starts + np.arange(self._span))
        actions = actions.flatten(2).unflatten(1, (self.horizon, self.skip)).flatten(2)
        stacked = read_x(history_rows(self.source, frames, self.history, self.skip))  # (b, t + 1, m, *row)
        x = channels_first(stacked, self.source.columns[self.x].shape).flatten(2, 3)
        z = None if read_z is None else read_z(frames).to(self.device)
        return Windows(x.to(self.device), actions.to(self.device), z)

    def _check_history(self) -> None:
        """A history that is longer than all episodes would only repeat frames and exhaust memory."""
        past = (self.history - 1) * self.skip
        longest = int(self.source.lengths[self._chosen].max())
        if past >= longest:
            raise InputError(
                f"A history of {self.history} frames with skip {self.skip} reaches {past} rows back, but the longest "
                f"episode has {longest} rows. Use a history of at most {(longest - 1) // self.skip + 1}."
            )

    def _start_rows(self, numbers: np.ndarray) -> np.ndarray:
        place = np.searchsorted(self._window_ends, numbers, side="right")
        return self.source.offsets[self._chosen[place]] + numbers - np.append(0, self._window_ends)[place]

    @property
    def _span(self) -> int:
        """Rows from the first frame of a window to the last."""
        return self.horizon * self.skip

    @cached_property
    def _chosen(self) -> np.ndarray:
        if self.episodes is None:
            return np.arange(len(self.source))
        chosen = np.asarray(self.episodes, dtype=np.int64)
        for number in chosen.tolist():
            if not 0 <= number < len(self.source):
                raise InputError(f"There are episodes 0 to {len(self.source) - 1}, but episode {number} was requested.")
        return chosen

    @cached_property
    def _window_ends(self) -> np.ndarray:
        """Cumulative number of windows, by chosen episode."""
        return np.cumsum(np.maximum(0, self.source.lengths[self._chosen] - self._span))

    @cached_property
    def _columns(self) -> tuple[ColumnReader, ColumnReader, ColumnReader | None]:
        """Readers of observations, actions and states."""
        usable = self._chosen[self.source.lengths[self._chosen] > self._span]
        rows = rows_of_episodes(self.source, usable)
        u = MemoryColumn(self.source, self.u, rows)
        _check_actions(self.source, u)
        x = MemoryColumn(self.source, self.x, rows) if self.preload else FileColumn(self.source, self.x)
        z = None if self.z is None else MemoryColumn(self.source, self.z, rows)
        return x, u, z


def _check_actions(source: Episodes, u: MemoryColumn) -> None:
    """Raise InputError for non-finite actions; only the last row of an episode may lack an action."""
    bad = u.rows[~u.table.flatten(1).isfinite().all(1).numpy()]
    bad = bad[~np.isin(bad, source.offsets + source.lengths - 1)]
    if len(bad):
        inside = (source.offsets <= bad[0]) & (bad[0] < source.offsets + source.lengths)
        episode = int(np.flatnonzero(inside)[0])
        raise InputError(
            f"{len(bad)} actions are NaN or infinite; the first is in step {bad[0] - source.offsets[episode]} of "
            f"episode {episode}. Only the last row of an episode may lack an action. Remove these episodes or split "
            "them there."
        )


def history_rows(episodes: Episodes, rows: np.ndarray, history: int, skip: int) -> np.ndarray:
    """Row numbers of the stacked frames of each row: (…) → (…, m)."""
    if history == 1:
        return rows[..., None]
    offsets = np.sort(episodes.offsets)
    first = offsets[np.searchsorted(offsets, rows, side="right") - 1]
    past = rows[..., None] - skip * np.arange(history - 1, -1, -1)
    return np.maximum(past, first[..., None])


def stack_history(frames: Sequence[np.ndarray], history: int) -> np.ndarray:
    """Concatenate the last m frames, each (b, …, c), to (b, …, m c); the first is repeated if there are fewer.

    >>> stack_history([np.array([[1, 2]]), np.array([[3, 4]])], 3)
    array([[1, 2, 1, 2, 3, 4]])
    """
    kept = list(frames[-history:])
    kept = [kept[0]] * (history - len(kept)) + kept
    return kept[0] if history == 1 else np.concatenate(kept, axis=-1)
