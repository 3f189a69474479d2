"""A monitor as a callback of Lightning, from the package `lightning` or `pytorch_lightning`."""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jepatlas.core.errors import MissingExtra
from jepatlas.monitoring.model_outputs import Pairs, check_pairs, find_pairs
from jepatlas.monitoring.monitor import RECORD, Monitor

if TYPE_CHECKING:
    from lightning.pytorch import Callback as Base

__all__ = ["LightningMonitor"]

PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def _callback_class() -> type | None:
    """A subclass of the callbacks of all packages that are in use, because each accepts its own only."""
    loaded = tuple(sys.modules[name].Callback for name in PACKAGES if name in sys.modules)
    if loaded:
        return type("Callback", loaded, {})
    for name in PACKAGES:
        with suppress(ImportError):
            return importlib.import_module(name).Callback
    return None


if not TYPE_CHECKING:
    Base = _callback_class() or object


class LightningMonitor(Base):
    """Calls `monitor.update` after each training batch, and logs each record as `monitor/NAME`.

        monitor = ja.Monitor(every=500)
        trainer = Trainer(callbacks=[ja.LightningMonitor(monitor, pairs=("h", "h_next"))])

    `pairs` are keys of the dictionary that `training_step` returns: the latents of both views and, if known, the true
    states. It may also be a function of (outputs, batch, module) that returns these. stable-pretraining is the same:
    its `forward` returns a dictionary.

    `EarlyStopping(monitor="monitor/bound_whitened")` can stop on the logged numbers.
    """

    def __init__(self, monitor: Monitor, pairs: Pairs = ("h", "h_next")) -> None:
        if Base is object:
            raise MissingExtra("LightningMonitor needs the package 'lightning'. Run: pip install lightning")
        super().__init__()
        check_pairs(pairs)
        self.monitor = monitor
        self.pairs = pairs

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        del batch_idx
        found = find_pairs(self.pairs, outputs, batch, pl_module, "training_step")
        row = self.monitor.update(*found, step=trainer.global_step)
        if row is not None:
            values = {f"{RECORD}/{name}": value for name, value in row.values().items()}
            pl_module.log_dict(values, on_step=True, on_epoch=False)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        del trainer, pl_module
        self.monitor.close()

    def state_dict(self) -> dict[str, Any]:
        return self.monitor.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.monitor.load_state_dict(state_dict)
