"""Two agents, two views, nothing shared: is there a linear isometry between them, and would pixels have had it, too?

I-JEPA agents on each view of a scene. What they align is set beside the same networks before training and beside PCA of
the images, because two cameras on one road align by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import (
    cell,
    extremes,
    grouped,
    mean_and_interval_with_groups,
    mean_and_range,
)
from jepatlas.experiments.social.agents import PLANS, agents
from jepatlas.experiments.social.charts import CONTROLS, NAMES
from jepatlas.experiments.social.collapse import ENOUGH, UNKNOWN, collapsed_at, marked, unheard, weighed
from jepatlas.experiments.social.light import light_sentence, light_table, of_light
from jepatlas.experiments.social.measures import EFFORT, measured
from jepatlas.experiments.social.meetings import meetings
from jepatlas.experiments.social.probed import probe_table, probed
from jepatlas.experiments.social.rules import WAYS, both_ways, least_of
from jepatlas.experiments.social.scenes import SCENES, STUDIED
from jepatlas.experiments.social.truncations import truncated, truncations_table
from jepatlas.experiments.social.views_pictures import pictures
from jepatlas.experiments.social.views_shown import (
    controls_figure,
    controls_table,
    layers_figure,
    neighbours_figure,
    neighbours_table,
    scores_table,
    spectrum_figure,
)

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
    effort = EFFORT[scale]
    pairs = meetings(
        results, lambda met: {**measured(met, effort), **of_light(met, effort), **probed(met), **truncated(met, effort)}
    )
    seen, arrays = pictures(results)
    found = judge(pairs, figures=(spectrum_figure(results), *layers_figure(results)))
    return replace(found, figures=(*seen, *found.figures), arrays=arrays)


def judge(pairs: Sequence[Result], figures: Sequence[Mapping[str, Any]] = ()) -> Finding:
    """Of each scene: pairs are better than chance at every seed, and than the best control in the mean, in either unit,
    over seeds and held-out groups; and a rotation is as good. Scenes whose agents collapsed do not count."""
    scenes = {scene: runs for (scene,), runs in grouped(pairs, "scene").items() if mean_and_range(runs, "r2").n}
    counts = {scene: not collapsed_at(runs) for scene, runs in scenes.items()}
    gains = {scene: _gain(runs, among=max(1, sum(counts.values()))) for scene, runs in scenes.items()}
    nearer = {scene: _nearer(runs, among=len(scenes)) for scene, runs in scenes.items()}
    absent = [UNKNOWN for (scene,), _ in grouped(pairs, "scene").items() if scene not in scenes]
    found = weighed([*gains.values(), *absent], [*counts.values(), *(False for _ in absent)])
    bent = [scene for scene, runs in scenes.items() if counts[scene] and not _rigid(runs)]
    beyond = [scene for scene, gain in gains.items() if counts[scene] and gain.low > 0]
    titled = {SCENES[scene].title: runs for scene, runs in scenes.items()}
    return Finding(
        "holds in part" if found == "holds" and bent else found,
        " ".join(_sentence(scene, runs, gains[scene], nearer[scene]) for scene, runs in scenes.items())
        + f" A scene counts where latents vary along at least {ENOUGH:g} directions at every seed. It speaks for the "
        f"claim where p ≤ {CHANCE} at every seed and R² is surely above that of the best control, between standardised "
        f"latents and between latents as they are, by means with intervals over seeds and held-out groups that hold "
        "at 95% for all scenes that count at once; and against it where it is surely below. The map is an isometry "
        f"where the best similarity comes within {RIGID}. Neighbours decide nothing.{light_sentence(titled)}",
        short=f"beyond chance and controls in {len(beyond)} of {sum(counts.values())} scenes that count",
        verdicts=(
            *(unheard(_verdict(scene, gain), counts[scene]) for scene, gain in gains.items()),
            *(_of_neighbours(scene, found) for scene, found in nearer.items()),
        ),
        figures=(controls_figure(scenes), neighbours_figure(scenes), *figures),
        tables=(
            scores_table(pairs),
            controls_table(scenes),
            *light_table(titled),
            *probe_table(titled),
            neighbours_table(scenes),
            truncations_table(titled),
        ),
    )


def _gain(runs: Sequence[Result], among: int) -> Estimate:
    """R² beyond the best control, in the unit in which it is less; not surely above 0 where some seed's pairs are no
    better than chance."""
    found = least_of([mean_and_interval_with_groups(runs, name, among) for name in ("beyond", "beyond_raw")])
    return found if _better_than_chance(runs) else replace(found, low=-np.inf)


def _nearer(runs: Sequence[Result], among: int) -> Estimate:
    """Neighbours kept beyond the best control, whichever way."""
    return both_ways([mean_and_interval_with_groups(runs, f"beyond_{way}", among) for way in WAYS["nos_10"]])


def _better_than_chance(runs: Sequence[Result]) -> bool:
    return all(run.value("p_r2") <= CHANCE for run in runs if run.status == "finished")


def _rigid(runs: Sequence[Result]) -> bool:
    return mean_and_range(runs, "r2_raw").value - mean_and_range(runs, "r2_rotation").value <= RIGID


def _sentence(scene: str, runs: Sequence[Result], gain: Estimate, nearer: Estimate) -> str:
    """What is said of a scene in a few words; its tables have the rest."""
    raw, rotated = (mean_and_range(runs, name).value for name in ("r2_raw", "r2_rotation"))
    controls = {name: mean_and_range(runs, f"r2_{name}").value for name in CONTROLS}
    neighbours = {name: mean_and_range(runs, f"nos_10_{name}").value for name in CONTROLS}
    best, nearest = max(controls, key=controls.__getitem__), min(neighbours, key=neighbours.__getitem__)
    title = marked(SCENES[scene].title, runs)
    chance = "" if _better_than_chance(runs) else ", no better than chance at some seed"
    return (
        f"{title[:1].upper()}{title[1:]}: R² {extremes(mean_and_range(runs, 'r2'))}{chance}; the best control, "
        f"{NAMES[best]}, has {controls[best]:.3f}. Beyond the best, in the unit in which that is less, it is "
        f"{cell(gain)}: {_surely(gain)}. Of ten neighbours "
        f"{mean_and_range(runs, 'nos_10').value:.0%} differ through the "
        f"inverse and {mean_and_range(runs, 'nos_10_there').value:.0%} with none; at best, of {NAMES[nearest]}, "
        f"{neighbours[nearest]:.0%} and {mean_and_range(runs, f'nos_10_there_{nearest}').value:.0%}: a gain of "
        f"{cell(nearer)} in the way in which that is less, {_surely(nearer)}. A "
        f"rotation keeps {rotated:.3f} of R² {raw:.3f} as latents are{'' if _rigid(runs) else ': no isometry'}."
    )


def _surely(found: Estimate) -> str:
    return "surely better" if found.low > 0 else "surely worse" if found.high < 0 else "not surely better"


def _verdict(scene: str, gain: Estimate) -> Verdict:
    return Verdict.judge(
        f"beyond_{scene}",
        gain,
        direction="higher",
        threshold=0.0,
        good="Trained agents align beyond what pixels and untrained networks do.",
        bad="What the agents align, pixels or untrained networks align, too, or seeds and held-out groups do not tell.",
    )


def _of_neighbours(scene: str, found: Estimate) -> Verdict:
    """Beside the rule, which was made for R²: it informs."""
    return Verdict.judge(
        f"nearer_{scene}",
        found,
        direction="higher",
        good="How many more neighbours, of ten, agents share than the best control.",
    )


EXPERIMENT = Experiment("social-views", "Agents that never met, and their views", CLAIM, trials, conclude)
