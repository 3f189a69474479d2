"""Agents on two views that share nothing: are their latents related by a linear isometry, beyond pixels and chance?

I-JEPA agents on each view of a scene, compared with the same networks before training and with PCA of the images: two
cameras on one road align without any learning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jepatlas.core.figures import Figure
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import mean_and_interval_with_groups, mean_and_range
from jepatlas.experiments.social.agent_pairs import pair_results
from jepatlas.experiments.social.agent_settings import PLANS
from jepatlas.experiments.social.decisions import (
    UNKNOWN,
    VARIANTS,
    collapse_note,
    collapsed_seeds,
    conservative,
    decide,
    measured_groups,
    minimum,
    positive_verdicts,
)
from jepatlas.experiments.social.pair_measures import EFFORT, measure_pair
from jepatlas.experiments.social.scenes import SCENES, STUDIED
from jepatlas.experiments.social.sensitivity import (
    light_table,
    measure_light,
    measure_probe,
    measure_truncation,
    probe_table,
    truncation_table,
)
from jepatlas.experiments.social.trained_agents import agent_trials
from jepatlas.experiments.social.view_figures import (
    controls_figure,
    controls_table,
    layers_figure,
    neighbours_figure,
    neighbours_table,
    scores_table,
    spectrum_figure,
)
from jepatlas.experiments.social.view_samples import sample_figures

__all__ = ["EXPERIMENT", "judge"]

MAX_P = 0.05
MAX_ROTATION_LOSS = 0.05
"""An isometry loses at most this much R² against the best linear map."""

CLAIM = Claim(
    statement="Agents that never met, each trained by I-JEPA on its own view, end with latents that an approximately "
    "isometric linear map takes into each other, because of what they learned.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, Tables 1, 7 and 8, "
    "Figures 8 and 9",
    measured="R², DSC, NOS@10: .891 .872 .27 for smallNORB at 0° and 160°, .852 .821 .34 and .838 .804 .36 for "
    "nuScenes front with rear and side, .873 .846 .31 for ImageNet; κ(W) 1.68; neither images nor untrained agents are "
    "compared",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    seeds = range(seed, seed + PLANS[scale].seeds)
    return [trial for scene in STUDIED[scale] for trial in agent_trials(scale, scene, seeds)]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    effort = EFFORT[scale]
    pairs = pair_results(
        results,
        lambda pair: {
            **measure_pair(pair, effort),
            **measure_light(pair, effort),
            **measure_probe(pair),
            **measure_truncation(pair, effort),
        },
    )
    samples, arrays = sample_figures(results)
    finding = judge(pairs, figures=(spectrum_figure(results), *layers_figure(results)))
    return replace(finding, figures=(*samples, *finding.figures), arrays=arrays)


def judge(pairs: Sequence[Result], figures: Sequence[Figure] = ()) -> Finding:
    """Per scene, R² must significantly exceed the best control, in standardised and raw units, over seeds and held-out
    groups, with p ≤ MAX_P at every seed; and a rotation must do as well. Scenes with collapsed agents are
    excluded."""
    scenes, missing = measured_groups(pairs, "scene", "r2")
    counts = {scene: not collapsed_seeds(runs) for scene, runs in scenes.items()}
    counted = max(1, sum(counts.values()))
    gains = {scene: _gain(runs, counted) for scene, runs in scenes.items()}
    neighbour_gains = {scene: _neighbour_gain(runs, len(scenes)) for scene, runs in scenes.items()}
    outcome = decide([*gains.values(), *[UNKNOWN] * missing], [*counts.values(), *[False] * missing])
    if outcome == "holds" and not all(_is_isometry(runs) for scene, runs in scenes.items() if counts[scene]):
        outcome = "holds in part"
    beyond = [scene for scene, gain in gains.items() if counts[scene] and gain.low > 0]
    titled = {SCENES[scene].title: runs for scene, runs in scenes.items()}
    return Finding(
        outcome,
        f"R² significantly exceeds chance and the best control in {len(beyond)} of {sum(counts.values())} scenes."
        f"{collapse_note(titled)}",
        short=f"beyond chance and controls in {len(beyond)} of {sum(counts.values())} scenes that count",
        verdicts=(
            *positive_verdicts(
                {f"beyond_{scene}": gain for scene, gain in gains.items()},
                "Trained agents align better than pixels and untrained networks.",
                "Trained agents do not significantly align better than pixels and untrained networks.",
                list(counts.values()),
            ),
            *(_neighbour_verdict(scene, gain) for scene, gain in neighbour_gains.items()),
        ),
        figures=(controls_figure(scenes), neighbours_figure(scenes), *figures),
        tables=(
            scores_table(pairs),
            controls_table(scenes),
            *light_table(titled),
            *probe_table(titled),
            neighbours_table(scenes),
            truncation_table(titled),
        ),
    )


def _gain(runs: Sequence[Result], among: int) -> Estimate:
    """R² minus that of the best control, the smaller of both units; without a lower limit if p exceeds MAX_P at a
    seed."""
    gain = minimum([mean_and_interval_with_groups(runs, name, among) for name in ("beyond", "beyond_raw")])
    better_than_chance = all(run.value("p_r2") <= MAX_P for run in runs if run.status == "finished")
    return gain if better_than_chance else replace(gain, low=-float("inf"))


def _neighbour_gain(runs: Sequence[Result], among: int) -> Estimate:
    variants = [mean_and_interval_with_groups(runs, f"beyond_{way}", among) for way in VARIANTS["nos_10"]]
    return conservative(variants)


def _is_isometry(runs: Sequence[Result]) -> bool:
    return mean_and_range(runs, "r2_raw").value - mean_and_range(runs, "r2_rotation").value <= MAX_ROTATION_LOSS


def _neighbour_verdict(scene: str, gain: Estimate) -> Verdict:
    return Verdict.judge(
        f"nearer_{scene}",
        gain,
        direction="higher",
        good="NOS@10 of the best control minus that of the agents: how many more neighbours the agents share.",
    )


EXPERIMENT = Experiment("social-views", "Agents that never met, and their views", CLAIM, trials, conclude)
