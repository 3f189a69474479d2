"""Chapter: the map between the two agents, fitted on states that both have seen, is a rotation; and it was promised.

If h₁ = Q₁z and h₂ = Q₂z then h₂ = Q₂Q₁ᵀ h₁: the transition map of two identified charts is orthogonal. With bounds
B₁ and B₂ on their errors, E‖h₂ − W h₁‖² ≤ (√B₁ + √B₂)² for that W, before a single pair is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jepatlas.alignment import CertificateSummary, certified_map
from jepatlas.core.linear import least_squares, procrustes, r2, whitener
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate, Record, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability import linear_response, recovery, recovery_null
from jepatlas.identifiability.linear_recovery import MAX_ORTHOGONALITY_ERROR, MIN_R2
from jepatlas.tour.chapter import AGENT_NAMES, Chapter, Stage
from jepatlas.tour.shared_states import SHOWN, SharedStates, shared_states
from jepatlas.workflows.align import read_certificate

__all__ = ["TRANSITION"]

FEW = 8


def _play(stage: Stage) -> Record:
    shared = shared_states(stage)
    (ada, ben), (fit, score) = shared.trained, shared.split
    to_ben = least_squares(ada[fit], ben[fit])
    to_ben.save(stage.folder / "maps" / "ada-ben.safetensors")
    _, whitened = linear_response(ada[score], ben[score], np.ones(len(score)))
    verdicts = [*_fitted(stage, shared), *_promised(stage, shared)]
    by_name = {verdict.name: verdict for verdict in verdicts}
    shown = score[:SHOWN]
    return Record(
        "The map between the agents",
        f"A linear map takes Ada's latents to Ben's with held-out R² {verdicts[0].value:.4f}; in whitened coordinates "
        f"its distance from a rotation is {verdicts[1].value:.3f} (unrelated latents: {verdicts[1].null:.2f}). "
        f"{_promise(stage, by_name)} That they agree does not show that they are right: only certificates do.",
        provenance(stage.seed) | {"states": len(ada)},
        tuple(verdicts),
        _figures(whitened),
        tables=(_controls(stage, shared),),
        arrays={"z": shared.z[shown], "ada": ada[shown], "ben": ben[shown], "ada_mapped": to_ben.apply(ada[shown])},
    )


def _fitted(stage: Stage, shared: SharedStates) -> list[Verdict]:
    """The map as pairs show it, with no prior."""
    ada, ben = shared.trained
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
            good="In whitened coordinates the map is a rotation, as theory says of identified charts.",
            bad="The map is no rotation: at least one chart is not identified.",
        ),
        Verdict.judge(
            "map.orthogonality_raw",
            found["orthogonality_raw"],
            direction="lower",
            null=null["orthogonality_raw"],
            good="The same in the agents' own coordinates.",
        ),
    ]


def _promised(stage: Stage, shared: SharedStates) -> list[Verdict]:
    """What the certificates say of the map, beside what it is; and how far the prior reaches with a few pairs."""
    fit, score = shared.split
    known = [_certificate(stage, name) for name in AGENT_NAMES]
    # In the coordinates that the bounds speak of: the latents as they are, or whitened.
    ada, ben = (whitener(h[fit]).apply(h) if one.whitened else h for h, one in zip(shared.trained, known, strict=True))
    rng = numpy_generator(stage.seed, "certified map")
    certified = certified_map(ada[score], ben[score], (known[0].bound, known[1].bound), rng)
    few = procrustes(ada[fit[:FEW]], ben[fit[:FEW]])
    dealt = r2(ben[score], few.apply(ada[rng.permutation(score)]))
    return [
        *certified.verdicts,
        Verdict.judge(
            f"map.r2_from_{FEW}_pairs",
            _r2(ben[score], few.apply(ada[score]), rng),
            direction="higher",
            null=dealt,
            good=f"With a rotation as the prior, {FEW} states that both have seen are enough for a map.",
        ),
    ]


def _promise(stage: Stage, verdicts: Mapping[str, Verdict]) -> str:
    """What was promised, if it was: a bound that is too loose to certify a chart promises nothing worth the name."""
    limit, error = verdicts["certified.limit"], verdicts["certified.error"]
    open_ = [name.capitalize() for name in AGENT_NAMES if not _certificate(stage, name).identified]
    said = f"an error of at most {limit.high:.2f}, of 2 in all; it is {error.value:.3f}"
    if open_:
        return f"The bound does not certify {' and '.join(open_)}, so that nothing is promised; it would be {said}."
    return f"Their certificates, whitened where that is tighter, promised {said}."


def _certificate(stage: Stage, name: str) -> CertificateSummary:
    return read_certificate(stage.agent(name) / "records" / "certificate.json")


def _r2(truth: np.ndarray, told: np.ndarray, rng: np.random.Generator) -> Estimate:
    return bootstrap(lambda weights: {"r2": r2(truth, told, weights)}, len(truth), rng)["r2"]


def _controls(stage: Stage, shared: SharedStates) -> dict[str, Any]:
    """The same map between what was not trained: what agreement there is without any learning."""
    charts = {"trained": shared.trained, "raw observations": shared.raw, "untrained encoders": shared.untrained}
    rows = []
    for name, (ada, ben) in charts.items():
        found = recovery(ben, ada, shared.split, numpy_generator(stage.seed, "map"))
        null = recovery_null(ben, ada, shared.split, numpy_generator(stage.seed, "map null"))
        cells = [f"{e.value:.3f} [{e.low:.3f}, {e.high:.3f}]" for e in (found["r2_inverse"], found["orthogonality"])]
        rows.append([name, *cells, f"{null['r2_inverse']:.3f}, {null['orthogonality']:.3f}"])
    columns = ["coordinates", "R² of Ben's from Ada's", "orthogonality error", "both with shuffled pairs"]
    return {"title": "The map, beside its controls", "columns": columns, "rows": rows}


def _figures(whitened: np.ndarray) -> tuple[dict[str, Any], ...]:
    panels = [("Ada's latents", "ada"), ("Ben's latents", "ben"), ("Ada's, taken to Ben's", "ada_mapped")]
    look = {"columns": [0, 1], "range": "latents", "label": "h", "color": "z", "color_columns": [0, 1]}
    gram = whitened.T @ whitened
    labels = [str(i) for i in range(len(gram))]
    return (
        {
            "kind": "scatter",
            "title": "The same states, in both agents' coordinates",
            "panels": [{"title": title, "x": name} | look for title, name in panels],
            "note": "Colour is the true state, which neither agent has seen. The map was fitted on other states.",
        },
        {
            "kind": "heatmap",
            "title": "WᵀW of the map in whitened coordinates: the identity, for a rotation",
            "matrix": gram.tolist(),
            "x": labels,
            "y": labels,
        },
    )


TRANSITION = Chapter("transition", "The map between them", _play)
