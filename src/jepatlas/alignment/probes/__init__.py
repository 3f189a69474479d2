"""Linear probes, and their migration between models without training."""

from jepatlas.alignment.probes.linear_probe import LinearProbe
from jepatlas.alignment.probes.probe_migration import Support, distil, migrate, migrate_back, support
from jepatlas.alignment.probes.probe_report import MigrationReport, migration_report

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
