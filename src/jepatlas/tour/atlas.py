"""Chapter: Ada and Ben become an atlas, and a third agent joins it, which was not trained by gradients at all.

Cleo sees the world through a shear and solves for its slowest functions: two seconds, the same optimum. She is fitted
to the frame on anchor states alone; nothing of Ada and Ben is needed, and nothing of them changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate, Record, Verdict
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability import certify, fit_spectral_encoder
from jepatlas.tour import agents
from jepatlas.tour.chapter import AGENT_NAMES, Chapter, Stage
from jepatlas.tour.probe import sector
from jepatlas.tour.shared_states import SHOWN, SharedStates, shared_states, true_states
from jepatlas.workflows.align import certificate_summary, read_certificate
from jepatlas.worlds import LatentWorld, SinusoidalShear

__all__ = ["ATLAS"]

PAIRS = 20_000


def _play(stage: Stage) -> Record:
    shared = shared_states(stage)
    known = [read_certificate(stage.agent(name) / "records" / "certificate.json") for name in AGENT_NAMES]
    fitted = [
        ChartLatents(name, h, np.arange(len(h)), one).take(shared.split.fit)
        for name, h, one in zip(AGENT_NAMES, shared.trained, known, strict=True)
    ]
    probe = LinearProbe.load(stage.folder / "probes" / "ada.safetensors")
    save_atlas(attach_probe(Atlas.build(fitted), "ada", "sector", probe), place := stage.folder / "atlas")
    atlas = load_atlas(place)  # all that Cleo is sent
    latents, certificate = _cleo(stage)
    cleo = ChartLatents("cleo", latents, np.arange(len(latents)), certificate)
    joined = atlas.add(cleo.take(atlas.anchors.ids))
    held = [
        ChartLatents(chart.name, h[shared.split.score], shared.split.score)
        for chart, h in zip(joined.charts, (*shared.trained, latents), strict=True)
    ]
    verdicts = translation_verdicts(joined, held, numpy_generator(stage.seed, "atlas"))
    save_atlas(joined.judge(verdicts), place)
    accuracy = _accuracy(joined, shared, latents, stage.seed)
    return Record(
        "An atlas, and who joins it",
        f"Ada and Ben share a frame of {joined.width} dimensions. Cleo, who solved for her latents in seconds, joins "
        f"on {len(atlas.anchors.ids)} anchor states: her latents translate to Ben's with held-out R² "
        f"{_named(verdicts, 'translation.cleo.ben').value:.3f}, and Ada's probe reads them right on "
        f"{accuracy.value:.1%} of new states (guessing: {accuracy.null:.1%}).",
        provenance(stage.seed) | {"anchors": len(atlas.anchors.ids)},
        (*verdicts, accuracy, *joined.verdicts()),
        (_figure(joined),),
        tables=(size_table(joined),),
        arrays=_in_frame(joined, held, shared.z[shared.split.score]),
    )


def _cleo(stage: Stage) -> tuple[np.ndarray, CertificateSummary | None]:
    """Her latents of the shared states, and what a certificate on pairs of her own says of them."""
    law = agents.recipes(stage.seed)["ada"].world.law
    world, pairs = LatentWorld(law, SinusoidalShear()), agents.recipes(stage.seed)["ada"].pairs
    learnt, judged = (pairs.draw(world, PAIRS, torch_generator(stage.seed, name)) for name in ("cleo", "cleo judged"))
    encoder = fit_spectral_encoder(learnt.x.numpy(), learnt.x_next.numpy(), world.dim, seed=stage.seed)
    h, h_next = encoder.apply(judged.x.numpy()), encoder.apply(judged.x_next.numpy())
    (rate, *_) = pairs.correlation(world) or (None,)
    verdicts = certify(h, h_next, judged.z.numpy(), rho=rate, seed=stage.seed)
    return encoder.apply(world.observe(true_states(stage)).numpy()), certificate_summary(verdicts)


def _accuracy(atlas: Atlas, shared: SharedStates, latents: np.ndarray, seed: int) -> Verdict:
    """Ada's probe on Cleo's latents, through the frame."""
    score, labels = shared.split.score, sector(shared.z)
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
        good="Ada's probe reads Cleo's latents, though neither has met the other.",
        bad="Ada's probe does not read Cleo's latents better than the commonest class does.",
    )


def _named(verdicts: Sequence[Verdict], name: str) -> Verdict:
    return next(verdict for verdict in verdicts if verdict.name == name)


def _in_frame(atlas: Atlas, held: Sequence[ChartLatents], z: np.ndarray) -> dict[str, np.ndarray]:
    places = {one.name: atlas.chart(one.name).into.apply(one.latents[:SHOWN]) for one in held}
    return {name: place.astype(np.float32) for name, place in (places | {"z": z[:SHOWN]}).items()}


def _figure(atlas: Atlas) -> dict[str, Any]:
    look = {"columns": [0, 1], "range": "frame", "label": "frame", "color": "z", "color_columns": [0, 1]}
    return {
        "kind": "scatter",
        "title": "The same states in the common frame",
        "panels": [{"title": name.capitalize(), "x": name} | look for name in atlas.names],
        "note": "Colour is the true state. These states were not used to place any of the three.",
    }


ATLAS = Chapter("atlas", "A third agent joins", _play)
