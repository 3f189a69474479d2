"""What agents chose to look at, and how they align, to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import bars, cell, curve, extremes, grouped, mean_and_range, plain, select
from jepatlas.experiments.social.charts import CONTROLS, NAMES

__all__ = ["agents_table", "cameras_figure", "pairs_table", "r2_figure", "sentence"]

Spec = dict[str, Any]
POLICIES = {"fixed": "one camera", "random": "random cameras", "curious": "cameras of its choice"}
LOOKS = {"one": "through one", "own": "as it looks"}


def _name(policy: str, look: str) -> str:
    return POLICIES[policy] if policy == "fixed" else f"{POLICIES[policy]}, {LOOKS[look]}"


def sentence(pairs: Sequence[Result]) -> str:
    """Every way of learning and looking in a few words; the table of pairs has the controls."""
    return " ".join(
        f"{_name(*kind).capitalize()}: R² {extremes(mean_and_range(runs, 'r2'))}, beyond the best control by "
        f"{extremes(mean_and_range(runs, 'beyond'))}, along "
        f"{extremes(mean_and_range(runs, 'directions'), 1)} directions."
        for kind, runs in grouped(pairs, "policy", "look").items()
    )


def r2_figure(pairs: Sequence[Result]) -> Spec:
    kinds = grouped(pairs, "policy", "look")
    shown = {title: "r2" if name == "agents" else f"r2_{name}" for name, title in NAMES.items()}
    series = [bars(title, [mean_and_range(runs, key) for runs in kinds.values()]) for title, key in shown.items()]
    return {
        "kind": "bars",
        "title": "Held-out R² between two agents, by where they looked",
        "y_label": "held-out R²",
        "names": [f"{policy}, as fixed" if look == "one" and policy != "fixed" else policy for policy, look in kinds],
        "series": series,
        "note": "Means over seeds, with the lowest and the highest; 'as fixed': looked through the one camera of "
        "fixed agents. Controls see what the agents see.",
    }


def cameras_figure(lookers: Sequence[Result]) -> list[Spec]:
    """Which share of the states was looked at from each camera, round by round."""
    finished = [one for one in lookers if one.status == "finished" and one.at["policy"] == "curious"]
    panels = []
    for (view,), runs in grouped(finished, "view").items():
        shares = np.array([run.record["cameras"] for run in runs])  # (seeds, rounds, cameras)
        rounds = range(1, shares.shape[1] + 1)
        series = [
            curve(name.removeprefix("camera") + "°", rounds, [_spread(found) for found in shares[:, :, camera].T])
            for camera, name in enumerate(runs[0].record["views"])
        ]
        panels.append({"title": f"agent {view + 1}", "series": series})
    return (
        [
            {
                "kind": "curves",
                "title": "Where curious agents look",
                "x_label": "round",
                "y_label": "share of states",
                "panels": panels,
                "note": "Means over seeds, with the lowest and the highest; the first round is at random.",
            }
        ]
        if panels
        else []
    )


def _spread(values: np.ndarray) -> Estimate:
    return Estimate(float(values.mean()), float(values.min()), float(values.max()), len(values))


def pairs_table(pairs: Sequence[Result]) -> Spec:
    names = ("r2", "r2_raw", "dsc", "nos_10", *(f"r2_{name}" for name in (*CONTROLS, "pixels")), "beyond")
    rows = [
        [
            _name(pair.at["policy"], pair.at["look"]),
            pair.at["seed"],
            pair.status,
            *(cell(pair.estimate(name)) for name in names),
            *(plain(pair.value(name), ".2f") for name in ("p_r2", "cka", "r2_rotation", "directions")),
        ]
        for pair in pairs
    ]
    columns = [
        "agents",
        "seed",
        "status",
        "R²",
        "R², as they are",
        "DSC",
        "NOS@10",
        *(f"R², {NAMES[name]}" for name in (*CONTROLS, "pixels")),
        "R² beyond the best control",
        "p",
        "CKA",
        "R² of a rotation",
        "directions",
    ]
    return {"title": "Pairs: held-out states, with 95% intervals by groups", "columns": columns, "rows": rows}


def agents_table(lookers: Sequence[Result]) -> Spec:
    """What each agent chose in the end, and what choosing cost."""
    rows = [
        [
            POLICIES[one.at["policy"]],
            one.at["view"] + 1,
            one.at["seed"],
            one.status,
            _last(one),
            *(plain(one.value(name), ".2f") for name in ("evenness", "openness", "advantage", "loss")),
            plain(one.value("looked"), ".0f"),
        ]
        for policy in POLICIES
        for one in select(lookers, policy=policy)
    ]
    columns = [
        "policy",
        "agent",
        "seed",
        "status",
        "cameras of the last round",
        "evenness of cameras",
        "evenness of a state's chances",
        "advantage, in standard deviations",
        "loss",
        "images looked at to choose",
    ]
    return {
        "title": "Agents with several cameras (evenness is 1 where all cameras are alike)",
        "columns": columns,
        "rows": rows,
    }


def _last(one: Result) -> str:
    if "cameras" not in one.record:
        return "–"
    shares = zip(one.record["views"], one.record["cameras"][-1], strict=True)
    return ", ".join(f"{name.removeprefix('camera')}° {share:.0%}" for name, share in shares)
