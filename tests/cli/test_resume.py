"""`jepatlas train --resume RUN`, as messages recommend it, does what the verb does that began the run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli.calls import Captured, answer, refused
from training.small import call, recipe
from workflows.energy import tiny
from workflows.plan import small
from workflows.vision.tiny_scenes import agent, write_scenes

from jepatlas.recipes import AnyRecipe, CameraChoiceRecipe, MutualRecipe, TaughtRecipe, recipe_text
from jepatlas.workflows.runs import start_run
from jepatlas.workflows.vision import start_taught, teacher_arrays


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of every kind, before anything was done at its end."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        table = write_scenes(folder / "scenes")
        left, right = (agent(table, view, seed=seed, steps=3) for seed, view in enumerate(("left", "right")))
        runs: dict[str, AnyRecipe] = {
            "agent": recipe(steps=2),
            "energy": tiny.recipe(steps=2),
            "world-model": small.recipe(),
            "vision": left,
            "mutual": MutualRecipe(left, right, pairs=8),
        }
        for name, one in runs.items():
            start_run(one, folder / name)
        start_taught(TaughtRecipe(student=right, pairs=8), teacher_arrays(folder / "vision"), folder / "taught")
        looking = CameraChoiceRecipe(left, ("left", "right"), rounds=1)
        (folder / "looking").mkdir()
        (folder / "looking" / "recipe.yaml").write_text(recipe_text(looking))
    return folder


@pytest.fixture(autouse=True)
def elsewhere(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))


KINDS = {
    "agent": ("train", "Next: jepatlas certify agent"),
    "energy": ("energy fit", "See it with: jepatlas report energy"),
    "world-model": ("train world-model", "Next: jepatlas plan world-model"),
    "vision": ("train vision", "Next: jepatlas encode vision"),
    "taught": ("migrate model", "student: "),
    "mutual": ("migrate mutual", "Next: jepatlas encode mutual/second"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_train_resumes_with_the_command_that_started_the_run(kind: str, place: Path, capsys: Captured):
    verb, said = KINDS[kind]
    shutil.copytree(place / kind, kind)
    assert call("train", "--resume", kind) == 0
    assert said in capsys.readouterr().out
    left = {str(path) for path in Path(kind).rglob("*") if path.is_file()}
    found = answer(capsys, "train", "--resume", kind)
    shutil.rmtree(kind)
    shutil.copytree(place / kind, kind)
    assert answer(capsys, *verb.split(), "--resume", kind) == found
    assert {str(path) for path in Path(kind).rglob("*") if path.is_file()} == left


def test_every_training_command_resumes_the_runs_of_others(place: Path, capsys: Captured):
    shutil.copytree(place / "vision", "vision")
    assert call("train", "world-model", "--resume", "vision") == 0
    assert "Next: jepatlas encode vision" in capsys.readouterr().out


def test_a_run_of_no_known_command_is_rejected(place: Path, capsys: Captured):
    said = refused(capsys, "train", "--resume", place / "looking")
    assert "'looking'" in said and "jepatlas reproduce" in said


def test_other_options_are_rejected_with_the_command_that_takes_them(place: Path, capsys: Captured):
    said = refused(capsys, "train", "--resume", place / "vision", "--steps", "9")
    assert "leave out --steps" in said and "jepatlas train vision --recipe" in said
