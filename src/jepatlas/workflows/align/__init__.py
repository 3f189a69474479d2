"""Align the latents of two or more models, migrate probes between them, and build atlases, from files to records."""

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.workflows.align.align_models import PCA, RANDOM, UNTRAINED, Alignment, align, control_names
    from jepatlas.workflows.align.align_options import HALF, MapKind, Through
    from jepatlas.workflows.align.align_stress import stress
    from jepatlas.workflows.align.align_study import BRIEF, MAIN, Study, fit_map, gather, make_study, study_split
    from jepatlas.workflows.align.atlas_inputs import (
        certificate_summary,
        not_identified_note,
        read_certificate,
        read_charts,
    )
    from jepatlas.workflows.align.atlas_verdicts import (
        add_verdicts,
        build_verdicts,
        translation_note,
        translations_summary,
    )
    from jepatlas.workflows.align.latent_files import match, read_latents, read_pair
    from jepatlas.workflows.align.migrate_probe import Migration, migrate_between
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "BRIEF",
    "HALF",
    "MAIN",
    "PCA",
    "RANDOM",
    "UNTRAINED",
    "Alignment",
    "MapKind",
    "Migration",
    "Study",
    "Through",
    "add_verdicts",
    "align",
    "build_verdicts",
    "certificate_summary",
    "control_names",
    "fit_map",
    "gather",
    "make_study",
    "match",
    "migrate_between",
    "not_identified_note",
    "read_certificate",
    "read_charts",
    "read_latents",
    "read_pair",
    "stress",
    "study_split",
    "translation_note",
    "translations_summary",
]
