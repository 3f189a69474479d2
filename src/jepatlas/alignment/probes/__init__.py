"""Linear probes, and their way from one model to another with no training."""

from jepatlas.alignment.probes.distillation import distil
from jepatlas.alignment.probes.migration import Support, migrate, migrate_back, support
from jepatlas.alignment.probes.probe import LinearProbe
from jepatlas.alignment.probes.report import MigrationReport, migration_report

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
