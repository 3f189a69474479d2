"""Chapter: an atlas of Ada and Ben, joined by a third agent that was not trained by gradient descent.

Cleo observes the world through a shear and solves for its slowest functions, which takes two seconds and has the same
optimum. She is fitted to the common frame on anchor states alone; Ada and Ben are neither needed nor changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.alignment import (
    Atlas,
    CertificateSummary,
    ChartLatents,
    LinearProbe,
    attach_probe,
    load_atlas,
    probe_for,
    save_atlas,
    size_table,
    translation_verdicts,
)
from jepatlas.core.figures import Scatter, ScatterPanel
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate, Record, Verdict
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability import certify, fit_spectral_encoder
from jepatlas.tour import agents_chapter
from jepatlas.tour.probe_chapter import sector
from jepatlas.tour.stage import AGENT_NAMES, SHOWN, Chapter, SharedStates, Stage, shared_states, true_states
from jepatlas.workflows.align import certificate_summary, read_certificate
from jepatlas.worlds import LatentWorld, SinusoidalShear

__all__ = ["ATLAS"]

PAIRS = 20_000  # that Cleo learns from


def _play(stage: Stage) -> Record:
    shared = shared_states(stage)
    known = [read_certificate(stage.agent(name) / "records" / "certificate.json") for name in AGENT_NAMES]
    fitted = [
        ChartLatents(name, h, np.arange(len(h)), one).take(shared.split.fit)
        for name, h, one in zip(AGENT_NAMES, shared.latents, known, strict=True)
    ]
    probe = LinearProbe.load(stage.folder / "probes" / "ada.safetensors")
    place = stage.folder / "atlas"
    save_atlas(attach_probe(Atlas.build(fitted), "ada", "sector", probe), place)
    atlas = load_atlas(place)  # the only thing that Cleo receives
    latents, certificate = _cleo(stage)
    cleo = ChartLatents("cleo", latents, np.arange(len(latents)), certificate)
    joined = atlas.add(cleo.take(atlas.anchors.ids))
    held = [
        ChartLatents(chart.name, h[shared.split.score], shared.split.score)
        for chart, h in zip(joined.charts, (*shared.latents, latents), strict=True)
    ]
    verdicts = translation_verdicts(joined, held, numpy_generator(stage.seed, "atlas"))
    save_atlas(joined.judge(verdicts), place)
    accuracy = _accuracy(joined, shared, latents, stage.seed)
    return Record(
        "A third agent joins the atlas",
        f"Ada and Ben share a frame of {joined.width} dimensions. Cleo joins it on {len(atlas.anchors.ids)} anchor "
        f"states. Her latents translate to Ben's with held-out R² "
        f"{_named(verdicts, 'translation.cleo.ben').value:.3f}. Ada's probe classifies {accuracy.value:.1%} of new "
        f"states correctly from them (most frequent class: {accuracy.null:.1%}).",
        provenance(stage.seed) | {"anchors": len(atlas.anchors.ids)},
        (*verdicts, accuracy, *joined.verdicts()),
        (_figure(joined),),
        tables=(size_table(joined),),
        arrays=_in_frame(joined, held, shared.z[shared.split.score]),
    )


def _cleo(stage: Stage) -> tuple[np.ndarray, CertificateSummary | None]:
    """Cleo's latents of the shared states, and the certificate on her own pairs."""
    recipe = agents_chapter.recipes(stage.seed)["ada"]
    world = LatentWorld(recipe.world.law, SinusoidalShear())
    pairs = recipe.pairs
    train, test = (pairs.draw(world, PAIRS, torch_generator(stage.seed, name)) for name in ("cleo", "cleo judged"))
    encoder = fit_spectral_encoder(train.x.numpy(), train.x_next.numpy(), world.dim, seed=stage.seed)
    h = encoder.apply(test.x.numpy())
    h_next = encoder.apply(test.x_next.numpy())
    (rate, *_) = pairs.correlation(world) or (None,)
    verdicts = certify(h, h_next, test.z.numpy(), rho=rate, seed=stage.seed)
    return encoder.apply(world.observe(true_states(stage)).numpy()), certificate_summary(verdicts)


def _accuracy(atlas: Atlas, shared: SharedStates, latents: np.ndarray, seed: int) -> Verdict:
    """Accuracy of Ada's probe on Cleo's latents, through the frame."""
    score = shared.split.score
    labels = sector(shared.z)
    right = probe_for(atlas, "cleo", "sector", "ada").predict(latents[score]) == labels[score]
    found: Estimate = bootstrap(
        lambda weights: {"accuracy": float(np.average(right, weights=weights))},
        len(score),
        numpy_generator(seed, "cleo"),
    )["accuracy"]
    commonest = float(np.bincount(labels[score]).max() / len(score))
    return Verdict.judge(
        "cleo.probe",
        found,
        direction="higher",
        threshold=commonest,
        null=commonest,
        good="Ada's probe works on Cleo's latents, though the two were never aligned with each other.",
        bad="Ada's probe on Cleo's latents is no better than the most frequent class.",
    )


def _named(verdicts: Sequence[Verdict], name: str) -> Verdict:
    return next(verdict for verdict in verdicts if verdict.name == name)


def _in_frame(atlas: Atlas, held: Sequence[ChartLatents], z: np.ndarray) -> dict[str, np.ndarray]:
    places = {one.name: atlas.chart(one.name).into.apply(one.latents[:SHOWN]) for one in held}
    return {name: place.astype(np.float32) for name, place in (places | {"z": z[:SHOWN]}).items()}


def _figure(atlas: Atlas) -> Scatter:
    panels = [
        ScatterPanel(name, name.capitalize(), [0, 1], label="frame", range="frame", color="z", color_columns=[0, 1])
        for name in atlas.names
    ]
    return Scatter(
        title="The same states in the common frame",
        panels=panels,
        note="Colour is the true state. None of the three was fitted on these states.",
    )


ATLAS = Chapter("atlas", "A third agent joins", _play)
