"""The same agents on images whose patches or pixels changed places: is it structure that they align by?

Every image has an order of its own, and the two agents have different ones. Untrained networks see what the agents see,
PCA small images of it. What is left after a shuffle is what does not depend on places: colour and brightness.
Means of them are enough for an R².
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import bars, cell, extremes, grouped, mean_and_range, plain
from jepatlas.experiments.social.agents import PLANS, SHUFFLES, agents
from jepatlas.experiments.social.charts import CONTROLS, NAMES
from jepatlas.experiments.social.collapse import collapsed_at, marked, named, unheard, weighed
from jepatlas.experiments.social.light import light_sentence, light_table, of_light
from jepatlas.experiments.social.measures import EFFORT, measured
from jepatlas.experiments.social.meetings import meetings
from jepatlas.experiments.social.rules import MEASURES, WAYS, gap

__all__ = ["EXPERIMENT", "judge"]

PUBLISHED = {"none": (0.891, 0.872, 0.27), "patches": (0.720, 0.540, 0.69), "pixels": (0.616, 0.280, 0.86)}

CLAIM = Claim(
    statement="Where the spatial structure of images is destroyed, by shuffled patches or by shuffled pixels, agents "
    "align worse.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, Table 1, bottom",
    measured="R², DSC, NOS@10: .891 .872 .27 as it is, .720 .540 .69 with patches shuffled, .616 .280 .86 with pixels "
    "shuffled",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    scene, seeds = "smallnorb" if scale == "paper" else "rendered", range(seed, seed + PLANS[scale].seeds)
    return [trial for shuffle in SHUFFLES for trial in agents(scale, scene, seeds, shuffle=shuffle)]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    return judge(meetings(results, lambda met: measured(met, EFFORT[scale]) | of_light(met, EFFORT[scale])))


def judge(pairs: Sequence[Result]) -> Finding:
    """By paired differences over seeds: R², DSC and NOS@10 must get surely worse by either shuffle. A shuffle counts
    where neither its agents nor those of images as they are collapsed."""
    kinds = {name: runs for (name,), runs in grouped(pairs, "shuffle").items() if mean_and_range(runs, "r2").n}
    counts = {name: not collapsed_at([*runs, *kinds.get("none", [])]) for name, runs in kinds.items()}
    shuffled = [name for (name,), _ in grouped(pairs, "shuffle").items() if name != "none"]
    counts |= {name: False for name in shuffled if name not in kinds}
    measures = [(name, key) for name in shuffled for key in MEASURES]
    heard = [counts[name] for name, _ in measures]
    lost = {
        (name, key): gap(kinds.get("none", []), kinds.get(name, []), key, among=max(1, sum(heard)))
        for name, key in measures
    }
    worse = [counts[name] for (name, _), found in lost.items() if found.low > 0]
    titled = {SHUFFLES[name]: runs for name, runs in kinds.items()}
    return Finding(
        weighed(list(lost.values()), heard),
        "; ".join(f"{SHUFFLES[name]}: {_scores(runs)}" for name, runs in kinds.items())
        + f". {_moved(lost)}{named(titled)} Of {len(lost)} measures "
        f"under a shuffle, {len(worse)} are surely worse than without, by paired differences over seeds; {sum(heard)} "
        f"count, since neither side of them collapsed or was lost, and {sum(worse)} of these are surely worse (at 95% "
        f"for all that count at once). {_beyond(kinds)}{light_sentence(titled)}",
        short=f"{sum(worse)} of {sum(heard)} measures surely worse"
        + ("" if all(heard) else f"; {heard.count(False)} of collapsed or lost ones left out"),
        verdicts=tuple(unheard(_verdict(name, key, found), counts[name]) for (name, key), found in lost.items()),
        figures=(_figure(kinds),),
        tables=(_table(kinds), *light_table(titled)),
    )


def _moved(lost: Mapping[tuple[str, str], Estimate]) -> str:
    """Whether R² falls or rises, in so many words."""
    said = []
    for (name, key), found in lost.items():
        if key == "r2" and found.n:
            way = "falls" if found.value > 0 else "rises"
            sure = "surely" if found.low > 0 or found.high < 0 else "not surely"
            rise = Estimate(-found.value, -found.high, -found.low, found.n)
            said.append(f"with {SHUFFLES[name]} R² {way}, {sure}: by {cell(found if way == 'falls' else rise)}")
    return f"In the mean over seeds, with its interval, {'; '.join(said)}." if said else ""


def _scores(runs: Sequence[Result]) -> str:
    return ", ".join(f"{title} {extremes(mean_and_range(runs, key))}" for key, title in MEASURES.items())


def _beyond(kinds: Mapping[str, Sequence[Result]]) -> str:
    """A fall that the controls share is the images', and not the agents'."""
    said = [
        f"{SHUFFLES[name]}: {mean_and_range(runs, 'r2').value:.3f} against "
        + " and ".join(f"{mean_and_range(runs, f'r2_{control}').value:.3f} ({NAMES[control]})" for control in CONTROLS)
        for name, runs in kinds.items()
    ]
    return f"R² beside controls (PCA sees small images): {'; '.join(said)}."


def _verdict(name: str, key: str, found: Estimate) -> Verdict:
    return Verdict.judge(
        f"{key}_lost_{name}",
        found,
        direction="higher",
        threshold=0.0,
        good=f"With {SHUFFLES[name]}, {MEASURES[key]} is surely worse.",
        bad=f"With {SHUFFLES[name]}, {MEASURES[key]} is not surely worse.",
    )


def _figure(kinds: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    keys = {title: "r2" if name == "agents" else f"r2_{name}" for name, title in NAMES.items()}
    series = [bars(title, [mean_and_range(runs, key) for runs in kinds.values()]) for title, key in keys.items()]
    return {
        "kind": "bars",
        "title": "Held-out R² on images whose structure was destroyed",
        "y_label": "held-out R²",
        "names": [SHUFFLES[name] + "*" * bool(collapsed_at(runs)) for name, runs in kinds.items()],
        "series": series,
        "published": [PUBLISHED[name][0] for name in kinds],
        "note": "Means over seeds, with the lowest and the highest; dashes: published for smallNORB. "
        "*: collapsed at some seed.",
    }


def _table(kinds: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    rows = [
        [
            marked(SHUFFLES[name], runs),
            *(extremes(mean_and_range(runs, key)) for ways in WAYS.values() for key in ways),
            *(extremes(mean_and_range(runs, key)) for key in ("r2_raw", "beyond", "beyond_raw")),
            *(extremes(mean_and_range(runs, f"r2_{control}")) for control in CONTROLS),
            plain(mean_and_range(runs, "p_r2").high, ".2f"),
            extremes(mean_and_range(runs, "directions"), 1),
            " ".join(map(str, PUBLISHED[name])),
        ]
        for name, runs in kinds.items()
    ]
    columns = [
        "images",
        "R²",
        "DSC",
        "DSC, no inverse",
        "NOS@10",
        "NOS@10, no inverse",
        "R², as they are",
        "R² beyond the best control",
        "the same, as they are",
        *(f"R², {NAMES[control]}" for control in CONTROLS),
        "largest p",
        "directions",
        "published",
    ]
    return {
        "title": "Means over seeds (lowest to highest); published are R², DSC, NOS@10 on smallNORB",
        "columns": columns,
        "rows": rows,
    }


EXPERIMENT = Experiment("social-structure", "Agents on shuffled images", CLAIM, trials, conclude)
