"""A certificate while a model trains, in any loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.distributed import gather_values, rank, value_of_main_process, world_size
from jepatlas.core.errors import InputError, check_argument, check_count
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record, Verdict
from jepatlas.monitoring.metrics import as_matrix
from jepatlas.monitoring.monitor_history import MonitorRow, history_figure, history_summary
from jepatlas.monitoring.quick_certificate import quick_verdicts
from jepatlas.results import Result, data_frame
from jepatlas.training.metrics_log import Tracker, open_tracker

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

__all__ = ["Monitor"]

RECORD = "monitor"  # name of the saved record, and prefix of tracked numbers
STEPS = 8  # pairs are taken from at least so many steps, because rows of one batch may be alike
MIN_PAIRS = 200
Pairs = tuple[Tensor, Tensor, Tensor | None]  # h, h_next, z


class Monitor:
    """Collects latents of pairs during training, and certifies them every `every` steps.

        monitor = ja.Monitor(every=500)
        for step, (x, x_next) in enumerate(loader):
            h, h_next = encoder(x), encoder(x_next)
            ...
            monitor.update(h, h_next, step=step)

    Pairs are collected during the last steps before each record only, so that they come from nearly the same weights;
    they stay on their device until then. Rows are treated as independent.

    Under torch.distributed every process must call `update` at the same steps. The rows of all processes are gathered
    for a record, which rank 0 computes; all processes get the same row, so all can stop at the same step.

    - `rho`: the correlation of the pairs, if it is known; by default it is estimated
    - `rows`: pairs of one record, rounded up to whole steps
    - `folder`: where rank 0 keeps the record `records/monitor.json` up to date, for `jepatlas report`
    - `track`: "tensorboard" (in `folder`) and "wandb" (in the run that is active, or in a new one)
    - `on_record`: called on rank 0 with each new row
    """

    def __init__(
        self,
        every: int = 500,
        *,
        rho: float | None = None,
        rows: int = 4096,
        folder: Path | str | None = None,
        track: Sequence[Literal["tensorboard", "wandb"]] = (),
        on_record: Callable[[MonitorRow], object] | None = None,
        seed: int = 0,
    ) -> None:
        check_count("every", every)
        check_count("rows", rows, MIN_PAIRS)
        check_argument("rho", rho, rho is None or 0 < rho < 1, "between 0 and 1")
        if track and folder is None:
            raise InputError(f"track is {list(track)}, which needs 'folder', the place of its files.")
        self.every, self.rho, self.rows, self.seed = every, rho, rows, seed
        self.folder = None if folder is None else Path(folder)
        self.track = tuple(track)
        self.on_record = on_record
        self.history: list[MonitorRow] = []
        self.verdicts: list[Verdict] = []
        """Verdicts of the last record."""
        self._updates = 0
        self._parts: list[Pairs] = []
        self._trackers: list[Tracker] | None = None  # opened at the first record

    def update(self, h: Any, h_next: Any, z: Any = None, *, step: int | None = None) -> MonitorRow | None:
        """Call once per training step with the latents of paired views (b, d) and, if known, the true states (b, n).

        Returns the new row if this step completes a record. `step` labels it; by default, updates are counted.
        """
        pairs = _checked(h, h_next, z)  # at every step, so that a mistake shows at the first one
        self._updates += 1
        left = -self._updates % self.every  # updates from here to the record
        share = math.ceil(self.rows / world_size())
        take = min(len(pairs[0]), math.ceil(share / min(STEPS, self.every)))
        if left * take < share:
            self._collect(pairs, take)
        if left:
            return None
        row = self._record(self._updates if step is None else step)
        if rank() == 0:
            self._publish(row)
        return row

    def _collect(self, pairs: Pairs, take: int) -> None:
        if self._parts and (self._parts[0][2] is None) != (pairs[2] is None):
            raise InputError("'z' was given at some steps only. Give it at every step, or at none.")
        h, h_next, z = pairs
        kept = None if z is None else _some_rows(z, take)
        self._parts.append((_some_rows(h, take), _some_rows(h_next, take), kept))

    def _record(self, step: int) -> MonitorRow:
        h, h_next, z = self._gathered()
        fewest = max(MIN_PAIRS, 2 * h.shape[1] + 2)
        if len(h) < fewest:
            raise InputError(
                f"A record of {h.shape[1]} latents needs at least {fewest} pairs, but {len(h)} were collected in "
                f"{self.every} steps. Raise 'every', 'rows' or the batch size."
            )
        found: tuple[MonitorRow, list[Verdict]] | None = None
        if rank() == 0:
            start = time.perf_counter()
            # within the user's autocast, statistics would be computed in half precision
            with torch.no_grad(), torch.autocast("cpu", enabled=False):
                verdicts = quick_verdicts(h, h_next, z, rho=self.rho, seed=self.seed)
            seconds = time.perf_counter() - start
            found = MonitorRow.of(step, len(h), seconds, verdicts, truth=z is not None), verdicts
        found = value_of_main_process(found)
        assert found is not None
        row, self.verdicts = found
        self.history.append(row)
        return row

    def _gathered(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The collected pairs of all processes; the buffer is emptied."""
        parts, self._parts = self._parts, []
        own = tuple(_joined(column) for column in zip(*parts, strict=True))
        h, h_next, z = (_joined(column) for column in zip(*gather_values(own), strict=True))
        assert h is not None and h_next is not None
        return h.numpy(), h_next.numpy(), None if z is None else z.numpy()

    def _publish(self, row: MonitorRow) -> None:
        if self.folder is not None:
            if self._trackers is None:
                self._trackers = [open_tracker(name, self.folder) for name in self.track]
            values = {f"{RECORD}/{name}": value for name, value in row.values().items()}
            for tracker in self._trackers:
                tracker.write(row.step, values)
            self.save(self.folder)
        if self.on_record is not None:
            self.on_record(row)

    def close(self) -> None:
        """Close the trackers; those of `track` write their last entries."""
        for tracker in self._trackers or ():
            tracker.close()
        self._trackers = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def result(self) -> Result:
        """The curves, and the verdicts of the last record, as an object with `.plot()`, `.report()` and a card."""
        if not self.history:
            raise InputError(f"The monitor has no record yet. The first one is made after {self.every} updates.")
        return Result(
            Record(
                title="Certificate during training",
                summary=history_summary(self.history),
                provenance=provenance(self.seed),
                verdicts=tuple(self.verdicts),
                figures=(history_figure(self.history, self.verdicts),),
                about={"every": self.every, "rows": self.rows, "rho": self.rho},
            )
        )

    def to_frame(self) -> pandas.DataFrame:
        """The history as a pandas DataFrame: one row for each step, intervals in NAME_low and NAME_high."""
        rows = [row.columns() for row in self.history]
        return data_frame(rows, list(rows[-1]) if rows else ["step"])

    def plot(self) -> list[Axes]:
        """Draw the curves with matplotlib; returns the axes."""
        return self.result().plot()

    def save(self, folder: Path | str) -> Path:
        """Write `folder/records/monitor.json`, which `jepatlas report folder` draws."""
        self.result().record.save(Path(folder), RECORD)
        return Path(folder)

    def _repr_html_(self) -> str:
        return self.result()._repr_html_() if self.history else repr(self)

    def state_dict(self) -> dict[str, Any]:
        """The history as plain data, for a checkpoint. Pairs collected since the last record are not part of it."""
        return {
            "updates": self._updates,
            "history": [asdict(row) for row in self.history],
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._updates = state["updates"]
        self._parts = []
        self.verdicts = [Verdict.from_json(verdict) for verdict in state["verdicts"]]
        self.history = [MonitorRow.from_plain(plain) for plain in state["history"]]


def _checked(h: Any, h_next: Any, z: Any) -> Pairs:
    pairs = as_matrix("h", h), as_matrix("h_next", h_next), None if z is None else as_matrix("z", z)
    first, second, states = pairs
    if first.shape != second.shape:
        raise InputError(
            f"'h' and 'h_next' must have the same shape, but have {tuple(first.shape)} and {tuple(second.shape)}."
        )
    if states is not None and len(states) != len(first):
        raise InputError(f"'z' has {len(states)} rows, but 'h' has {len(first)}.")
    return pairs


def _some_rows(rows: Tensor, take: int) -> Tensor:
    """A copy of evenly spaced rows in float32, on their device, so that nothing waits for it."""
    stride = max(len(rows) // max(take, 1), 1)
    return rows[::stride][:take].to(torch.float32, copy=True)


def _joined(parts: Sequence[Tensor | None]) -> Tensor | None:
    rows = [part for part in parts if part is not None]
    return torch.cat(rows).cpu() if rows else None
