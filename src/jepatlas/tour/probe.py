"""Chapter: a probe trained on Ada's latents reads Ben's, through the map, with no training."""

from __future__ import annotations

from typing import Any

import numpy as np

from jepatlas.alignment import LinearProbe, migrate, migration_report
from jepatlas.core.linear import Split, hold_out, least_squares
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.core.seeding import numpy_generator
from jepatlas.tour.chapter import Chapter, Stage
from jepatlas.tour.shared_states import SHOWN, shared_states

__all__ = ["PROBE", "SECTORS", "sector"]

SECTORS = 6


def sector(z: np.ndarray) -> np.ndarray:
    """Which sixth of the plane a state lies in: something to ask of latents."""
    turn = np.arctan2(z[:, 1], z[:, 0]) / (2 * np.pi) % 1
    return np.minimum((SECTORS * turn).astype(int), SECTORS - 1)


def _play(stage: Stage) -> Record:
    shared = shared_states(stage)
    (ada, ben), (fit, score), labels = shared.trained, shared.split, sector(shared.z)
    # on the same rows, the probe's and the map's errors would go together
    mapped, probed = (fit[half] for half in hold_out(len(fit), numpy_generator(stage.seed, "probe halves")))
    probe, to_ben = LinearProbe.fit(ada[probed], labels[probed]), least_squares(ada[mapped], ben[mapped])
    probe.save(stage.folder / "probes" / "ada.safetensors")
    for_ben = migrate(probe, to_ben, latents=ada[probed])
    for_ben.save(stage.folder / "probes" / "ben.safetensors")
    report = migration_report(
        probe, to_ben, ada, ben, labels, split=Split(probed, score), rng=numpy_generator(stage.seed, "probe")
    )
    untranslated = report.untranslated
    shown = score[:SHOWN]
    return Record(
        "A probe changes agents",
        f"A linear probe learns on Ada's latents in which sixth of the plane a state lies, and is right on "
        f"{report.source.value:.1%} of new states. Carried through the map it is right on {report.migrated.value:.1%} "
        f"with Ben's latents, where it was never trained; one trained there is right on {report.target.value:.1%}"
        + (f", Ada's head as it is on {untranslated.value:.1%}" if untranslated else "")
        + f", guessing on {report.majority:.1%}. Of the {100 * report.loss.value:.1f} points that it loses, "
        f"{100 * report.price.value:.1f} are the migration's; the rest a probe trained on Ben's lacks as well.",
        provenance(stage.seed) | {"states": len(ada), "of the probe": len(probed), "of the map": len(mapped)},
        tuple(report.verdicts()),
        (_figure(),),
        arrays={
            "z": shared.z[shown],
            "ben": ben[shown],
            "truth": labels[shown].astype(np.float32),
            "answer": for_ben.predict(ben[shown]).astype(np.float32),
        },
    )


def _figure() -> dict[str, Any]:
    look = {"x": "ben", "columns": [0, 1], "label": "h", "range": "latents"}
    panels = [
        {"title": "the truth", "color": "truth", "color_label": "sector"} | look,
        {"title": "what the migrated probe says", "color": "answer", "color_label": "sector"} | look,
    ]
    return {
        "kind": "scatter",
        "title": "Ben's latents, coloured by sector",
        "panels": panels,
        "note": "The probe was trained on Ada's latents of other states.",
    }


PROBE = Chapter("probe", "A probe changes agents", _play)
