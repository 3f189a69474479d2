"""Linear probes, and their way from one model to another with no training."""

from jepatlas.align.probes.distillation import distil
from jepatlas.align.probes.migration import Support, migrate, migrate_back, support
from jepatlas.align.probes.probe import LinearProbe
from jepatlas.align.probes.report import MigrationReport, migration_report

__all__ = [
    "LinearProbe",
    "MigrationReport",
    "Support",
    "distil",
    "migrate",
    "migrate_back",
    "migration_report",
    "support",
]
