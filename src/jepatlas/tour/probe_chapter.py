"""Chapter: a probe that was trained on Ada's latents is applied to Ben's through the map, without training."""

from __future__ import annotations

import numpy as np

from jepatlas.alignment import LinearProbe, migrate, migration_report
from jepatlas.core.figures import Scatter, ScatterPanel
from jepatlas.core.linear import Split, hold_out, least_squares
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.core.seeding import numpy_generator
from jepatlas.tour.stage import SHOWN, Chapter, Stage, shared_states

__all__ = ["PROBE", "SECTORS", "sector"]

SECTORS = 6


def sector(z: np.ndarray) -> np.ndarray:
    """The sixth of the plane in which a state lies, as a class to predict."""
    turn = np.arctan2(z[:, 1], z[:, 0]) / (2 * np.pi) % 1
    return np.minimum((SECTORS * turn).astype(int), SECTORS - 1)


def _play(stage: Stage) -> Record:
    shared = shared_states(stage)
    ada, ben = shared.latents
    fit, score = shared.split
    labels = sector(shared.z)
    # errors of the probe and of the map would be correlated if both were fitted on the same rows
    mapped, probed = (fit[half] for half in hold_out(len(fit), numpy_generator(stage.seed, "probe halves")))
    probe = LinearProbe.fit(ada[probed], labels[probed])
    to_ben = least_squares(ada[mapped], ben[mapped])
    probe.save(stage.folder / "probes" / "ada.safetensors")
    for_ben = migrate(probe, to_ben, latents=ada[probed])
    for_ben.save(stage.folder / "probes" / "ben.safetensors")
    report = migration_report(
        probe, to_ben, ada, ben, labels, split=Split(probed, score), rng=numpy_generator(stage.seed, "probe")
    )
    untranslated = f", Ada's head without the map {report.untranslated.value:.1%}" if report.untranslated else ""
    shown = score[:SHOWN]
    return Record(
        "A probe changes agents",
        f"A linear probe on Ada's latents predicts in which sixth of the plane a state lies, with an accuracy of "
        f"{report.source.value:.1%} on new states. Carried through the map it has {report.migrated.value:.1%} on "
        f"Ben's latents, without training there. A probe trained on Ben's latents has {report.target.value:.1%}"
        f"{untranslated}, the most frequent class {report.majority:.1%}. Of the {100 * report.loss.value:.1f} points "
        f"lost, {100 * report.price.value:.1f} are due to the migration; a probe trained on Ben's latents lacks the "
        "rest, too.",
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


def _figure() -> Scatter:
    titles = {"truth": "true sector", "answer": "prediction of the migrated probe"}
    panels = [
        ScatterPanel("ben", title, [0, 1], label="h", range="latents", color=name, color_label="sector")
        for name, title in titles.items()
    ]
    return Scatter(
        title="Ben's latents, coloured by sector",
        panels=panels,
        note="The probe was trained on Ada's latents of other states.",
    )


PROBE = Chapter("probe", "A probe changes agents", _play)
