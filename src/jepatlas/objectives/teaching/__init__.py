"""Teaching between agents: additional losses on states that both have seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.objectives.teaching.mutual import MutualTeaching
    from jepatlas.objectives.teaching.running_map import RunningMap
    from jepatlas.objectives.teaching.student import Distillation, Migration, Student
    from jepatlas.objectives.teaching.teaching_configs import (
        AnyTeaching,
        DistillationConfig,
        MigrationConfig,
        MutualConfig,
        RunningMapConfig,
    )
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "AnyTeaching",
    "Distillation",
    "DistillationConfig",
    "Migration",
    "MigrationConfig",
    "MutualConfig",
    "MutualTeaching",
    "RunningMap",
    "RunningMapConfig",
    "Student",
]
