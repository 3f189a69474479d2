"""The stream of batches of windows: what a world model is learned from.

A window of horizon t with frame skip k begins at row s of an episode. It has the frames x_j = x[s + j k], j = 0 … t,
and between them u_j = (a[s + j k], …, a[s + j k + k − 1]): the k actions one after the other along the action's axis,
as in LeWM. It takes t k + 1 rows and never leaves its episode. With a history of m every frame is seen together with
those k, 2k, … (m − 1) k rows before it: see `history.py`. (LeWM's own windows take (t + 1) k rows, because there
the last frame has its actions, too; where an episode ends, and they are NaN, it makes them 0. Ours have no NaN.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.core.records import Windows
from jepatlas.core.seeding import torch_generator
from jepatlas.data.episode_columns import Episodes, HeldColumn, LazyColumn, rows_of_episodes
from jepatlas.data.history import rows_together
from jepatlas.data.pictures import for_networks
from jepatlas.data.shares import check_share, own_rows

__all__ = ["WindowStream"]

Rows = Callable[[np.ndarray], Tensor]
"""Rows of a column, by number, as a tensor on the CPU."""


@dataclass(frozen=True)
class WindowStream:
    """The windows of each training step, drawn anew from (seed, step), every window of the episodes alike.

    Every process draws the joint batch and reads its part, so W processes together see exactly what one would. Images
    stay uint8 and are (b, t + 1, c m, height, width), vectors (b, t + 1, m n); all but images becomes float32. Actions
    and states are held in memory, and with `preload` the observations are, too; otherwise each batch is read from the
    file.
    """

    source: Episodes
    batch_size: int  # of all processes together
    seed: int
    horizon: int = 1  # t
    skip: int = 1  # k
    x: str = "pixels"  # the column of observations
    u: str = "action"
    z: str | None = None  # the column of the true state, where it is wanted
    episodes: Sequence[int] | np.ndarray | None = None  # which to draw from; all where none are given
    preload: bool = False
    history: int = 1  # m
    device: torch.device | str = "cpu"
    rank: int = 0
    world_size: int = 1

    def __post_init__(self) -> None:
        check_share(self.batch_size, self.rank, self.world_size)
        if self.horizon < 1 or self.skip < 1:
            raise InputError(f"horizon and skip must be at least 1, but are {self.horizon} and {self.skip}.")
        if self.history < 1:
            raise InputError(f"history must be at least 1, the frame itself, but is {self.history}.")
        if not self.count:
            raise InputError(
                f"None of the {len(self._chosen)} episodes is long enough: a window of horizon {self.horizon} with "
                f"skip {self.skip} takes {self._span + 1} rows, and the longest episode has "
                f"{self.source.lengths[self._chosen].max(initial=0)}. Choose less of either."
            )
        self._refuse_long_history()
        _ = self._columns  # what is wrong with them is said before the first step

    @property
    def count(self) -> int:
        """How many windows there are."""
        return int(self._ends.max(initial=0))

    def __call__(self, step: int) -> Windows:
        generator = torch_generator(self.seed, "windows", step)
        drawn = torch.randint(self.count, (self.batch_size,), generator=generator).numpy()
        return self.windows(drawn[own_rows(self.batch_size, self.rank, self.world_size)])

    def windows(self, numbers: np.ndarray) -> Windows:
        """These of the `count` windows, which are numbered episode by episode."""
        x, u, z = self._columns
        starts = self._starts(numbers)[:, None]
        frames, between = starts + self.skip * np.arange(self.horizon + 1), starts + np.arange(self._span)
        actions = u(between).flatten(2).unflatten(1, (self.horizon, self.skip)).flatten(2)
        states = None if z is None else z(frames).to(self.device)
        together = x(rows_together(self.source, frames, self.history, self.skip))  # (b, t + 1, m, *row)
        seen = for_networks(together, self.source.columns[self.x].shape).flatten(2, 3)
        return Windows(seen.to(self.device), actions.to(self.device), states)

    def _refuse_long_history(self) -> None:
        """Or a frame would be repeated where there is none before it, in all windows, and fill the memory."""
        back, longest = (self.history - 1) * self.skip, int(self.source.lengths[self._chosen].max())
        if back >= longest:
            raise InputError(
                f"A history of {self.history} frames, {self.skip} rows apart, goes back {back} rows, but the longest "
                f"episode has {longest} in all. Choose a history of at most {(longest - 1) // self.skip + 1}."
            )

    def _starts(self, numbers: np.ndarray) -> np.ndarray:
        """The rows in which windows begin."""
        place = np.searchsorted(self._ends, numbers, side="right")
        return self.source.offsets[self._chosen[place]] + numbers - np.append(0, self._ends)[place]

    @property
    def _span(self) -> int:
        """Rows from the first frame of a window to the last."""
        return self.horizon * self.skip

    @cached_property
    def _chosen(self) -> np.ndarray:
        given = np.arange(len(self.source)) if self.episodes is None else np.asarray(self.episodes, dtype=np.int64)
        if bad := [int(number) for number in given if not 0 <= number < len(self.source)]:
            raise InputError(f"There are the episodes 0 to {len(self.source) - 1}, but number {bad[0]} was asked for.")
        return given

    @cached_property
    def _ends(self) -> np.ndarray:
        """How many windows there are up to and with each chosen episode."""
        return np.cumsum(np.maximum(0, self.source.lengths[self._chosen] - self._span))

    @cached_property
    def _columns(self) -> tuple[Rows, Rows, Rows | None]:
        """Observations, actions and states, each by the numbers of rows."""
        usable = self._chosen[self.source.lengths[self._chosen] > self._span]
        rows = rows_of_episodes(self.source, usable)
        u = HeldColumn(self.source, self.u, rows)
        _check_actions(self.source, u)
        x = HeldColumn(self.source, self.x, rows) if self.preload else LazyColumn(self.source, self.x)
        return x, u, None if self.z is None else HeldColumn(self.source, self.z, rows)


def _check_actions(source: Episodes, u: HeldColumn) -> None:
    """Refuse actions that are NaN or infinite, but those of the last rows, where nothing was done."""
    bad = u.rows[~u.table.flatten(1).isfinite().all(1).numpy()]
    bad = bad[~np.isin(bad, source.offsets + source.lengths - 1)]
    if len(bad):
        episode = int(np.flatnonzero((source.offsets <= bad[0]) & (bad[0] < source.offsets + source.lengths))[0])
        raise InputError(
            f"{len(bad)} actions are NaN or infinite, the first in step {bad[0] - source.offsets[episode]} of episode "
            f"{episode}. An action may be missing at an episode's last row alone: leave such episodes out, or let "
            "another one begin there."
        )
