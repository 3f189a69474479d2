"""The driving experiments' verdicts follow their rules: outcomes of tasks are given, findings must come out."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jepatlas.core.stats import paired_difference, success_rate
from jepatlas.experiments import EXPERIMENTS, Finding, Result, Trial
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.experiments.planning.one_way_doors import TESTED
from jepatlas.experiments.planning.planning_outcomes import by_seed, difference, points, share, success_record

TASKS = 40
Shares = dict[str, float]


def done(part: float) -> np.ndarray:
    """The first of the tasks, so that whoever does more does all that the others do."""
    return np.arange(TASKS) < round(part * TASKS)


def concluded(name: str, shares: Callable[[Trial], Shares | None]) -> Finding:
    """The finding of a small study in which it is given who does which part of the tasks; none for a crash."""
    results = []
    for trial in EXPERIMENTS[name].trials("small", 0):
        given = shares(trial)
        crashed = given is None
        record = (
            {"error": "no room left"} if crashed else success_record({who: done(part) for who, part in given.items()})
        )
        results.append(Result(trial, Path(), "crashed" if crashed else "finished", record))
    return EXPERIMENTS[name].conclude(results, "small")


@pytest.mark.parametrize(
    ("rooms", "maze", "one_way", "outcome"),
    [
        (0.8, 0.8, 0.5, "holds"),  # the study has no one-way doors
        (0.8, 0.5, 0.5, "holds in part"),
        (0.5, 0.52, 0.8, "holds in part"),
        (0.5, 0.5, 0.52, "does not hold"),  # one task more is nothing
    ],
)
def test_value_guided(rooms: float, maze: float, one_way: float, outcome: str):
    parts = {"small rooms": rooms, "maze": maze, "one-way rooms": one_way}

    def shares(trial: Trial) -> Shares:
        part = parts[str(trial.at["world"])] if trial.at["method"] == "quasi value (Sep)" else 0.5
        return {"agent": part, "chance": 0.1}

    finding = concluded("value-guided", shares)
    assert finding.outcome == outcome
    table = {(row[0], row[1]): row for row in finding.tables[0].rows}
    assert table["maze", "quasi value (Sep)"][2] == "0.63" and table["one-way rooms", "LeJEPA"][2] == ""
    assert table["maze", "random actions"][-1] == 3 * TASKS, "the same tasks of all methods count once"
    assert finding.tables[1].rows[2][1] == points(paired_difference(np.tile(done(rooms), 3), np.tile(done(0.5), 3)))


def test_a_method_that_crashed_everywhere_stays_in_the_table():
    finding = concluded(
        "value-guided", lambda trial: None if trial.at["method"] == "LeJEPA" else {"agent": 0.5, "chance": 0.1}
    )
    assert [row[3] for row in finding.tables[0].rows if row[1] == "LeJEPA"] == ["–"] * 3
    ours = next(verdict for verdict in finding.verdicts if verdict.name == "ie_jepa_small_rooms")
    assert np.isnan(ours.value) and ours.n == 0


@pytest.mark.parametrize(
    ("symmetric", "iqe", "both_ways", "outcome"),
    [
        (0.3, 0.9, 0.4, "holds"),
        (0.3, 0.9, 0.88, "does not hold"),  # the quasimetric, symmetrised, does as well
        (1.0, 0.9, 0.4, "undecided"),  # the exact one does not fail, so nothing is tested
    ],
)
def test_one_way_doors(symmetric: float, iqe: float, both_ways: float, outcome: str):
    def shares(trial: Trial) -> Shares:
        if trial.at["energy"] == "exact":
            fails = symmetric if trial.at["world"] == TESTED else 1.0
            return {"directed": 1.0, "symmetric": fails, "chance": 0.0}
        return {"iqe": iqe, "symmetrised iqe": both_ways, "l2": 0.35}

    finding = concluded("one-way-doors", shares)
    assert finding.outcome == outcome
    assert "symmetrised iqe" in finding.criteria[1].name, "the best of the symmetric ones is what counts"


@pytest.mark.parametrize(
    ("ported", "shuffled", "outcome"),
    [
        (0.9, 0.1, "holds"),
        (0.7, 0.1, "holds in part"),  # more is lost
        (0.88, 0.88, "does not hold"),  # any map would do, so nothing is carried
    ],
)
def test_ported_planner(ported: float, shuffled: float, outcome: str):
    maps = {f"{kind}_{states}": ported for kind in ("ridge", "procrustes") for states in (50, 200, 1000)}
    given = {"own": 0.9, "shuffled": shuffled, "chance": 0.05, "home": 0.9} | maps
    assert concluded("ported-planner", lambda trial: given).outcome == outcome


def result(seed: int, **reached: np.ndarray) -> Result:
    trial = EXPERIMENTS["ported-planner"].trials("tiny", seed)[0]
    return Result(trial, Path(), "finished", success_record(reached))


def test_shares_and_differences_pool_the_tasks_of_all_seeds():
    first = [result(0, agent=done(0.5)), result(1, agent=done(0.75))]
    second = [result(1, agent=done(0.25)), result(2, agent=done(1.0))]
    assert share(first) == success_rate(np.concatenate([done(0.5), done(0.75)]))
    assert difference(first, second) == paired_difference(done(0.75), done(0.25)), "seed 1 alone is in both"
    assert by_seed(first) == "0.50, 0.75"
    verdicts = success_record({"agent": done(0.5)})["verdicts"]
    assert verdicts == as_verdicts({"agent_success": success_rate(done(0.5))}, "Share of tasks completed.")


def test_of_nothing_nothing_is_said():
    assert share([]).n == 0 and points(difference([], [])) == by_seed([]) == "–"
