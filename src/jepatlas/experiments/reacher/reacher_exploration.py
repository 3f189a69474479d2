"""Reacher from pixels: joint angles that move by an isotropic Gaussian law, against an arm that reaches for targets.

A policy's consecutive frames differ in two ways from those of the Gaussian law at ρ = .9: by their distribution, and by
their rate, for they are far more alike (ρ about .995), which is hard to learn from whatever the law. So each motion is
learned from at both rates: the Gaussian law with either ρ, the others with frames that are next to each other or
several steps apart. The claim is about the distribution: it holds where the Gaussian law is identified at ρ = .9, and
both goal-directed motions are less than the Gaussian law of the same rate, on their own held-out episodes as well as on
Gaussian poses; so a probe that leaves its distribution is no reason, either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import mean_and_range, select
from jepatlas.experiments.reacher.reacher_agents import Motion, reacher_recipe
from jepatlas.experiments.reacher.reacher_exploration_tables import SHOWN, degree_figure, probe_figure, probe_table
from jepatlas.experiments.reacher.reacher_runs import probed
from jepatlas.worlds import OrnsteinUhlenbeckMotion, SACMotion, ScriptedMotion

__all__ = ["APART", "EXPERIMENT", "gaussian_trial"]

APART = 5
"""Steps between two frames after which the angles of the scripted arm correlate by about .9."""
GOOD, LOWER = 0.93, 0.1
SEEDS = {"tiny": 1, "small": 3, "paper": 5}


@dataclass(frozen=True)
class Arm:
    title: str
    motion: Motion
    stride: int = 1
    length: int | None = None
    rival: str = ""  # the Gaussian arm of the same rate


GAUSSIAN = Arm("Gaussian ρ .9", OrnsteinUhlenbeckMotion(rho=0.9))
ARMS = {
    "gaussian": GAUSSIAN,
    "gaussian-slow": Arm("Gaussian ρ .995", OrnsteinUhlenbeckMotion(rho=0.995), length=16),  # many poses all the same
    "scripted": Arm("scripted", ScriptedMotion(), rival="gaussian-slow"),
    "scripted-apart": Arm(f"scripted {APART} apart", ScriptedMotion(), APART, rival="gaussian"),
    "sac": Arm("SAC", SACMotion(), rival="gaussian-slow"),
    "sac-apart": Arm(f"SAC {APART} apart", SACMotion(), APART, rival="gaussian"),
}
TINY = ("gaussian", "scripted-apart", "sac")
TITLES = {name: arm.title for name, arm in ARMS.items()}
DIRECTED = [name for name, arm in ARMS.items() if arm.rival]

CLAIM = Claim(
    statement="From pixels LeJEPA identifies the joint angles of an arm that explores by an isotropic Gaussian law, "
    "but not of one that a policy drives to goals.",
    source="When Does LeJEPA Learn a World Model?, Reacher",
    measured="R² .95 at ρ = .9; at most .50 on trajectories of SAC, by probes that were fitted on trajectories and "
    "scored on Gaussian poses",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    arms = TINY if scale == "tiny" else ARMS
    return [_trial(scale, s, name) for s in range(seed, seed + SEEDS[scale]) for name in arms]


def _trial(scale: Scale, seed: int, name: str) -> Trial:
    """The policy is trained once, whatever the seed, and kept: it is part of the world here, not of the learner."""
    arm = ARMS[name]
    tiny = scale == "tiny" and isinstance(arm.motion, SACMotion)
    motion = SACMotion(training_steps=40, width=8) if tiny else arm.motion
    return probed(scale, reacher_recipe(scale, seed, motion, length=arm.length, stride=arm.stride), arm=name)


def gaussian_trial(scale: Scale, seed: int) -> Trial:
    return _trial(scale, seed, "gaussian")


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """The Gaussian law counts by its mean over seeds; a motion is lower if every run of it is."""
    del scale
    groups = {name: select(results, arm=name) for name in ARMS}
    good = [mean_and_range(groups["gaussian"], name).value >= GOOD for name in SHOWN]
    gaps = {(arm, name): _gap(groups[ARMS[arm].rival], groups[arm], name) for arm in DIRECTED for name in SHOWN}
    lower = [gap.low >= LOWER for gap in gaps.values()]

    def told(name: str) -> str:
        return ", ".join(f"{title}: {mean_and_range(groups[arm], name).value:z.3f}" for arm, title in TITLES.items())

    return Finding(
        "holds" if all(good + lower) else "holds in part" if any(good + lower) else "does not hold",
        f"Mean R² of the angles on held-out episodes of the motion itself: {told(SHOWN[0])}; on Gaussian poses: "
        f"{told(SHOWN[1])} (asked for: {GOOD} with the Gaussian law at ρ = .9, and {LOWER} less in every run of the "
        f"others than in any Gaussian one of the same rate: so it is in {sum(lower)} of {len(lower)} cases). Pairs "
        f"correlate by {told('correlation')}. Fitted on trajectories and scored on Gaussian poses, as published: "
        f"{told('angles_own_gaussian')}. Sines and cosines, own episodes: {told('circle_own_own')}. Untrained, "
        f"Gaussian poses: {told(f'untrained_{SHOWN[1]}')}. Linear share of the latents' variance over Gaussian poses: "
        f"{told('degree_1')}.",
        short="own R² " + ", ".join(f"{a} {mean_and_range(runs, SHOWN[0]).value:z.2f}" for a, runs in groups.items()),
        verdicts=(*(_good(groups["gaussian"], n) for n in SHOWN), *(_lower(*case, gap) for case, gap in gaps.items())),
        figures=(probe_figure(groups, TITLES), degree_figure(groups, TITLES)),
        tables=(probe_table(results, TITLES),),
    )


def _gap(gaussian: Sequence[Result], directed: Sequence[Result], name: str) -> Estimate:
    """How much lower it is than the Gaussian: between the means, and from any run to any."""
    one, other = mean_and_range(gaussian, name), mean_and_range(directed, name)
    return Estimate(one.value - other.value, one.low - other.high, one.high - other.low, other.n)


def _good(results: Sequence[Result], name: str) -> Verdict:
    return Verdict.judge(
        f"gaussian_{name}",
        mean_and_range(results, name),
        direction="higher",
        threshold=GOOD,
        null=mean_and_range(results, f"untrained_{name}").value,
        good="A Gaussian motion is identified from pixels (limits: the extremes over seeds; null: untrained).",
        bad="A Gaussian motion is not identified that well for every seed (limits: the extremes over seeds).",
    )


def _lower(arm: str, name: str, gap: Estimate) -> Verdict:
    return Verdict.judge(
        f"{arm.replace('-', '_')}_behind_{name}",
        gap,
        direction="higher",
        threshold=LOWER,
        null=0.0,
        good=f"{TITLES[arm]}: less is identified than from a Gaussian motion of the same rate, from any seed to any.",
        bad=f"{TITLES[arm]}: that less is identified than from a Gaussian motion of the same rate is not so from every "
        "seed to every other.",
    )


EXPERIMENT = Experiment(
    "reacher-exploration", "Reacher from pixels: Gaussian or goal-directed exploration", CLAIM, trials, conclude
)
