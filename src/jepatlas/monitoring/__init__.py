"""Certificates and metrics while a model trains, in any training loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.monitoring.lightning_monitor import LightningMonitor
    from jepatlas.monitoring.metrics import (
        CKA,
        EffectiveRank,
        LinearR2,
        MutualKNN,
        SIGRegStatistic,
        StreamedMetric,
    )
    from jepatlas.monitoring.monitor import Monitor
    from jepatlas.monitoring.monitor_history import MonitorRow
    from jepatlas.monitoring.quick_certificate import quick_verdicts
    from jepatlas.monitoring.trainer_monitor import TrainerMonitor
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "CKA",
    "EffectiveRank",
    "LightningMonitor",
    "LinearR2",
    "Monitor",
    "MonitorRow",
    "MutualKNN",
    "SIGRegStatistic",
    "StreamedMetric",
    "TrainerMonitor",
    "quick_verdicts",
]
