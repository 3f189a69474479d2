"""Many models in one frame, the folder they are mailed in, and the maps that their certificates promise."""

from jepatlas.alignment.atlas.atlas import Anchors, Atlas
from jepatlas.alignment.atlas.certified import CertifiedMap, certified_map
from jepatlas.alignment.atlas.certified_limit import certified_transition, predicted_limit
from jepatlas.alignment.atlas.charts import Attachment, CertificateSummary, Chart, ChartLatents
from jepatlas.alignment.atlas.checks import (
    cycle_error,
    cycle_verdicts,
    shared_states,
    split_states,
    translation_verdicts,
)
from jepatlas.alignment.atlas.folder import exchanged, load_atlas, save_atlas, size_table
from jepatlas.alignment.atlas.frames import Frame, generalised_procrustes
from jepatlas.alignment.atlas.probes import attach_probe, probe_for, probe_of

__all__ = [
    "Anchors",
    "Atlas",
    "Attachment",
    "CertificateSummary",
    "CertifiedMap",
    "Chart",
    "ChartLatents",
    "Frame",
    "attach_probe",
    "certified_map",
    "certified_transition",
    "cycle_error",
    "cycle_verdicts",
    "exchanged",
    "generalised_procrustes",
    "load_atlas",
    "predicted_limit",
    "probe_for",
    "probe_of",
    "save_atlas",
    "shared_states",
    "size_table",
    "split_states",
    "translation_verdicts",
]
