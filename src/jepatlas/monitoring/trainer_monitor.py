"""A monitor as a callback of the Trainer of HuggingFace transformers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from jepatlas.core.errors import MissingExtra
from jepatlas.core.files import read_json, write_json
from jepatlas.monitoring.model_outputs import Pairs, check_pairs, find_pairs
from jepatlas.monitoring.monitor import RECORD, Monitor
from jepatlas.monitoring.monitor_history import MonitorRow

if TYPE_CHECKING:
    from transformers import TrainerCallback as Base

__all__ = ["TrainerMonitor"]

FILE = "jepatlas_monitor.json"  # in the folder of a checkpoint


def _callback_class() -> type:
    try:
        return importlib.import_module("transformers").TrainerCallback
    except ImportError:
        return object


if not TYPE_CHECKING:
    Base = _callback_class()


class TrainerMonitor(Base):
    """Calls `monitor.update` after each optimisation step, with what the model returned for its batches.

        monitor = ja.Monitor(every=500)
        trainer = Trainer(model, ..., callbacks=[ja.TrainerMonitor(monitor, pairs=("h", "h_next"))])

    `pairs` are keys of the output of the model: the latents of both views and, if known, the true states. It may also
    be a function of (outputs, inputs, model) that returns these, where `inputs` are the keywords the model was called
    with. Records are added to `trainer.state.log_history` as `monitor/NAME`, and checkpoints hold the history. Training
    stops after a record for which `stop` is true:

        ja.TrainerMonitor(monitor, stop=lambda row: row.bound_whitened.high < 0.1 * width)
    """

    def __init__(
        self, monitor: Monitor, pairs: Pairs = ("h", "h_next"), stop: Callable[[MonitorRow], bool] | None = None
    ) -> None:
        if Base is object:
            raise MissingExtra("TrainerMonitor needs the package 'transformers'. Run: pip install 'jepatlas[interop]'")
        check_pairs(pairs)
        self.monitor = monitor
        self.pairs = pairs
        self.stop = stop
        self._hook: Any = None
        self._parts: list[list[Tensor]] = []  # of the batches of one step, if gradients are accumulated

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        del control, kwargs
        self._remove_hook()
        self._hook = model.register_forward_hook(self._keep, with_kwargs=True)
        saved = _checkpoint(args, state) / FILE
        if state.global_step and saved.is_file():
            self.monitor.load_state_dict(read_json(saved))

    def _keep(self, model: Any, args: Any, kwargs: Any, outputs: Any) -> None:
        if model.training and torch.is_grad_enabled():
            found = find_pairs(self.pairs, outputs, kwargs or args, model, "The model")
            self._parts.append([torch.as_tensor(one).detach() for one in found])

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        del args, kwargs
        parts, self._parts = self._parts, []
        row = self.monitor.update(*(torch.cat(rows) for rows in zip(*parts, strict=True)), step=state.global_step)
        if row is None:
            return
        values = {f"{RECORD}/{name}": value for name, value in row.values().items()}
        state.log_history.append(values | {"epoch": state.epoch, "step": state.global_step})
        if self.stop is not None and self.stop(row):
            control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        del control, kwargs
        if state.is_world_process_zero:
            write_json(_checkpoint(args, state) / FILE, self.monitor.state_dict())

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        del args, state, control, kwargs
        self._remove_hook()
        self.monitor.close()

    def _remove_hook(self) -> None:
        if self._hook is not None:
            self._hook.remove()
        self._hook, self._parts = None, []


def _checkpoint(args: Any, state: Any) -> Path:
    return Path(args.output_dir, f"checkpoint-{state.global_step}")
