"""Linear probes, and their way from one model to another with no training."""

from jepatlas.align.probes.distillation import distil
from jepatlas.align.probes.migration import Support, migrate, support
from jepatlas.align.probes.probe import LinearProbe
from jepatlas.align.probes.report import MigrationReport, migration_report

__all__ = ["LinearProbe", "MigrationReport", "Support", "distil", "migrate", "migration_report", "support"]
