"""Atlases: many models in one common frame, with certified maps, held-out checks, and a folder format."""

from jepatlas.alignment.atlas.atlas_checks import (
    cycle_error,
    cycle_verdicts,
    shared_states,
    split_states,
    translation_verdicts,
)
from jepatlas.alignment.atlas.atlas_folder import exchanged, load_atlas, save_atlas, size_table
from jepatlas.alignment.atlas.certified_maps import CertifiedMap, certified_map, certified_transition, predicted_limit
from jepatlas.alignment.atlas.chart import Attachment, CertificateSummary, Chart, ChartLatents, check_name
from jepatlas.alignment.atlas.chart_atlas import Anchors, Atlas, attach_probe, probe_for, probe_of
from jepatlas.alignment.atlas.common_frame import Frame, generalised_procrustes

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
    "check_name",
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
