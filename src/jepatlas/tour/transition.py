"""Chapter: the map between the two agents, fitted on states that both have seen, is a rotation.

If h₁ = Q₁z and h₂ = Q₂z then h₂ = Q₂Q₁ᵀ h₁: the transition map of two identified charts is orthogonal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from jepatlas.base.linear import Split, hold_out, least_squares
from jepatlas.base.provenance import provenance
from jepatlas.base.records import Record, Verdict
from jepatlas.base.seeding import numpy_generator, torch_generator
from jepatlas.identify import linear_response, recovery, recovery_null
from jepatlas.identify.certificate import ORTHOGONALITY, R2
from jepatlas.recipes import build_objective
from jepatlas.runs import load_objective
from jepatlas.tour.chapter import AGENT_NAMES, Chapter, Stage

__all__ = ["TRANSITION"]

STATES = 10_000
SHOWN = 1500


def _play(stage: Stage) -> Record:
    z, charts = _same_states(stage)
    ada, ben = charts["trained"]
    split = hold_out(STATES, numpy_generator(stage.seed, "map split"))
    estimates = recovery(ben, ada, split, numpy_generator(stage.seed, "map"))
    null = recovery_null(ben, ada, split, numpy_generator(stage.seed, "map null"))
    to_ben = least_squares(ada[split.fit], ben[split.fit])
    to_ben.save(stage.folder / "maps" / "ada-ben.safetensors")
    _, whitened = linear_response(ada[split.score], ben[split.score], np.ones(len(split.score)))
    shown = split.score[:SHOWN]
    verdicts = (
        Verdict.judge("map.r2", estimates["r2_inverse"], direction="higher", threshold=R2, null=null["r2_inverse"],
                      good="Ben's latents are a linear function of Ada's.",
                      bad="Ben's latents are not a linear function of Ada's: see their certificates."),
        Verdict.judge("map.orthogonality", estimates["orthogonality"], direction="lower", threshold=ORTHOGONALITY,
                      null=null["orthogonality"],
                      good="In whitened coordinates the map is a rotation, as theory says of identified charts.",
                      bad="The map is no rotation: at least one chart is not identified."),
        Verdict.judge("map.orthogonality_raw", estimates["orthogonality_raw"], direction="lower",
                      null=null["orthogonality_raw"], good="The same in the agents' own coordinates."),
    )  # fmt: skip
    return Record(
        "The map between the agents",
        f"A linear map takes Ada's latents to Ben's with held-out R² {verdicts[0].value:.4f}; in whitened coordinates "
        f"its distance from a rotation is {verdicts[1].value:.3f} (unrelated latents: {verdicts[1].null:.2f}). "
        "That they agree does not show that they are right: their certificates do.",
        provenance(stage.seed) | {"states": STATES},
        verdicts,
        _figures(whitened),
        tables=(_controls(stage, charts, split),),
        arrays={"z": z[shown], "ada": ada[shown], "ben": ben[shown], "ada_mapped": to_ben.apply(ada[shown])},
    )


def _same_states(stage: Stage) -> tuple[np.ndarray, dict[str, list[np.ndarray]]]:
    """Both agents look at the same fresh states, each through its own mixing; and so do the controls."""
    loaded = [load_objective(stage.agent(name)) for name in AGENT_NAMES]
    z = loaded[0][0].world.states(STATES, torch_generator(stage.seed, "map states"))
    charts: dict[str, list[np.ndarray]] = {"trained": [], "raw observations": [], "untrained encoders": []}
    for recipe, objective in loaded:
        x = recipe.world.observe(z)
        with torch.no_grad():
            latents = (objective.encode(x), x, build_objective(recipe).eval().encode(x))
        for chart, latent in zip(charts.values(), latents, strict=True):
            chart.append(latent.double().numpy())
    return z.numpy(), charts


def _controls(stage: Stage, charts: dict[str, list[np.ndarray]], split: Split) -> dict[str, Any]:
    """The same map between what was not trained: what agreement there is without any learning."""
    rows = []
    for name, (ada, ben) in charts.items():
        found = recovery(ben, ada, split, numpy_generator(stage.seed, "map"))
        r2, turn = found["r2_inverse"], found["orthogonality"]
        rows.append([name, *(f"{e.value:.3f} [{e.low:.3f}, {e.high:.3f}]" for e in (r2, turn))])
    columns = ["coordinates", "R² of Ben's from Ada's", "orthogonality error"]
    return {"title": "The map, beside its controls", "columns": columns, "rows": rows}


def _figures(whitened: np.ndarray) -> tuple[dict[str, Any], ...]:
    panels = [("Ada's latents", "ada"), ("Ben's latents", "ben"), ("Ada's, taken to Ben's", "ada_mapped")]
    look = {"columns": [0, 1], "range": "latents", "label": "h", "color": "z", "color_columns": [0, 1]}
    gram = whitened.T @ whitened
    labels = [str(i) for i in range(len(gram))]
    return (
        {"kind": "scatter", "title": "The same states, in both agents' coordinates",
         "panels": [{"title": title, "x": name} | look for title, name in panels],
         "note": "Colour is the true state, which neither agent has seen. The map was fitted on other states."},
        {"kind": "heatmap", "title": "WᵀW of the map in whitened coordinates: the identity, for a rotation",
         "matrix": gram.tolist(), "x": labels, "y": labels},
    )  # fmt: skip


TRANSITION = Chapter("transition", "The map between them", _play)
