"""Two models' latents, from files to a record: what is aligned, beyond chance and beyond the raw input."""

from jepatlas.workflows.align.alignment import Alignment, MapKind, align, fit_map
from jepatlas.workflows.align.atlases import add_verdicts, build_verdicts, read_charts
from jepatlas.workflows.align.charts import certificate_summary, certificates_said, chart_latents, read_certificate
from jepatlas.workflows.align.evidence import BRIEF, Study, gather
from jepatlas.workflows.align.latents import read_latents
from jepatlas.workflows.align.matched import match
from jepatlas.workflows.align.migration import Migration, Through, migrate_between
from jepatlas.workflows.align.stress import stress
from jepatlas.workflows.align.translations import translation_said, translations

__all__ = [
    "BRIEF",
    "Alignment",
    "MapKind",
    "Migration",
    "Study",
    "Through",
    "add_verdicts",
    "align",
    "build_verdicts",
    "certificate_summary",
    "certificates_said",
    "chart_latents",
    "fit_map",
    "gather",
    "match",
    "migrate_between",
    "read_certificate",
    "read_charts",
    "read_latents",
    "stress",
    "translation_said",
    "translations",
]
