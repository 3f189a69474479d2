"""The training loop, checkpoints, learning-rate schedules and sweeps over many runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.training.checkpoint import (
        Checkpoint,
        check_no_running_statistics,
        fingerprint,
        latest_checkpoint,
        load_checkpoint,
        load_weights,
        save_checkpoint,
    )
    from jepatlas.training.data_parallel import lock_for_all, wait_for_all
    from jepatlas.training.loop import Outcome, check_batch_size, train
    from jepatlas.training.metrics_log import last_metrics
    from jepatlas.training.progress_display import SweepProgress
    from jepatlas.training.sweeps import Job, OpenExecutor, SweepResult, dask_cluster, local_processes, sweep
    from jepatlas.training.training_config import ConstantSchedule, CosineSchedule, OneCycleSchedule, TrainingConfig
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
    "SweepProgress",
    "SweepResult",
    "TrainingConfig",
    "check_batch_size",
    "check_no_running_statistics",
    "dask_cluster",
    "fingerprint",
    "last_metrics",
    "latest_checkpoint",
    "load_checkpoint",
    "load_weights",
    "local_processes",
    "lock_for_all",
    "save_checkpoint",
    "sweep",
    "train",
    "wait_for_all",
]
