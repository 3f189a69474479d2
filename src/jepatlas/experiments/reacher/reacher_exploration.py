"""Reacher from pixels: joint angles that move by an isotropic Gaussian law, against an arm that reaches for targets.

Consecutive frames of a policy differ in two ways from those of the Gaussian law at ρ = .9: in their distribution, and
in their rate. Their correlation is about .995, which is hard to learn from under any law. So each motion is learned
from at both rates: the Gaussian law with either ρ, the others with frames that are consecutive or several steps
apart. The claim is about the distribution. It holds if the Gaussian law is identified at ρ = .9, and both goal-
directed motions are identified less than the Gaussian law of the same rate, on their own held-out episodes and on
Gaussian poses; scoring on both rules out a probe that fails outside its distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from jepatlas.core.figures import Curves, Heatmap, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Criterion, outcome_of_criteria
from jepatlas.experiments.engine.run_tables import run_table
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_range, select
from jepatlas.experiments.reacher.reacher_encoders import Motion, probed_trial, reacher_recipe
from jepatlas.experiments.reacher.reacher_probes import DEGREE, PLACES, TARGETS
from jepatlas.worlds import OrnsteinUhlenbeckMotion, SACMotion, ScriptedMotion

__all__ = ["APART", "EXPERIMENT", "gaussian_trial"]

APART = 5
"""Steps between two frames after which the angles of the scripted arm correlate by about .9."""
GOOD = 0.93
LOWER = 0.1
SEEDS = {"tiny": 1, "small": 3, "paper": 5}


@dataclass(frozen=True)
class Arm:
    title: str
    motion: Motion
    stride: int = 1
    length: int | None = None
    rival: str = ""  # the Gaussian arm of the same rate


ARMS = {
    "gaussian": Arm("Gaussian ρ .9", OrnsteinUhlenbeckMotion(rho=0.9)),
    "gaussian-slow": Arm("Gaussian ρ .995", OrnsteinUhlenbeckMotion(rho=0.995), length=16),  # short: many poses
    "scripted": Arm("scripted", ScriptedMotion(), rival="gaussian-slow"),
    "scripted-apart": Arm(f"scripted {APART} apart", ScriptedMotion(), APART, rival="gaussian"),
    "sac": Arm("SAC", SACMotion(), rival="gaussian-slow"),
    "sac-apart": Arm(f"SAC {APART} apart", SACMotion(), APART, rival="gaussian"),
}
TINY = ("gaussian", "scripted-apart", "sac")
DIRECTED = [name for name, arm in ARMS.items() if arm.rival]
SHOWN = tuple(f"angles_{place}_{place}" for place in PLACES)
"""The probes that are fitted and scored on one distribution."""
SHARES = (*(f"degree_{d}" for d in range(1, DEGREE + 1)), "beyond")
TARGET_TITLES = {"angles": "angles", "circle": "sin, cos"}
PROBES = {f"{t}_{a}_{b}": f"{TARGET_TITLES[t]}: {a} → {b}" for t, a, b in product(TARGETS, PLACES, PLACES)}

CLAIM = Claim(
    statement="From pixels LeJEPA identifies the joint angles of an arm that explores by an isotropic Gaussian law, "
    "but not of one that a policy drives to goals.",
    source="When Does LeJEPA Learn a World Model?, Reacher",
    measured="R² .95 at ρ = .9; at most .50 on trajectories of SAC, by probes that were fitted on trajectories and "
    "scored on Gaussian poses",
)

Groups = Mapping[str, Sequence[Result]]  # results by arm


def trials(scale: Scale, seed: int) -> list[Trial]:
    arms = TINY if scale == "tiny" else ARMS
    return [_trial(scale, s, name) for s in range(seed, seed + SEEDS[scale]) for name in arms]


def _trial(scale: Scale, seed: int, name: str) -> Trial:
    """The policy is trained once for all seeds and cached; it is part of the world, not of the learner."""
    arm = ARMS[name]
    tiny = scale == "tiny" and isinstance(arm.motion, SACMotion)
    motion = SACMotion(training_steps=40, width=8) if tiny else arm.motion
    return probed_trial(scale, reacher_recipe(scale, seed, motion, length=arm.length, stride=arm.stride), arm=name)


def gaussian_trial(scale: Scale, seed: int) -> Trial:
    return _trial(scale, seed, "gaussian")


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """The Gaussian law counts by its mean over seeds; a motion is lower if every run of it is."""
    del scale
    groups = {name: select(results, arm=name) for name in ARMS}
    means = {name: mean_and_range(groups["gaussian"], name) for name in SHOWN}
    gaps: dict[tuple[str, str], Estimate] = {}
    for arm, name in product(DIRECTED, SHOWN):
        gaps[arm, name] = _gap(groups[ARMS[arm].rival], groups[arm], name)
    criteria = [
        Criterion(f"Gaussian ρ .9: R², {PROBES[name]}", f"{mean.value:.3f}", f"≥ {GOOD}", mean.value >= GOOD)
        for name, mean in means.items()
    ]
    for (arm, name), gap in gaps.items():
        rival = ARMS[ARMS[arm].rival].title
        title = f"{rival} − {ARMS[arm].title}: R², {PROBES[name]}"
        criteria.append(Criterion(title, cell(gap), f"≥ {LOWER} for all seeds", gap.low >= LOWER))
    own = ", ".join(f"{arm} {mean_and_range(runs, SHOWN[0]).value:z.2f}" for arm, runs in groups.items())
    return Finding(
        outcome_of_criteria(criteria),
        f"R² on own held-out episodes: {own}.",
        criteria=tuple(criteria),
        verdicts=(
            *(_gaussian_verdict(groups["gaussian"], name) for name in SHOWN),
            *(_gap_verdict(arm, name, gap) for (arm, name), gap in gaps.items()),
        ),
        figures=(_probe_figure(groups), _degree_figure(groups)),
        tables=(_table(results),),
    )


def _gap(gaussian: Sequence[Result], directed: Sequence[Result], name: str) -> Estimate:
    """Difference of the means; limits: from any run to any other."""
    one = mean_and_range(gaussian, name)
    other = mean_and_range(directed, name)
    return Estimate(one.value - other.value, one.low - other.high, one.high - other.low, other.n)


def _gaussian_verdict(results: Sequence[Result], name: str) -> Verdict:
    return Verdict.judge(
        f"gaussian_{name}",
        mean_and_range(results, name),
        direction="higher",
        threshold=GOOD,
        null=mean_and_range(results, f"untrained_{name}").value,
        good="A Gaussian motion is identified from pixels (limits: range over seeds; null: untrained).",
        bad="A Gaussian motion is not identified that well at every seed (limits: range over seeds; null: untrained).",
    )


def _gap_verdict(arm: str, name: str, gap: Estimate) -> Verdict:
    title = ARMS[arm].title
    return Verdict.judge(
        f"{arm.replace('-', '_')}_behind_{name}",
        gap,
        direction="higher",
        threshold=LOWER,
        null=0.0,
        good=f"{title}: less is identified than from a Gaussian motion of the same rate, between any two seeds.",
        bad=f"{title}: it is not shown that less is identified than from a Gaussian motion of the same rate.",
    )


def _probe_figure(groups: Groups) -> Heatmap:
    matrix = []
    for name in PROBES:
        matrix.append([float(np.maximum(-1, mean_and_range(groups[arm], name).value)) for arm in ARMS])
    return Heatmap(
        title="R², mean over seeds",
        matrix=matrix,
        x=[arm.title.replace(" ", "\n", 1) for arm in ARMS.values()],  # narrow columns
        y=list(PROBES.values()),
        note="Rows: target, where the probe is fitted → where it is scored. Values below −1 are shown as −1.",
    )


def _degree_figure(groups: Groups) -> Curves:
    places = list(range(1, len(SHARES) + 1))
    series = []
    for name, arm in ARMS.items():
        series.append(curve(arm.title, places, [mean_and_range(groups[name], share) for share in SHARES]))
    return Curves(
        title="The latents' variance over Gaussian poses",
        x_label="Hermite degree",
        y_label="share of variance",
        series=series,
        note=f"{places[-1]}: all higher degrees together. Bands: range over seeds.",
    )


def _table(results: Sequence[Result]) -> Table:
    places = {"motion": lambda result: ARMS[result.at["arm"]].title, "seed": "seed"}
    measured = {
        "correlation of a pair": _three_digits("correlation"),
        **{title: name for name, title in PROBES.items()},
        f"untrained, {PROBES[SHOWN[1]]}": f"untrained_{SHOWN[1]}",
        **{name.replace("_", " "): _three_digits(name) for name in SHARES},
    }
    title = "R² with 95% intervals: fitted on → scored on; shares of variance by degree"
    return run_table(title, results, places, measured)


def _three_digits(name: str) -> Callable[[Result], str]:
    return lambda result: f"{result.value(name):.3f}"


EXPERIMENT = Experiment(
    "reacher-exploration", "Reacher from pixels: Gaussian or goal-directed exploration", CLAIM, trials, conclude
)
