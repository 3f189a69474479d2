"""One loop for all objectives, with checkpoints that survive anything, and sweeps over many runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.training.batch_size import refuse_small_batch
    from jepatlas.training.checkpoint import (
        Checkpoint,
        fingerprint,
        latest_checkpoint,
        load_checkpoint,
        save_checkpoint,
    )
    from jepatlas.training.config import TrainingConfig
    from jepatlas.training.executors import OpenExecutor, dask_cluster, local_processes
    from jepatlas.training.loop import Outcome, train
    from jepatlas.training.schedule import ConstantSchedule, CosineSchedule, OneCycleSchedule
    from jepatlas.training.state import load_weights, refuse_running_statistics
    from jepatlas.training.sweep import Job, SweepResult
    from jepatlas.training.watch import Watch
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "Checkpoint",
    "ConstantSchedule",
    "CosineSchedule",
    "Job",
    "OneCycleSchedule",
    "OpenExecutor",
    "Outcome",
    "SweepResult",
    "TrainingConfig",
    "Watch",
    "dask_cluster",
    "fingerprint",
    "latest_checkpoint",
    "load_checkpoint",
    "load_weights",
    "local_processes",
    "refuse_running_statistics",
    "refuse_small_batch",
    "save_checkpoint",
    "train",
]
