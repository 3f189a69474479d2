"""Two agents, two views, nothing shared: is there a linear isometry between them, and would pixels have had it, too?

I-JEPA agents on each view of a scene. What they align is set beside the same networks before training and beside PCA of
the images, because two cameras on one road align by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jepatlas.base.records import Estimate, Verdict
from jepatlas.experiments.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.social.agents import PLANS, agents
from jepatlas.experiments.social.charts import CONTROLS, NAMES
from jepatlas.experiments.social.collapse import ENOUGH, collapsed_at, marked, unheard, weighed
from jepatlas.experiments.social.measures import EFFORT, measured
from jepatlas.experiments.social.meetings import meetings
from jepatlas.experiments.social.scenes import SCENES, STUDIED
from jepatlas.experiments.social.views_pictures import pictures
from jepatlas.experiments.social.views_shown import (
    controls_table,
    layers_figure,
    neighbours_figure,
    neighbours_table,
    scores_table,
    spectrum_figure,
)
from jepatlas.experiments.tables import cell, extremes, grouped, over_seeds, over_seeds_and_groups

__all__ = ["EXPERIMENT", "judge"]

CHANCE, RIGID = 0.05, 0.05

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
    return [trial for scene in STUDIED[scale] for trial in agents(scale, scene, seeds)]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    pairs = meetings(results, lambda met: measured(met, EFFORT[scale]))
    seen, arrays = pictures(results)
    found = judge(pairs, figures=(spectrum_figure(results), *layers_figure(results)))
    return replace(found, figures=(*seen, *found.figures), arrays=arrays)


def judge(pairs: Sequence[Result], figures: Sequence[Mapping[str, Any]] = ()) -> Finding:
    """Of each scene: pairs are better than chance at every seed, and than the best control in the mean, in either unit,
    over seeds and held-out groups; and a rotation is as good. Scenes whose agents collapsed do not count."""
    scenes = {scene: runs for (scene,), runs in grouped(pairs, "scene").items() if over_seeds(runs, "r2").n}
    counts = {scene: not collapsed_at(runs) for scene, runs in scenes.items()}
    gains = {scene: _gain(runs, among=max(1, sum(counts.values()))) for scene, runs in scenes.items()}
    found = weighed(list(gains.values()), list(counts.values()))
    bent = [scene for scene, runs in scenes.items() if counts[scene] and not _rigid(runs)]
    beyond = [scene for scene, gain in gains.items() if counts[scene] and gain.low > 0]
    return Finding(
        "holds in part" if found == "holds" and bent else found,
        " ".join(_sentence(scene, runs, gains[scene]) for scene, runs in scenes.items())
        + f" A scene counts where latents vary along at least {ENOUGH:g} directions at every seed. It speaks for the "
        f"claim where p ≤ {CHANCE} at every seed and R² is surely above that of the best control, between standardised "
        f"latents and between latents as they are, by means with intervals over seeds and held-out groups that hold "
        "at 95% for all scenes that count at once; and against it where it is surely below. The map is an isometry "
        f"where the best similarity comes within {RIGID}.",
        short=f"beyond chance and controls in {len(beyond)} of {sum(counts.values())} scenes that count",
        verdicts=tuple(unheard(_verdict(scene, gain), counts[scene]) for scene, gain in gains.items()),
        figures=(neighbours_figure(scenes), *figures),
        tables=(scores_table(pairs), controls_table(scenes), neighbours_table(scenes)),
    )  # fmt: skip


def _gain(runs: Sequence[Result], among: int) -> Estimate:
    """R² beyond the best control, in the unit in which it is less; not surely above 0 where some seed's pairs are no
    better than chance."""
    units = [over_seeds_and_groups(runs, name, among) for name in ("beyond", "beyond_raw")]
    value, low, high = (min(getattr(unit, end) for unit in units) for end in ("value", "low", "high"))
    return Estimate(value, low if _better_than_chance(runs) else -np.inf, high, units[0].n)


def _better_than_chance(runs: Sequence[Result]) -> bool:
    return all(run.value("p_r2") <= CHANCE for run in runs if run.status == "finished")


def _rigid(runs: Sequence[Result]) -> bool:
    return over_seeds(runs, "r2_raw").value - over_seeds(runs, "r2_rotation").value <= RIGID


def _sentence(scene: str, runs: Sequence[Result], gain: Estimate) -> str:
    names = ("r2", "r2_raw", "dsc", "nos_10", "r2_rotation", "r2_pixels")
    shown = {name: over_seeds(runs, name).value for name in names}
    title = marked(SCENES[scene].title, runs)
    found = "surely better" if gain.low > 0 else "surely worse" if gain.high < 0 else "not surely better"
    return (
        f"{title[:1].upper()}{title[1:]}: R² {extremes(over_seeds(runs, 'r2'))} (published for "
        f"{SCENES[scene].setting}: {SCENES[scene].published[0]}), {shown['r2_raw']:.3f} as they are, "
        f"DSC {shown['dsc']:.3f}, NOS@10 {shown['nos_10']:.2f}; controls {_controls(runs)}; PCA of the first view "
        f"alone predicts the second agent with {shown['r2_pixels']:.3f}. "
        f"{'Better' if _better_than_chance(runs) else 'No better'} than chance, {found} than the best control "
        f"({cell(gain)}, in the unit in which it is less); of R² as they are, a rotation keeps "
        f"{shown['r2_rotation']:.3f}{'' if _rigid(runs) else ', so the map is no isometry'}."
    )


def _controls(runs: Sequence[Result]) -> str:
    return ", ".join(f"{NAMES[name]} {over_seeds(runs, f'r2_{name}').value:.3f} "
                     f"({over_seeds(runs, f'r2_raw_{name}').value:.3f} as they are)" for name in CONTROLS)  # fmt: skip


def _verdict(scene: str, gain: Estimate) -> Verdict:
    return Verdict.judge(
        f"beyond_{scene}", gain, direction="higher", threshold=0.0,
        good="Trained agents align beyond what pixels and untrained networks do.",
        bad="What the agents align, pixels or untrained networks align, too, or seeds and held-out groups do not tell.",
    )  # fmt: skip


EXPERIMENT = Experiment("social-views", "Agents that never met, and their views", CLAIM, trials, conclude)
