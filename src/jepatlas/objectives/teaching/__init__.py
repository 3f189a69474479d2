"""What agents teach each other: losses on states that both have seen, beside the one that each learns by alone."""

from jepatlas.objectives.teaching.distillation import Distillation, DistillationConfig
from jepatlas.objectives.teaching.migration import Migration, MigrationConfig
from jepatlas.objectives.teaching.mutual import MutualConfig, MutualTeaching
from jepatlas.objectives.teaching.running_map import RunningMap, RunningMapConfig
from jepatlas.objectives.teaching.student import Student

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

AnyTeaching = MigrationConfig | DistillationConfig
"""How a teacher that is not there any more is followed."""
