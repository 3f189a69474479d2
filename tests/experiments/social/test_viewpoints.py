"""Agents that choose their cameras: the decision rule, and trials that differ only in the cameras."""

from pathlib import Path

import numpy as np
import pytest

from jepatlas.core.records import Estimate
from jepatlas.experiments import EXPERIMENTS, Result, Trial
from jepatlas.experiments.engine.rules import as_verdicts
from jepatlas.experiments.social.agent_pairs import NAMES
from jepatlas.experiments.social.viewpoint_trials import CHOSEN, run_viewpoints
from jepatlas.experiments.social.viewpoints import agents_by_cameras, judge

WAYS = (("fixed", "one"), ("random", "one"), ("random", "own"), ("curious", "one"), ("curious", "own"))
USUAL = {"dsc": 0.8, "p_r2": 0.05, "directions": 4.0, "beyond": 0.1} | {f"r2_{name}": 0.5 for name in NAMES}


def result(at: dict[str, str | int | float], numbers: dict[str, float], **record: object) -> Result:
    found = as_verdicts({name: Estimate(value, value, value, 9) for name, value in numbers.items()}, "")
    return Result(Trial(at, run_viewpoints, {}), Path("agent"), "finished", {"verdicts": found, **record})


def pairs(apart: float, **changed: dict[str, float]) -> list[Result]:
    """Five seeds of every policy and cameras; R² varies with the seed, and by `apart` more for curious agents."""
    made = []
    for policy, cameras in WAYS:
        for seed in range(5):
            r2 = 0.8 + 0.01 * seed + (apart * (seed - 2) if policy == "curious" else 0.0)
            numbers = {"r2": r2, **USUAL}
            for name, change in changed.get(f"{policy}_{cameras}", {}).items():
                numbers[name] += change + 1e-3 * (seed % 2)
            made.append(result({"policy": policy, "cameras": cameras, "seed": seed}, numbers))
    return made


@pytest.mark.parametrize(
    ("apart", "one", "own", "outcome"),
    [
        (0.001, {}, {}, "holds"),
        (0.001, {"r2": 0.1}, {"r2": -0.03}, "holds"),  # significantly worse, but within the margin
        (0.001, {}, {"r2": -0.2}, "holds in part"),
        (0.001, {"r2": -0.1}, {"r2": -0.2}, "does not hold"),
        (0.001, {"directions": -2.0}, {"directions": -2.0}, "does not hold"),  # collapsed latents count as failures
        (0.001, {"p_r2": 0.2}, {"p_r2": 0.2}, "does not hold"),  # not better than chance
        (0.1, {}, {}, "undecided"),  # seeds disagree
        (
            0.001,
            {"r2": -0.049},
            {"r2": -0.049},
            "undecided",
        ),  # significantly worse, and the margin is within the interval
        (0.1, {"r2": -0.4}, {}, "does not hold"),
    ],
)
def test_the_verdict_follows_paired_differences_over_seeds(
    apart: float, one: dict[str, float], own: dict[str, float], outcome: str
):
    finding = judge(pairs(apart, curious_one=one, curious_own=own), [])
    assert finding.outcome == outcome and 0 < len(finding.short) <= 66
    assert [row[0] for row in finding.tables[0].rows[2::5]] == [
        "one camera",
        "random cameras, encoded from one camera",
        "random cameras, encoded from its own choice",
        "chosen cameras, encoded from one camera",
        "chosen cameras, encoded from its own choice",
    ]
    assert finding.figures[0].names == [row[0] for row in finding.tables[0].rows[2::5]]
    assert finding.figures[0].series[0].y[1] == pytest.approx(0.82)


def test_chosen_cameras_are_shown_as_means_over_seeds():
    choices = [
        result(
            {"policy": "curious", "view": view, "seed": seed},
            {"advantage": 0.5 + 0.1 * seed, "looked": 9.0},
            views=["camera000", "camera040"],
            cameras=[[0.5, 0.5], [0.2 + 0.1 * seed, 0.8 - 0.1 * seed]],
        )
        for view in range(2)
        for seed in range(3)
    ]
    finding = judge(pairs(0.001), choices)
    (first, _), (second, _) = (panel.series for panel in finding.figures[1].panels)
    assert first.name == "000°" and first.y == pytest.approx([0.5, 0.3]) and first.high[1] == 0.4
    assert second.y == first.y and finding.tables[1].rows[0][4] == "000° 20%, 040° 80%"
    advantage = finding.verdicts[-1]
    assert advantage.name == "advantage" and advantage.passed and advantage.value == pytest.approx(0.6)


def test_fixed_agents_are_shared_with_other_experiments_and_others_differ_only_in_cameras():
    trials = EXPERIMENTS["social-viewpoints"].trials("small", 0)
    fixed = {(t.at["view"], t.at["seed"]): t for t in trials if "policy" not in t.at}
    shared = {t.job.name for t in EXPERIMENTS["social-views"].trials("small", 0) if t.at["scene"] == "rendered"}
    assert shared <= {t.job.name for t in fixed.values()} and len(trials) == 3 * len(fixed)
    for trial in (trial for trial in trials if "policy" in trial.at):
        alone = fixed[trial.at["view"], trial.at["seed"]].settings
        own = trial.settings["recipe"]["agent"]
        assert {**own, "images": None} == {**alone["recipe"], "images": None}
        assert {**own["images"]["world"], "cameras": 2} == alone["world"]
    rings = [set(t.settings["recipe"]["views"]) for t in trials if "policy" in t.at and t.at["seed"] == 0]
    assert len(rings[0]) == 4 and not rings[0] & rings[1] and rings[:2] == rings[2:]


def test_agents_that_choose_cameras_are_compared_with_one_and_with_their_own_cameras():
    at: dict[str, str | int | float] = {"view": 0, "seed": 0}
    chosen = {CHOSEN: {"verdicts": as_verdicts({"directions": Estimate(3.0, 3.0, 3.0, 1)}, "")}}
    lost = Result(Trial({**at, "policy": "random"}, run_viewpoints, {}), Path("lost"), "crashed", {"error": "no room"})
    sides = agents_by_cameras([result(at, USUAL), result({**at, "policy": "curious"}, USUAL, **chosen), lost])
    assert [(s.at["policy"], s.at["cameras"], s.folder.name, s.status) for s in sides] == [
        ("fixed", "one", "agent", "finished"),
        ("curious", "one", "agent", "finished"),
        ("curious", "own", CHOSEN, "finished"),
        ("random", "one", "lost", "crashed"),
        ("random", "own", CHOSEN, "crashed"),
    ]
    assert sides[1].value("directions") == 4.0 and sides[2].value("directions") == 3.0
    assert np.isnan(sides[4].value("directions"))
