"""Experience for learning an energy, and its split into training and held-out episodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from workflows.energy.tiny import GRID, step_arrays, write_steps

from jepatlas.core.arrays import write_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.records import Experience
from jepatlas.recipes import EnergyRecipe, ExperienceSplit, StepFile, WalkConfig, apply_mixing, gather_experience
from jepatlas.worlds import Coupling, InvertibleMLP


def of_file(path: Path, seed: int = 0) -> ExperienceSplit:
    return gather_experience(EnergyRecipe(seed, StepFile(str(path))))


def steps_of(experience: Experience) -> set[tuple[float, ...]]:
    return {tuple(row) for row in np.c_[experience.x, experience.x_next, experience.cost, experience.episode].round(6)}


def test_split_holds_out_whole_episodes_and_keeps_all_steps():
    data = gather_experience(EnergyRecipe(0, GRID, WalkConfig(episodes=40, length=6)))
    assert len(np.unique(data.held.episode)) == 4 and not set(data.held.episode) & set(data.learnt.episode)
    walk = GRID.walk(40, 6, seed=0)
    assert steps_of(data.learnt) | steps_of(data.held) == steps_of(walk)
    other = gather_experience(EnergyRecipe(1, GRID, WalkConfig(episodes=40, length=6)))
    assert set(other.held.episode) != set(data.held.episode)


def test_end_of_a_single_episode_is_held_out(tmp_path: Path):
    x = np.arange(21.0)
    write_arrays(tmp_path / "s.npz", {"x": x, "episode": np.zeros(21, int), "cost": np.ones(21)})
    data = of_file(tmp_path / "s.npz")
    assert data.learnt.x[:, 0].tolist() == x[:18].tolist() and data.held.x[:, 0].tolist() == [18, 19]


@pytest.mark.parametrize("kind", ["npz", "safetensors", "csv", "parquet"])
def test_all_file_formats_give_the_same_steps(kind: str, tmp_path: Path):
    data = of_file(write_steps(tmp_path / f"s.{kind}"))
    arrays = step_arrays()
    expected = Experience(arrays["x"], arrays["x_next"], arrays["cost"], arrays["episode"])
    assert steps_of(data.learnt) | steps_of(data.held) == steps_of(expected) and data.width == 2


def test_consecutive_states_of_an_episode_form_steps(tmp_path: Path):
    walk = step_arrays()
    last = np.append(np.flatnonzero(np.diff(walk["episode"])), len(walk["cost"]) - 1)
    after = np.arange(1, len(walk["cost"]) + 1)[last]
    states = {
        "x": np.insert(walk["x"], after, walk["x_next"][last], axis=0),
        "episode": np.insert(walk["episode"], after, walk["episode"][last]),
        "cost": np.insert(walk["cost"], after, 99.0),  # the cost of a final state is unused
    }
    write_arrays(tmp_path / "s.npz", states)
    data = of_file(tmp_path / "s.npz")
    both = steps_of(data.learnt) | steps_of(data.held)
    assert both == steps_of(Experience(walk["x"], walk["x_next"], walk["cost"], walk["episode"]))


def test_typical_cost_ignores_free_steps():
    learnt = Experience(np.zeros((3, 1)), np.ones((3, 1)), np.array([0.0, 2.0, 4.0]), np.arange(3))
    assert ExperienceSplit(learnt, learnt).unit == 3.0


def test_mixings_change_only_the_observations():
    plain, seen = (gather_experience(EnergyRecipe(0, GRID, WalkConfig(20, 5), mixing)) for mixing in (None, Coupling()))
    np.testing.assert_array_equal(seen.learnt.x, apply_mixing(Coupling(), plain.learnt.x))
    np.testing.assert_array_equal(seen.held.x_next, apply_mixing(Coupling(), plain.held.x_next))
    np.testing.assert_array_equal(seen.learnt.cost, plain.learnt.cost)
    assert gather_experience(EnergyRecipe(0, GRID, WalkConfig(20, 5), InvertibleMLP())).width == 2


WALK = step_arrays()
BROKEN = WALK["x"].copy()
BROKEN[3, 1] = np.nan
BAD = {
    "negative, but 300": {"cost": -WALK["cost"]},
    "'cost' has 300 NaN": {"cost": np.full(300, np.nan)},
    "row 3": {"x": BROKEN},
    "cost": {"cost": np.zeros(300)},
    "row 0)": {"x_next": WALK["x_next"] + 1},
    "row 20": {"episode": np.arange(300) // 10 % 2},
    "30 held-out step(s), 0": {"cost": (WALK["episode"] == 0).astype(float)},
    "270 training step(s), 0": {"cost": (WALK["episode"] == 20).astype(float)},
    "x_next": {"x_next": WALK["x_next"][:, :1]},
}


@pytest.mark.parametrize("message", BAD)
def test_invalid_steps_are_rejected(message: str, tmp_path: Path):
    path = write_steps(tmp_path / "s.npz", **BAD[message])
    seed = next(seed for seed in range(99) if "training" not in message or 20 in held_episodes(seed))
    with pytest.raises(InputError) as refusal:
        of_file(path, seed)
    assert message in str(refusal.value) and str(path) in str(refusal.value)


def held_episodes(seed: int) -> set[int]:
    return set(gather_experience(EnergyRecipe(seed, GRID, WalkConfig(30, 10))).held.episode)


def test_gaps_between_numbered_states_are_rejected(tmp_path: Path):
    states = {
        "x": np.arange(6.0),
        "episode": np.zeros(6, int),
        "cost": np.ones(6),
        "step": np.array([0, 1, 2, 4, 5, 6]),
    }
    write_arrays(tmp_path / "s.npz", states)
    with pytest.raises(InputError, match=r"pisode 0 .*step 2 .*step 4"):
        of_file(tmp_path / "s.npz")


def test_too_few_steps_and_missing_files_are_rejected(tmp_path: Path):
    write_arrays(tmp_path / "s.npz", {"x": np.zeros(1), "x_next": np.ones(1), "cost": np.ones(1)})
    with pytest.raises(InputError, match=r"\b1 step.* 1 episode"):
        of_file(tmp_path / "s.npz")
    write_arrays(tmp_path / "s.npz", {"x": np.arange(9.0), "x_next": np.arange(9.0) + 1, "cost": np.ones(9)})
    with pytest.raises(InputError, match=r"\b1 held-out .*2"):
        of_file(tmp_path / "s.npz")
    write_arrays(tmp_path / "h.npz", {"h": np.zeros(3)})
    with pytest.raises(InputError, match=r"x_next.* h"):
        of_file(tmp_path / "h.npz")
    for act in (StepFile().read, StepFile().sealed):
        with pytest.raises(InputError, match=r"path"):
            act()
    with pytest.raises(InputError, match=r"none\.npz"):
        of_file(tmp_path / "none.npz")
