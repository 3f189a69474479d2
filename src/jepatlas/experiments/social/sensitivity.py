"""Sensitivity analyses of a pair: the light that both views share, the truncation of inverses, and linear probes.

All of them were added after results were known. They are exploratory: no rule uses them.

The light: a state of the rendered world has one light, which is the same for both cameras. This bit alone makes latents
of two agents similar, and those of two untrained networks perhaps more so.

    light     R² of the mean of each light as a prediction of the second side
    within    R² of a map between latents minus the mean of their light

The truncation: DSC and NOS@10 are published between the first agent's latents and the inverse image of the second's.
W is ill-conditioned, so the full inverse adds noise and a truncated one drops faint directions. The paper does not
state its limit.

The probe: linear probes of the labels, fitted on training states and scored on held-out groups, averaged over both
agents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jepatlas.alignment import HeldOut, PairedLatents
from jepatlas.alignment.probes import LinearProbe
from jepatlas.alignment.similarity import dsc, nos
from jepatlas.core.figures import Table
from jepatlas.core.linear import Split, r2
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.rules import point_estimates
from jepatlas.experiments.engine.seed_tables import extremes, mean_and_range
from jepatlas.experiments.social.agent_pairs import (
    COMPARED,
    CONTROLS,
    NAMES,
    groups_of_pair,
    measure_key,
    scored_rows,
    sides_of,
    split_of,
)
from jepatlas.experiments.social.pair_measures import Effort, Translation, positive_scale, translate
from jepatlas.workflows.vision import majority_share
from jepatlas.worlds.objects import LIGHTS

__all__ = ["light_table", "measure_light", "measure_probe", "measure_truncation", "probe_table", "truncation_table"]

Kinds = Mapping[str, Sequence[Result]]
UNITS = {"r2": "standardised", "r2_raw": "raw"}
LIMITS = (10.0, 100.0, 1e3, 1e6)
NEIGHBOURS = 10
READ = {"h": "trained agents", "untrained": "untrained agents", "majority": "majority class"}


def measure_light(pair: PairedLatents, effort: Effort, seed: int = 0) -> dict[str, Estimate]:
    """R² by the light alone and within a light, for agents and controls; empty if all states have one light."""
    lights = _lights(pair)
    if lights is None:
        return {}
    fit = split_of(pair).fit
    rows = scored_rows(pair, effort.rows)
    sides = {name: both for name, both in sides_of(pair).items() if name in COMPARED}
    within = {name: tuple(_minus_light(side, lights, fit) for side in both) for name, both in sides.items()}
    translations = {name: translate(pair, a, b) for name, (a, b) in within.items()}
    held_out = HeldOut(
        n=len(pair),
        split=Split(fit, rows),
        fit=lambda fit_rows, partners: translations,
        score=lambda models, rows, partners: _score_within(models, rows),
        refit=False,
        groups=groups_of_pair(pair),
    )
    ranges = {f"{unit}_within_{name}": (-np.inf, 1.0) for unit in UNITS for name in COMPARED}
    found = held_out.intervals(numpy_generator(seed, "light"), replicates=effort.replicates, ranges=ranges)
    alone = {}
    for name in COMPARED:
        for unit, value in _light_alone(sides[name][1], within[name][1], fit, rows).items():
            alone[f"{unit}_light_{name}"] = value
    return found | point_estimates(alone, len(rows))


def _lights(pair: PairedLatents) -> np.ndarray | None:
    """The light of each state, which is the last part of its id."""
    assert pair.ids is not None
    lights = np.array([str(name).rpartition("-")[2] for name in pair.ids])
    return lights if len(np.unique(lights)) > 1 and np.isin(lights, list(LIGHTS)).all() else None


def _minus_light(h: np.ndarray, lights: np.ndarray, fit: np.ndarray) -> np.ndarray:
    """Latents minus the mean of the training states with the same light."""
    centred = h.astype(np.float64)
    for light in np.unique(lights):
        centred[lights == light] -= h[fit[lights[fit] == light]].mean(0, dtype=np.float64)
    return centred


def _score_within(translations: Mapping[str, Translation], rows: np.ndarray) -> dict[str, float]:
    found = {}
    for name, one in translations.items():
        found[f"r2_within_{name}"] = r2(one.target[rows], one.predicted[rows])
        found[f"r2_raw_within_{name}"] = r2(one.raw_target[rows], one.raw_predicted[rows])
    for unit in UNITS:
        best = max(found[f"{unit}_within_{control}"] for control in CONTROLS)
        found[f"{unit}_within_beyond"] = found[f"{unit}_within_agents"] - best
    return found


def _light_alone(h: np.ndarray, centred: np.ndarray, fit: np.ndarray, rows: np.ndarray) -> dict[str, float]:
    """R² of the mean of each light as a prediction of the latents."""
    scale = positive_scale(h[fit].std(0, dtype=np.float64))
    target = h[rows].astype(np.float64)
    predicted = h[rows] - centred[rows]
    return {"r2": r2(target / scale, predicted / scale), "r2_raw": r2(target, predicted)}


def light_table(kinds: Kinds) -> tuple[Table, ...]:
    """Agents and controls by the light and within it; no table if there is one light."""
    columns = ["agents", "of"]
    for unit in UNITS.values():
        columns += [f"R², {unit}", f"by the light alone, {unit}", f"within a light, {unit}"]
    rows = []
    for title, runs in kinds.items():
        if not mean_and_range(runs, "r2_within_agents").n:
            continue
        for name in COMPARED:
            row = [title, NAMES[name]]
            for unit in UNITS:
                for key in (measure_key(unit, name), f"{unit}_light_{name}", f"{unit}_within_{name}"):
                    row.append(extremes(mean_and_range(runs, key)))
            rows.append(row)
    title = "The light that both views share: means over seeds (lowest to highest)"
    return (Table(title, columns, rows),) if rows else ()


def measure_truncation(pair: PairedLatents, effort: Effort) -> dict[str, Estimate]:
    """DSC and NOS@10 of agents and controls, with the inverse of the map truncated at each of `LIMITS`."""
    rows = scored_rows(pair, effort.rows)
    if len(rows) <= NEIGHBOURS:
        return {}
    found = {}
    sides = sides_of(pair)
    for name in COMPARED:
        translation = translate(pair, *sides[name])
        scale = positive_scale(translation.fitted.map_.x_scale)
        source = translation.source[rows]
        for limit in LIMITS:
            back = translation.fitted.map_.invert(limit).apply(sides[name][1][rows]) / scale
            found[f"dsc_tau_{limit:g}_{name}"] = dsc(source, back)
            found[f"nos_tau_{limit:g}_{name}"] = nos(source, back, NEIGHBOURS)
    return point_estimates(found, len(rows))


def truncation_table(kinds: Kinds) -> Table:
    """Both measures at every limit, and without an inverse."""
    measures = {"dsc": ("DSC", "dsc_there"), "nos": ("NOS@10", "nos_10_there")}
    columns = ["agents", "of"]
    for title, _ in measures.values():
        columns += [*(f"{title}, τ = {limit:g}" for limit in LIMITS), f"{title}, no inverse"]
    rows = []
    for title, runs in kinds.items():
        for name in COMPARED:
            row = [title, NAMES[name]]
            for measure, (_, there) in measures.items():
                keys = [f"{measure}_tau_{limit:g}_{name}" for limit in LIMITS]
                keys.append(measure_key(there, name))
                row += [extremes(mean_and_range(runs, key)) for key in keys]
            rows.append(row)
    title = "Distances and neighbours by the truncation of the inverse: means over seeds (lowest to highest)"
    return Table(title, columns, rows)


def measure_probe(pair: PairedLatents) -> dict[str, Estimate]:
    """Accuracies before and after training, and the share of the majority class; empty without two labels."""
    labels = pair.labels
    (fit, score) = split_of(pair)
    if labels is None or len(np.unique(labels[fit])) < 2:
        return {}
    found = {"probe_majority": majority_share(labels[score])}
    for kind in ("h", "untrained"):
        accuracies = [_accuracy(getattr(side, kind), labels, fit, score) for side in (pair.a, pair.b)]
        found[f"probe_{kind}"] = float(np.mean(accuracies))
    return point_estimates(found, len(score))


def _accuracy(h: np.ndarray, labels: np.ndarray, fit: np.ndarray, score: np.ndarray) -> float:
    probe = LinearProbe.fit(h[fit].astype(np.float64), labels[fit])
    return float((probe.predict(h[score].astype(np.float64)) == labels[score]).mean())


def probe_table(kinds: Kinds) -> tuple[Table, ...]:
    """No table if images have no labels."""
    rows = []
    for title, runs in kinds.items():
        if mean_and_range(runs, "probe_h").n:
            rows.append([title, *(extremes(mean_and_range(runs, f"probe_{kind}")) for kind in READ)])
    title = "Accuracy of linear probes on held-out states: means of both agents over seeds (lowest to highest)"
    return (Table(title, ["agents", *READ.values()], rows),) if rows else ()
