"""`jepatlas migrate model` and `jepatlas migrate mutual`: from trained agents or recipes to agents in company."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from cli.calls import Captured, answer, refused
from training.small import call, tensors
from workflows.vision.tiny_scenes import agent, write_scenes

from jepatlas.core.files import read_json
from jepatlas.recipes import MutualRecipe, TaughtRecipe, VisionRecipe, load_recipe
from jepatlas.workflows.runs import start_run
from jepatlas.workflows.vision import load_agent


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two trained agents, of both views."""
    folder = tmp_path_factory.mktemp("agents")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        table = write_scenes(folder / "scenes")
        for seed, view in enumerate(("left", "right")):
            start_run(agent(table, view, seed=seed, steps=3), folder / view)
    return folder


@pytest.fixture(autouse=True)
def elsewhere(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))


def test_a_student_of_another_width_is_taught(place: Path, capsys: Captured):
    words = ["--to", "right", "--encoder.width", "24", "--steps", "4", "--out", "out", "--beside", place / "right"]
    found = answer(capsys, "migrate", "model", place / "left", *words)
    assert found["status"] == "finished" and found["agents"] == {"student": "out/student"}
    assert [verdict["name"] for verdict in found["verdicts"]] == ["directions"]
    latents = read_json(Path("out/records/latents-student.json"))  # on the page of the run, too
    assert latents["verdicts"] == found["verdicts"] and latents["title"] == "Latents of the student"
    (curves,) = read_json(Path("out/records/progress.json"))["figures"]
    assert [series["name"] for series in curves["panels"][0]["series"]] == ["student", "right"]
    recipe = load_recipe(Path("out"), TaughtRecipe)
    assert (recipe.student.view, recipe.student.encoder.width, recipe.seed, recipe.pairs) == ("right", 24, 1, 8)
    told = np.load("out/teacher.npz")
    teacher = load_agent(place / "left")
    assert sorted(told.files) == ["h", "ids", "labels"] and len(told["h"]) == len(teacher.seen.learnt)
    np.testing.assert_allclose(told["h"], teacher.latents(teacher.seen.learnt), rtol=1e-5, atol=1e-5)
    # the student is a run like any other, with the weights that were trained
    student = load_agent(Path("out/student"))
    weights, trained = student.objective.state_dict(), tensors(Path("out"))
    assert all((trained[f"model.own.{name}"] == value).all() for name, value in weights.items())
    assert call("encode", "out/student") == 0 and np.load("out/student/latents.npz")["h"].shape == (8, 24)


def test_the_teacher_may_follow_the_options(place: Path, capsys: Captured):
    """They change the teacher's recipe all the same."""
    left, options = place / "left", ["--encoder.depth", "1", "--steps", "4"]
    assert call("migrate", "model", left, "--to", "right", *options, "--out", "first") == 0
    assert call("migrate", "model", *options, "--out", "late", left, "--to", "right") == 0
    first, late = (load_recipe(Path(run), TaughtRecipe) for run in ("first", "late"))
    assert first.student == late.student and late.training.steps == 4 and late.student.encoder.depth == 1
    assert late.student.encoder.width == load_recipe(left, VisionRecipe).encoder.width


def test_runs_to_compare_with_are_checked_before_training(place: Path, capsys: Captured):
    """A run of points in a plane, and one whose images are gone."""
    assert call("train", "--steps", "2", "--out", "points") == 0
    shutil.copytree(place / "scenes", "moved")
    start_run(agent(Path("moved/views.csv"), "right", steps=1), Path("alone"))
    shutil.rmtree("moved")
    capsys.readouterr()
    for run, message in (("points", "points is not a run of agents on images"), ("alone", "moved")):
        assert call("migrate", "model", place / "left", "--to", "right", "--beside", run, "--out", "late") == 2
        assert message in " ".join(capsys.readouterr().err.split()) and not Path("late").exists()


def test_a_single_class_is_not_probed(place: Path, capsys: Captured):
    text = (place / "scenes/views.csv").read_text().splitlines()
    kind = text[0].split(",").index("label")
    rows = [line.split(",") for line in text[1:]]
    lines = [text[0], *(",".join([*row[:kind], "apple", *row[kind + 1 :]]) for row in rows)]
    (place / "scenes/one.csv").write_text("\n".join(lines))
    table = place / "scenes/one.csv"
    assert call("train", "vision", table, "--recipe", place / "left/recipe.yaml", "--out", "one") == 0
    capsys.readouterr()
    found = answer(capsys, "migrate", "model", "one", "--to", "right", "--steps", "4", "--out", "told")
    assert found["status"] == "finished" and not Path("told/records/progress.json").exists()


def test_a_teacher_may_be_a_file(place: Path, capsys: Captured):
    assert call("encode", place / "left", "--part", "learnt", "--out", "left.npz") == 0
    capsys.readouterr()
    table = str(place / "scenes/views.csv")
    small = [
        "--size",
        "16",
        "--encoder.patch",
        "4",
        "--encoder.width",
        "16",
        "--encoder.depth",
        "1",
        "--encoder.heads",
        "2",
        "--objective",
        "simclr",
        "--steps",
        "2",
        "--batch-size",
        "8",
        "--pairs",
        "8",
    ]
    words = ["left.npz", "--to", "right", "--images.path", table, *small, "--teaching", "distillation"]
    found = answer(capsys, "migrate", "model", *words)
    assert found["run"] == "runs/left-to-right-distillation-s0" and found["step"] == 2


def test_two_recipes_are_trained_together(place: Path, capsys: Captured):
    words = [place / "left", place / "right/recipe.yaml", "--pairs", "8", "--teaching.method", "alternating"]
    found = answer(capsys, "migrate", "mutual", *words, "--out", "both")
    assert found["agents"] == {"first": "both/first", "second": "both/second"} and len(found["verdicts"]) == 2
    assert load_recipe(Path("both"), MutualRecipe).teaching.method == "alternating"
    assert load_agent(Path("both/second")).recipe.view == "right"
    again = answer(capsys, "migrate", "mutual", "--resume", "both")
    assert again["step"] == 3 and again["verdicts"] == found["verdicts"]


def test_broken_images_are_reported_at_the_start_and_on_resume(tmp_path: Path, capsys: Captured):
    table = write_scenes(tmp_path / "scenes")
    for seed, view in enumerate(("left", "right")):
        start_run(agent(table, view, seed=seed, steps=2), tmp_path / view)
    pictures = sorted((tmp_path / "scenes").rglob("*right.png"))
    pictures[0].write_bytes(b"")
    assert call("migrate", "model", "left", "--to", "right", "--out", "taught") == 0
    assert call("migrate", "mutual", "left", "right", "--pairs", "8", "--out", "both") == 0
    said = capsys.readouterr().out
    assert said.count("1 of 40 images were left out") == 2
    pictures[1].write_bytes(b"")
    for verb, run in (("model", "taught"), ("mutual", "both")):
        assert call("migrate", verb, "--resume", run) == 0
        assert "2 of 40 images were left out" in capsys.readouterr().out


def test_rejected_commands_write_nothing(place: Path, tmp_path: Path, capsys: Captured):
    other = write_scenes(tmp_path / "other", name="x", labels=False)
    start_run(agent(other, "left", steps=1), tmp_path / "stranger")
    np.savez(tmp_path / "empty.npz", h=np.zeros((3, 2)), ids=np.array(["a", "b", "c"]))
    left, right = place / "left", place / "right"
    for words, said in {
        (): "name the teacher",
        ("nowhere", "--to", "right"): "no run folder or file nowhere",
        (left,): "name the student's view: --to VIEW",
        (left, "--to", "up"): "No row has the view 'up'. Known: left, right.",
        (left, "--to", "right", "--pairs", "400"): "only 32",
        (left, "--to", "right", "--split", "1"): "4 ",
        (left, "--to", "right", "--held", "0.5"): "--held and --split",
        (left, "--to", "right", "--images.path", other): "share 0 ",
        (tmp_path / "stranger", "--to", "right", "--teaching", "distillation"): "labels",
        (left, "--to", "right", "--out", right): "--resume",
        (left, "--to", "right", "--teaching", "osmosis"): "there is no kind 'osmosis'",
        (left, "--to", "right", "--resume", right): "leave out --to",
        (left, "--to", "right", "--beside", "nowhere"): "nowhere",
    }.items():
        assert said in refused(capsys, "migrate", "model", *map(str, words)), words
    for words, said in {
        (left,): "give the recipes of both agents, but 1 given",
        (left, tmp_path / "stranger"): "differ in steps",
        (left, right, "--pairs", "400"): "only 32",
        (left, right, "--teaching.weight", "-1"): "weight",
    }.items():
        assert said in refused(capsys, "migrate", "mutual", *map(str, words)), words
