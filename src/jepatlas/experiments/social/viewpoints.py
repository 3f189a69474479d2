"""Agents that choose where to look: do they still align with each other, and as well as agents with one camera?

Each agent has four cameras of a ring, none of them the other's. On the same number of images it sees them all from one
camera, from cameras at random, or from those where its own prediction is worst. Agents with one camera are those of
`social-views`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import mean_interval
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Outcome, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, grouped, mean_and_interval, select
from jepatlas.experiments.social.agents import PLANS, agents
from jepatlas.experiments.social.collapse import collapsed_at, named
from jepatlas.experiments.social.measures import EFFORT, measured
from jepatlas.experiments.social.meetings import meetings
from jepatlas.experiments.social.rules import gaps
from jepatlas.experiments.social.scenes import WORLDS
from jepatlas.experiments.social.viewpoints_runs import CHOSEN, run
from jepatlas.experiments.social.viewpoints_shown import agents_table, cameras_figure, pairs_table, r2_figure, sentence
from jepatlas.recipes import LookingRecipe, VisionRecipe
from jepatlas.recipes.image_sources import ObjectImages

__all__ = ["EXPERIMENT", "judge", "ways_of"]

MARGIN, CHANCE = 0.05, 0.05
COMPARED = 4  # differences in R²: through one camera and as they look, from one camera and from random ones
SEEDS: dict[Scale, int] = {"tiny": 1, "small": 3, "paper": 5}
ROUNDS: dict[Scale, int] = {"tiny": 2, "small": 6, "paper": 10}
"""A round is about two epochs; to look at all states from four cameras costs nearly as much as to learn for one."""
RINGS: dict[Scale, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "tiny": ((0, 320), (160, 120)),
    "small": ((0, 40, 280, 320), (160, 120, 240, 200)),
    "paper": ((0, 40, 280, 320), (160, 120, 240, 200)),
}
"""Directions of each agent's cameras, that of its one camera first; one ring mirrors the other."""

CLAIM = Claim(
    statement="Agents that choose their own viewpoints align as well as agents with fixed cameras.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, which names it as an "
    "open question",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    fixed = agents(scale, "rendered", range(seed, seed + SEEDS[scale]))
    return fixed + [_looking(trial, scale, policy) for policy in ("random", "curious") for trial in fixed]


def _looking(fixed: Trial, scale: Scale, policy: str) -> Trial:
    """The same agent, with the same first weights, where it has several cameras."""
    ring = RINGS[scale][int(fixed.at["view"])]
    world = replace(WORLDS[scale], cameras=4 if scale == "tiny" else 9)  # 160° apart: the first two are the usual ones
    agent = replace(from_plain(VisionRecipe, fixed.settings["recipe"]), images=ObjectImages(world))
    recipe = {
        "agent": to_plain(agent),
        "views": [f"camera{angle:03d}" for angle in ring],
        "policy": policy,
        "rounds": ROUNDS[scale],
    }
    settings = {"recipe": to_plain(from_plain(LookingRecipe, recipe)), "most": PLANS[scale].most}
    return Trial({**fixed.at, "policy": policy}, run, settings)


def ways_of(results: Sequence[Result]) -> list[Result]:
    """All agents by how they learned (`policy`) and how they are looked through (`look`)."""
    made = []
    for result in results:
        policy = result.at.get("policy", "fixed")
        chosen = replace(result, folder=result.folder / CHOSEN, record=result.record.get(CHOSEN, {}))
        for look, side in (("one", result), *([] if policy == "fixed" else [("own", chosen)])):
            place = {**result.at, "policy": policy, "look": look}
            made.append(replace(side, trial=Trial(place, result.trial.run, {})))
    return made


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    sides = ways_of(results)
    pairs = [
        pair
        for found in grouped(sides, "policy", "look").values()
        for pair in meetings(found, lambda met: measured(met, EFFORT[scale]))
    ]
    return judge(pairs, [result for result in results if "policy" in result.at])


def judge(pairs: Sequence[Result], lookers: Sequence[Result]) -> Finding:
    """By paired differences over seeds: R² of curious agents may be below that of agents with one camera by MARGIN at
    most, seen through one camera and as they choose, and not by varying along fewer directions."""
    as_well = {look: _as_well(pairs, look) for look in ("one", "own")}
    over = {look: gap(pairs, ("curious", look), ("random", look), "r2") for look in as_well}
    real = mean_and_interval([one for one in lookers if one.at["policy"] == "curious"], "advantage")
    return Finding(
        _outcome(list(as_well.values())),
        f"{sentence(pairs)} Curious agents against those with one camera, by paired differences of R² over seeds: "
        f"{_gaps(pairs, 'fixed')}; against random cameras {_gaps(pairs, 'random')} (at 95% for all four at "
        f"once). As well means surely no more than {MARGIN} below, better than chance (p ≤ {CHANCE}) at every seed, "
        "and not surely along fewer directions. With "
        f"other masks, the loss from chosen cameras is {cell(real, 2)} standard deviations above the mean of all."
        f"{named(_by_policy(pairs))}",
        short=f"R² of curious − one camera {gap(pairs, ('curious', 'one'), ('fixed', 'one'), 'r2').value:+.3f}, "
        f"as they look {gap(pairs, ('curious', 'own'), ('fixed', 'one'), 'r2').value:+.3f}",
        verdicts=(
            *(
                _verdict(
                    f"over_fixed_{look}",
                    gap(pairs, ("curious", look), ("fixed", "one"), "r2"),
                    -MARGIN,
                    "Agents that choose align as well as those with one camera.",
                )
                for look in as_well
            ),
            *(
                _verdict(f"over_random_{look}", found, 0.0, "Choosing aligns better than chance cameras.")
                for look, found in over.items()
            ),
            _verdict("advantage", real, 0.0, "What is chosen is harder for the agent by other masks, too."),
        ),
        figures=(r2_figure(pairs), *cameras_figure(lookers)),
        tables=(pairs_table(pairs), agents_table(lookers)),
    )


def _by_policy(pairs: Sequence[Result]) -> dict[str, list[Result]]:
    return {policy: found for (policy,), found in grouped(pairs, "policy").items()}


def _as_well(pairs: Sequence[Result], look: str) -> bool | None:
    """None where seeds do not tell, or where agents of either kind collapsed."""
    ours, theirs = ("curious", look), ("fixed", "one")
    if collapsed_at([pair for policy, seen in (ours, theirs) for pair in select(pairs, policy=policy, look=seen)]):
        return None
    found, fewer = gap(pairs, ours, theirs, "r2"), gap(pairs, ours, theirs, "directions", among=1)
    chance = [pair.value("p_r2") for pair in select(pairs, policy="curious", look=look) if pair.status == "finished"]
    if found.low >= -MARGIN:
        return max(chance) <= CHANCE and not fewer.high < 0
    return False if found.high < -MARGIN else None


def _outcome(found: Sequence[bool | None]) -> Outcome:
    if all(found):
        return "holds"
    return "holds in part" if any(found) else "does not hold" if False in found else "undecided"


def gap(
    pairs: Sequence[Result], ours: tuple[str, str], theirs: tuple[str, str], name: str, among: int = COMPARED
) -> Estimate:
    """How far a number is above that of others, at the same seeds."""
    one, other = (select(pairs, policy=policy, look=look) for policy, look in (ours, theirs))
    return mean_interval(gaps(one, other, name), comparisons=among)


def _gaps(pairs: Sequence[Result], policy: str) -> str:
    first, second = (
        gap(pairs, ("curious", look), (policy, "one" if policy == "fixed" else look), "r2") for look in ("one", "own")
    )
    return f"{cell(first)} through one camera and {cell(second)} as they look"


def _verdict(name: str, found: Estimate, threshold: float, good: str) -> Verdict:
    return Verdict.judge(
        name, found, direction="higher", threshold=threshold, good=good, bad=f"Not surely: {good[0].lower()}{good[1:]}"
    )


EXPERIMENT = Experiment("social-viewpoints", "Agents that choose where to look", CLAIM, trials, conclude)
