"""Chapter: the map between the two agents, fitted on shared states, and the bound that certificates give for it.

If h₁ = Q₁z and h₂ = Q₂z, then h₂ = Q₂Q₁ᵀ h₁: the map between two identified latent spaces is orthogonal. With bounds
B₁ and B₂ on the errors of both, E‖h₂ − W h₁‖² ≤ (√B₁ + √B₂)² for that W, without looking at any pair.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jepatlas.alignment import CertificateSummary, certified_map
from jepatlas.alignment.evidence import HeldOut
from jepatlas.core.figures import Figure, Heatmap, Scatter, ScatterPanel, Table
from jepatlas.core.linear import Split, least_squares, procrustes, r2, whitener
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability import linear_response, recovery, recovery_null
from jepatlas.identifiability.linear_recovery import MAX_ORTHOGONALITY_ERROR, MIN_R2
from jepatlas.tour.stage import AGENT_NAMES, SHOWN, Chapter, SharedStates, Stage, shared_states
from jepatlas.workflows.align import read_certificate

__all__ = ["TRANSITION"]

FEW = 8  # pairs for a map with a rotation as the prior
SHUFFLES = 19


def _play(stage: Stage) -> Record:
    shared = shared_states(stage)
    ada, ben = shared.latents
    fit, score = shared.split
    to_ben = least_squares(ada[fit], ben[fit])
    to_ben.save(stage.folder / "maps" / "ada-ben.safetensors")
    _, whitened = linear_response(ada[score], ben[score], np.ones(len(score)))
    certificates = {name: _certificate(stage, name) for name in AGENT_NAMES}
    fitted = _fitted_map(stage, shared)
    verdicts = [*fitted, *_certified(stage, shared, certificates), _from_few_pairs(stage, shared)]
    shown = score[:SHOWN]
    return Record(
        "The map between the agents",
        f"A linear map predicts Ben's latents from Ada's with held-out R² {fitted[0].value:.4f}. In whitened "
        f"coordinates its distance from a rotation is {fitted[1].value:.3f} (unrelated latents: {fitted[1].null:.2f}). "
        f"{_bound_sentence(certificates, {verdict.name: verdict for verdict in verdicts})} Agreement does not show "
        "that the latents are right; certificates do.",
        provenance(stage.seed) | {"states": len(ada)},
        tuple(verdicts),
        _figures(whitened),
        tables=(_controls(stage, shared),),
        arrays={"z": shared.z[shown], "ada": ada[shown], "ben": ben[shown], "ada_mapped": to_ben.apply(ada[shown])},
    )


def _fitted_map(stage: Stage, shared: SharedStates) -> list[Verdict]:
    """Recovery of Ben's latents from Ada's by a map without a prior."""
    ada, ben = shared.latents
    found = recovery(ben, ada, shared.split, numpy_generator(stage.seed, "map"))
    null = recovery_null(ben, ada, shared.split, numpy_generator(stage.seed, "map null"))
    return [
        Verdict.judge(
            "map.r2",
            found["r2_inverse"],
            direction="higher",
            threshold=MIN_R2,
            null=null["r2_inverse"],
            good="Ben's latents are a linear function of Ada's.",
            bad="Ben's latents are not a linear function of Ada's: see their certificates.",
        ),
        Verdict.judge(
            "map.orthogonality",
            found["orthogonality"],
            direction="lower",
            threshold=MAX_ORTHOGONALITY_ERROR,
            null=null["orthogonality"],
            good="In whitened coordinates the map is a rotation, as theory predicts for identified latents.",
            bad="The map is not a rotation: at least one agent's latents are not identified.",
        ),
        Verdict.judge(
            "map.orthogonality_raw",
            found["orthogonality_raw"],
            direction="lower",
            null=null["orthogonality_raw"],
            good="The same in the agents' own coordinates.",
        ),
    ]


def _certified(
    stage: Stage, shared: SharedStates, certificates: Mapping[str, CertificateSummary]
) -> tuple[Verdict, ...]:
    """The error of the orthogonal map beside the bound that follows from both certificates."""
    fit, score = shared.split
    sides = []
    for h, certificate in zip(shared.latents, certificates.values(), strict=True):
        # bounds hold for the latents as they are, or for whitened latents
        sides.append(whitener(h[fit]).apply(h) if certificate.whitened else h)
    ada, ben = (side[score] for side in sides)
    first, second = (certificate.bound for certificate in certificates.values())
    return tuple(certified_map(ada, ben, (first, second), numpy_generator(stage.seed, "certified map")).verdicts)


def _from_few_pairs(stage: Stage, shared: SharedStates) -> Verdict:
    """R² of an orthogonal map that is fitted on a few pairs."""
    ada, ben = shared.latents
    held_out = HeldOut(
        n=len(ada),
        split=Split(shared.split.fit[:FEW], shared.split.score),
        fit=lambda rows, partners: procrustes(ada[rows], ben[partners]),
        score=lambda fitted, rows, partners: {"r2": r2(ben[partners], fitted.apply(ada[rows]))},
        refit=False,
    )
    rng = numpy_generator(stage.seed, "few pairs")
    return Verdict.judge(
        f"map.r2_from_{FEW}_pairs",
        held_out.intervals(rng)["r2"],
        direction="higher",
        null=held_out.null(rng, directions="higher", permutations=SHUFFLES)["r2"].mean,
        good=f"With a rotation as the prior, {FEW} shared states are enough to fit the map.",
    )


def _bound_sentence(certificates: Mapping[str, CertificateSummary], verdicts: Mapping[str, Verdict]) -> str:
    """The bound and the error, and whether the bound applies: it does not if a certificate is too loose."""
    limit = verdicts["certified.limit"]
    error = verdicts["certified.error"]
    loose = [name.capitalize() for name, certificate in certificates.items() if not certificate.identified]
    numbers = f"at most {limit.high:.2f} of 2; the measured error is {error.value:.3f}"
    if loose:
        names = " and ".join(loose)
        return f"The certificate of {names} is too loose for a guarantee; it would bound the error by {numbers}."
    return f"Both certificates, in whitened coordinates if these give a smaller bound, bound the error by {numbers}."


def _certificate(stage: Stage, name: str) -> CertificateSummary:
    return read_certificate(stage.agent(name) / "records" / "certificate.json")


def _controls(stage: Stage, shared: SharedStates) -> Table:
    """The same map between observations and between untrained encoders: agreement without any learning."""
    a, b = shared.pairs.a, shared.pairs.b
    assert a.raw is not None and b.raw is not None and a.untrained is not None and b.untrained is not None
    sides = {
        "trained": (a.h, b.h),
        "raw observations": (a.raw, b.raw),
        "untrained encoders": (a.untrained, b.untrained),
    }
    rows = []
    for name, (ada, ben) in sides.items():
        found = recovery(ben, ada, shared.split, numpy_generator(stage.seed, "map"))
        null = recovery_null(ben, ada, shared.split, numpy_generator(stage.seed, "map null"))
        cells = [f"{e.value:.3f} [{e.low:.3f}, {e.high:.3f}]" for e in (found["r2_inverse"], found["orthogonality"])]
        rows.append([name, *cells, f"{null['r2_inverse']:.3f}, {null['orthogonality']:.3f}"])
    columns = ["coordinates", "R² of Ben's from Ada's", "orthogonality error", "both with shuffled pairs"]
    return Table("The map and its controls", columns, rows)


def _figures(whitened: np.ndarray) -> tuple[Figure, ...]:
    titles = {"ada": "Ada's latents", "ben": "Ben's latents", "ada_mapped": "Ada's, mapped to Ben's"}
    panels = [
        ScatterPanel(name, title, [0, 1], label="h", range="latents", color="z", color_columns=[0, 1])
        for name, title in titles.items()
    ]
    gram = whitened.T @ whitened
    labels = [str(i) for i in range(len(gram))]
    return (
        Scatter(
            title="The same states in both agents' coordinates",
            panels=panels,
            note="Colour is the true state, which neither agent observes. The map was fitted on other states.",
        ),
        Heatmap(
            title="WᵀW of the map in whitened coordinates, the identity for a rotation",
            matrix=gram.tolist(),
            x=labels,
            y=labels,
        ),
    )


TRANSITION = Chapter("transition", "The map between them", _play)
