"""Two agents, two views, nothing shared: is there a linear isometry between them, and would pixels have had it, too?

I-JEPA agents on each view of a scene. What they align is set beside the same networks before training and beside PCA of
the images, because two cameras on one road align by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jepatlas.base.records import Verdict
from jepatlas.experiments.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.social.agents import PLANS, agents
from jepatlas.experiments.social.charts import CONTROLS, NAMES
from jepatlas.experiments.social.measures import EFFORT, measured
from jepatlas.experiments.social.meetings import meetings
from jepatlas.experiments.social.scenes import SCENES, STUDIED
from jepatlas.experiments.social.views_pictures import pictures
from jepatlas.experiments.social.views_shown import (
    layers_figure,
    neighbours_figure,
    neighbours_table,
    scores_table,
    spectrum_figure,
)
from jepatlas.experiments.tables import at, cell, grouped, mean_over_seeds, over_seeds

__all__ = ["EXPERIMENT", "judge"]

CHANCE, RIGID, ENOUGH = 0.05, 0.05, 2.0

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
    """Of each scene: latents vary, and are better than chance at every seed, than the best control in the mean, and as
    good by a rotation."""
    scenes = {scene: runs for (scene,), runs in grouped(pairs, "scene").items() if over_seeds(runs, "r2").n}
    met = {scene: _rules(runs) for scene, runs in scenes.items()}
    learned = [all(rules[:3]) for rules in met.values()]
    return Finding(
        "undecided" if not met
        else "holds" if all(all(rules) for rules in met.values())
        else "holds in part" if any(learned)
        else "does not hold",
        " ".join(_sentence(scene, runs, met[scene]) for scene, runs in scenes.items())
        + f" A scene counts where latents vary along at least {ENOUGH:g} directions and p ≤ {CHANCE} at every seed, "
        f"where R² is above that of the best control by a mean whose 95% interval over seeds excludes 0, and where the "
        f"best similarity comes within {RIGID} of the map.",
        short=f"beyond chance and controls in {sum(learned)} of {len(learned)} scenes",
        verdicts=tuple(_verdict(scene, runs) for scene, runs in scenes.items()),
        figures=(neighbours_figure(scenes), *figures),
        tables=(scores_table(pairs), neighbours_table(scenes)),
    )  # fmt: skip


def _rules(runs: Sequence[Result]) -> tuple[bool, bool, bool, bool]:
    found = [run for run in runs if run.status == "finished"]
    bent = over_seeds(found, "r2_raw").value - over_seeds(found, "r2_rotation").value
    return (
        all(run.value("directions") >= ENOUGH for run in found),
        all(run.value("p_r2") <= CHANCE for run in found),
        mean_over_seeds(found, "beyond").low > 0,
        bent <= RIGID,
    )


def _sentence(scene: str, runs: Sequence[Result], rules: tuple[bool, ...]) -> str:
    shown = {name: over_seeds(runs, name) for name in ("r2", "r2_raw", "dsc", "nos_10", "r2_rotation", "beyond")}
    controls = {NAMES[name]: over_seeds(runs, f"r2_{name}").value for name in CONTROLS}
    lively, chance, beyond, rigid = rules
    return (
        f"{SCENES[scene].title.capitalize()}: R² {cell(shown['r2'])} (published for {SCENES[scene].setting}: "
        f"{SCENES[scene].published[0]}), DSC {shown['dsc'].value:.3f}, NOS@10 {shown['nos_10'].value:.2f}; controls "
        f"{', '.join(f'{name} {value:.3f}' for name, value in controls.items())}; PCA of the first view alone predicts "
        f"the second agent with {over_seeds(runs, 'r2_pixels').value:.3f}. {'Better' if chance else 'No better'} than "
        f"chance, {'better' if beyond else 'not surely better'} than the best control; of R² "
        f"{shown['r2_raw'].value:.3f} between latents as they are, a rotation keeps {shown['r2_rotation'].value:.3f}"
        f"{'' if rigid else ', so the map is no isometry'}."
        f"{'' if lively else ' But latents of some agents vary along less than 2 directions: they collapsed.'}"
    )


def _verdict(scene: str, runs: Sequence[Result]) -> Verdict:
    return Verdict.judge(
        f"beyond_{scene}", mean_over_seeds(at(runs, scene=scene), "beyond"), direction="higher", threshold=0.0,
        good="Trained agents align beyond what pixels and untrained networks do.",
        bad="What the agents align, pixels or untrained networks align, too, or the seeds do not tell.",
    )  # fmt: skip


EXPERIMENT = Experiment("social-views", "Agents that never met, and their views", CLAIM, trials, conclude)
