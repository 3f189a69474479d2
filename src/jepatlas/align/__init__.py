"""Can two models that never met be translated into each other? Takes plain arrays, so it judges anyone's models."""

from jepatlas.align.atlas import Anchors, Atlas
from jepatlas.align.atlas_checks import cycle_verdicts, split_states, translation_verdicts
from jepatlas.align.atlas_folder import exchanged, load_atlas, save_atlas, size_table
from jepatlas.align.atlas_probes import attach_probe, probe_for, probe_of
from jepatlas.align.cca import pwcca, svcca
from jepatlas.align.certified import CertifiedMap, certified_map
from jepatlas.align.certified_limit import certified_transition, predicted_limit
from jepatlas.align.charts import Attachment, CertificateSummary, Chart, ChartLatents
from jepatlas.align.cka import cka, cka_debiased
from jepatlas.align.conditioning import Conditioning
from jepatlas.align.controls import pca_control, untrained_control
from jepatlas.align.distances import dsc, dsc_sampled
from jepatlas.align.fitted import FittedMap, StreamedMap
from jepatlas.align.maps import LeastSquaresMap, ProcrustesMap, RidgeMap, RobustMap
from jepatlas.align.migration import migrate, support
from jepatlas.align.migration_report import MigrationReport, migration_report
from jepatlas.align.neighbours import neighbours
from jepatlas.align.nulls import Null, half_sample_intervals, permutation_null
from jepatlas.align.probes import LinearProbe
from jepatlas.align.similarity import METRICS, Metric, measure
from jepatlas.align.splits import match_ids, split_rows, time_blocks

__all__ = [
    "METRICS",
    "Anchors",
    "Atlas",
    "Attachment",
    "CertificateSummary",
    "CertifiedMap",
    "Chart",
    "ChartLatents",
    "Conditioning",
    "FittedMap",
    "LeastSquaresMap",
    "LinearProbe",
    "Metric",
    "MigrationReport",
    "Null",
    "ProcrustesMap",
    "RidgeMap",
    "RobustMap",
    "StreamedMap",
    "attach_probe",
    "certified_map",
    "certified_transition",
    "cka",
    "cka_debiased",
    "cycle_verdicts",
    "dsc",
    "dsc_sampled",
    "exchanged",
    "half_sample_intervals",
    "load_atlas",
    "match_ids",
    "measure",
    "migrate",
    "migration_report",
    "neighbours",
    "pca_control",
    "permutation_null",
    "predicted_limit",
    "probe_for",
    "probe_of",
    "pwcca",
    "save_atlas",
    "size_table",
    "split_rows",
    "split_states",
    "support",
    "svcca",
    "time_blocks",
    "translation_verdicts",
    "untrained_control",
]
