"""Do agents align by spatial structure? The same agents on images whose patches or pixels are shuffled.

Every image has its own order, and the two agents use different ones. Untrained networks receive the same images as the
agents; PCA receives small versions of them. What remains after a shuffle does not depend on places: colour and
brightness, whose means suffice for an R².
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jepatlas.core.figures import Bars, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, extremes, grouped, mean_and_range, plain
from jepatlas.experiments.social.agent_pairs import CONTROLS, NAMES, pair_results
from jepatlas.experiments.social.agent_settings import PLANS
from jepatlas.experiments.social.decisions import (
    MEASURES,
    VARIANTS,
    collapse_note,
    collapsed_seeds,
    decide,
    informative,
    mark_collapsed,
    mean_difference,
)
from jepatlas.experiments.social.pair_figures import OVER_SEEDS, r2_figure
from jepatlas.experiments.social.pair_measures import EFFORT, measure_pair
from jepatlas.experiments.social.sensitivity import light_table, measure_light
from jepatlas.experiments.social.trained_agents import SHUFFLES, agent_trials

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
    scene = "smallnorb" if scale == "paper" else "rendered"
    seeds = range(seed, seed + PLANS[scale].seeds)
    return [trial for shuffle in SHUFFLES for trial in agent_trials(scale, scene, seeds, shuffle=shuffle)]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    effort = EFFORT[scale]
    return judge(pair_results(results, lambda pair: measure_pair(pair, effort) | measure_light(pair, effort)))


def judge(pairs: Sequence[Result]) -> Finding:
    """By paired differences over seeds, R², DSC and NOS@10 must significantly get worse by either shuffle. A shuffle is
    excluded if its agents, or those on unshuffled images, collapsed or came to no number."""
    groups = {name: runs for (name,), runs in grouped(pairs, "shuffle").items()}
    kinds = {name: runs for name, runs in groups.items() if mean_and_range(runs, "r2").n}
    plain_runs = kinds.get("none", [])
    counts = {}
    for name in groups:
        counts[name] = name in kinds and not collapsed_seeds([*kinds[name], *plain_runs])
    compared = [(name, measure) for name in groups if name != "none" for measure in MEASURES]
    counted = [counts[name] for name, _ in compared]
    among = max(1, sum(counted))
    losses = {}
    for name, measure in compared:
        losses[name, measure] = mean_difference(plain_runs, kinds.get(name, []), measure, among)
    worse = [counts[name] for (name, _), loss in losses.items() if loss.low > 0]
    titled = {SHUFFLES[name]: runs for name, runs in kinds.items()}
    excluded = "" if all(counted) else f"; {counted.count(False)} excluded"
    return Finding(
        decide(list(losses.values()), counted),
        f"{sum(worse)} of {sum(counted)} measures are significantly worse on shuffled images.{_r2_losses(losses)}"
        f"{collapse_note(titled)}",
        short=f"{sum(worse)} of {sum(counted)} measures significantly worse{excluded}",
        verdicts=tuple(informative(_verdict(name, key, loss), counts[name]) for (name, key), loss in losses.items()),
        figures=(_r2_figure(kinds),),
        tables=(_scores_table(kinds), *light_table(titled)),
    )


def _r2_losses(losses: Mapping[tuple[str, str], Estimate]) -> str:
    """A sentence, with a leading space, on the loss of R² by each shuffle."""
    listed = [
        f"{cell(loss)} with {SHUFFLES[name]}" for (name, measure), loss in losses.items() if measure == "r2" and loss.n
    ]
    return f" R² lost: {'; '.join(listed)}." if listed else ""


def _verdict(name: str, measure: str, loss: Estimate) -> Verdict:
    return Verdict.judge(
        f"{measure}_lost_{name}",
        loss,
        direction="higher",
        threshold=0.0,
        good=f"With {SHUFFLES[name]}, {MEASURES[measure]} is significantly worse.",
        bad=f"With {SHUFFLES[name]}, {MEASURES[measure]} is not significantly worse.",
    )


def _r2_figure(kinds: Mapping[str, Sequence[Result]]) -> Bars:
    return r2_figure(
        "Held-out R² on shuffled images",
        {f"{SHUFFLES[name]}*" if collapsed_seeds(runs) else SHUFFLES[name]: runs for name, runs in kinds.items()},
        tuple(NAMES),
        published=[PUBLISHED[name][0] for name in kinds],
        note=f"{OVER_SEEDS}; dashes: published for smallNORB; *: some collapsed.",
    )


def _scores_table(kinds: Mapping[str, Sequence[Result]]) -> Table:
    ways = [way for variants in VARIANTS.values() for way in variants]
    columns = [
        "images",
        "R²",
        "DSC",
        "DSC, no inverse",
        "NOS@10",
        "NOS@10, no inverse",
        "R², raw latents",
        "R² beyond the best control",
        "R², raw latents, beyond the best control",
        *(f"R², {NAMES[control]}" for control in CONTROLS),
        "largest p",
        "directions",
        "published",
    ]
    rows = []
    for name, runs in kinds.items():
        keys = [*ways, "r2_raw", "beyond", "beyond_raw", *(f"r2_{control}" for control in CONTROLS)]
        rows.append(
            [
                mark_collapsed(SHUFFLES[name], runs),
                *(extremes(mean_and_range(runs, key)) for key in keys),
                plain(mean_and_range(runs, "p_r2").high, ".2f"),
                extremes(mean_and_range(runs, "directions"), 1),
                " ".join(map(str, PUBLISHED[name])),
            ]
        )
    title = "Means over seeds (lowest to highest); published are R², DSC, NOS@10 on smallNORB"
    return Table(title, columns, rows)


EXPERIMENT = Experiment("social-structure", "Agents on shuffled images", CLAIM, trials, conclude)
