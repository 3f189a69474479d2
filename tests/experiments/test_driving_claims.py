"""Claims on driving to goals: outcomes from given success rates, and planning with exact energies."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from jepatlas.core.stats import paired_difference, success_rate
from jepatlas.experiments import EXPERIMENTS, Finding, Result, Trial
from jepatlas.experiments.engine.rules import as_verdicts
from jepatlas.experiments.planning.exact_planning import (
    exact_agent,
    exact_energy,
    exact_way_back,
    symmetrised,
    through_doors,
    with_states,
)
from jepatlas.experiments.planning.one_way_doors import TESTED
from jepatlas.experiments.planning.planning_outcomes import by_seed, difference, points, share, success_record
from jepatlas.planning import MPPIConfig
from jepatlas.workflows.plan import DrivingConfig, Tasks, drive
from jepatlas.worlds import Rooms

TASKS = 40
Shares = dict[str, float]


def done(part: float) -> np.ndarray:
    """The first tasks succeed, so that outcomes of different shares are nested."""
    return np.arange(TASKS) < round(part * TASKS)


def concluded(name: str, shares: Callable[[Trial], Shares | None]) -> Finding:
    """The finding of a small study with the given success rates of each trial; None means that it crashed."""
    results = []
    for trial in EXPERIMENTS[name].trials("small", 0):
        given = shares(trial)
        crashed = given is None
        record = (
            {"error": "no room left"}
            if crashed
            else success_record({agent: done(part) for agent, part in given.items()})
        )
        results.append(Result(trial, Path(), "crashed" if crashed else "finished", record))
    return EXPERIMENTS[name].conclude(results, "small")


@pytest.mark.parametrize(
    ("rooms", "maze", "one_way", "outcome"),
    [
        (0.8, 0.8, 0.5, "holds"),  # the criterion does not include one-way doors
        (0.8, 0.5, 0.5, "holds in part"),
        (0.5, 0.52, 0.8, "holds in part"),
        (0.5, 0.5, 0.52, "does not hold"),  # a difference of one task is not significant
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
    assert table["maze", "random actions"][-1] == 3 * TASKS, "the tasks that all methods share count once"
    assert finding.tables[1].rows[2][1] == points(paired_difference(np.tile(done(rooms), 3), np.tile(done(0.5), 3)))


def test_a_method_that_crashed_everywhere_stays_in_the_table():
    finding = concluded(
        "value-guided", lambda trial: None if trial.at["method"] == "LeJEPA" else {"agent": 0.5, "chance": 0.1}
    )
    assert [row[3] for row in finding.tables[0].rows if row[1] == "LeJEPA"] == ["–"] * 3
    ours = next(verdict for verdict in finding.verdicts if verdict.name == "ie_jepa_small_rooms")
    assert np.isnan(ours.value) and ours.n == 0


@pytest.mark.parametrize(
    ("rooms", "others", "outcome"),
    [
        (1.0, 0.3, "holds"),
        (0.9, 0.3, "holds in part"),  # better, but not enough goals
        (1.0, 1.0, "does not hold"),  # distance is as good
    ],
)
def test_least_action(rooms: float, others: float, outcome: str):
    def shares(trial: Trial) -> Shares:
        del trial
        return {"least action": rooms, "QRL": 0.8, "distance": others, "chance": 0.1}

    finding = concluded("least-action", shares)
    assert finding.outcome == outcome
    assert len(finding.tables[0].rows) == 3 * 4
    (verdict,) = finding.verdicts
    assert verdict.n == 9 * TASKS and verdict.value == rooms, "the tasks of all worlds and seeds count"


@pytest.mark.parametrize(
    ("symmetric", "iqe", "both_ways", "outcome"),
    [
        (0.3, 0.9, 0.4, "holds"),
        (0.3, 0.9, 0.88, "undecided"),  # the symmetrised quasimetric is as good, within noise
        (0.3, 0.6, 0.9, "does not hold"),  # it is better
        (1.0, 0.9, 0.4, "undecided"),  # the exact symmetric energy succeeds: no test
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
    assert "symmetrised iqe" in finding.criteria[1].name, "the best symmetric energy is compared"


@pytest.mark.parametrize(
    ("ported", "shuffled", "outcome"),
    [
        (0.9, 0.1, "holds"),
        (0.7, 0.1, "holds in part"),  # porting loses too much
        (0.88, 0.88, "does not hold"),  # a shuffled map is as good
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


def test_shares_and_differences_of_no_results_are_empty():
    assert share([]).n == 0 and points(difference([], [])) == by_seed([]) == "–"


WORLD = Rooms(one_way=True)
X, Y = (WORLD.states(12, np.random.default_rng(seed)) for seed in (0, 1))


def distances_by_pair() -> tuple[np.ndarray, np.ndarray]:
    """Distances from X to Y and back, pair by pair."""
    there = [WORLD.distance_to(y, x[None])[0] for x, y in zip(X, Y, strict=True)]
    back = [WORLD.distance_to(x, y[None])[0] for x, y in zip(X, Y, strict=True)]
    return np.array(there), np.array(back)


def test_exact_and_symmetrised_energies_match_the_distances_of_the_world():
    there, back = distances_by_pair()
    x, y = torch.from_numpy(X), torch.from_numpy(Y)
    energy = exact_energy(WORLD)
    assert np.allclose(energy(x, y), there) and np.allclose(energy(x[:, None], y[:, None])[:, 0], there)
    both = symmetrised(energy, exact_way_back(WORLD))
    assert np.allclose(both(x, y), (there + back) / 2) and np.allclose(both(y, x), (there + back) / 2)
    assert np.allclose(symmetrised(energy)(x, y), (there + back) / 2), "with and without the reverse energy"
    assert not np.allclose(there, back)


def test_rollouts_of_the_exact_agent_match_the_steps_of_the_world():
    rng = np.random.default_rng(2)
    actions = rng.uniform(-1, 1, (12, 4, 2))
    imagined = exact_agent(WORLD, exact_energy(WORLD)).dynamics.rollout(torch.from_numpy(X), torch.from_numpy(actions))
    states = X
    for t in range(4):
        states = WORLD.step(states, actions[:, t])
        assert np.allclose(imagined[:, t], states)


def test_tasks_lead_through_a_door():
    tasks = through_doors(WORLD, 20, seed=3)
    assert len(tasks.starts) == 20
    assert ((tasks.starts[:, 0] < 0) != (tasks.goals[:, 0] < 0)).all()


@pytest.mark.parametrize("goal", [[0.5, -0.6], [-0.5, -0.6]])
def test_the_exact_energy_leads_through_the_right_door(goal: list[float]):
    start = [[-0.6, -0.2]] if goal[0] > 0 else [[0.6, 0.4]]
    tasks = Tasks(np.array(start), np.array([goal]))
    config = DrivingConfig(MPPIConfig(horizon=6, samples=24, iterations=2), steps=40)
    driven = drive(with_states(WORLD), exact_agent(WORLD, exact_energy(WORLD)), tasks, config)
    assert driven.reached.all()
    assert driven.steps[0] <= WORLD.distance_to(tasks.goals[0], tasks.starts)[0] * 1.5 + 2
