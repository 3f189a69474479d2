"""`jepatlas energy`: fit, audit, exact, as a person calls them."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from cli.calls import Captured, answer, files, refused
from training.small import call, same
from workflows.align.models import write
from workflows.energy.tiny import GRID, TRUTH, WORDS, saved, write_steps

from jepatlas.core.arrays import read_arrays
from jepatlas.core.records import Steps
from jepatlas.data import StepStream
from jepatlas.energy import closure
from jepatlas.workflows.energy import load_energy_file, save_energy

GRIDS = ["--source.height", "4", "--source.width", "4", "--source.wall", "2"]
WALKS = ["--walk.episodes", "40", "--walk.length", "10"]
FIT = ["energy", "fit", "one-way-grid", *GRIDS, *WALKS, *WORDS]
POINTS = GRID.observe(GRID.positions)
BROKEN = np.array([[0, 1, 5], [1, 0, 1], [np.inf, 1, 0]])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys: Captured) -> Path:
    assert call(*FIT, "--out", "run") == 0
    capsys.readouterr()
    return Path("run")


def names(found: dict[str, Any]) -> set[str]:
    return {verdict["name"] for verdict in found["verdicts"]}


def test_fit_reports_and_saves_its_result(capsys: Captured):
    assert call(*FIT, "--out", "run") == 0
    out = capsys.readouterr().out
    assert "On 16 states the iqe energy is a quasimetric." in out
    assert "AUC of one-way pairs" in out and "--full" in out and "jepatlas report run" in out
    assert "median_ratio" not in out
    assert {str(path.relative_to("run")) for path in Path("run").rglob("*") if path.is_file()} == {
        "recipe.yaml",
        "metrics.jsonl",
        "energy.safetensors",
        "checkpoints/step-20/state.safetensors",
        "checkpoints/step-20/checkpoint.json",
        "records/outcome.json",
        "records/energy.json",
        "records/energy.npz",
    }
    assert call("report", "run") == 0
    assert "Energies to and from a goal" in Path("run/report.html").read_text()


@pytest.mark.parametrize(
    ("words", "label"),
    [
        (["gym"], "38 states"),
        (["current", "--current", "constant"], "64 states"),
        (["current", "--current", "constant", "--source.current.along", "3"], "64 states"),  # faster than the vehicle
        (["one-way-grid", *GRIDS, "--mixing", "coupling"], "16 states"),
        (["one-way-grid", *GRIDS, "--learning", "expectile"], "discounted exact energies"),
        (
            ["one-way-grid", *GRIDS, "--agent", "jepa", "--agent.dim", "3", "--agent.together.mode", "joint"],
            "16 states",
        ),
        (["one-way-grid", *GRIDS, "--agent", "jepa", "--objective", "covariance"], "16 states"),
    ],
)
def test_fit_on_every_world_and_with_an_agent(words: list[str], label: str, capsys: Captured):
    found = answer(capsys, "energy", "fit", *words, *WALKS, *WORDS)
    assert label in found["summary"] and found["status"] == "finished" and "triangle" in names(found)
    assert found["run"] == f"runs/{words[0]}-iqe-s0" and load_energy_file(Path(found["run"], "energy.safetensors"))


@pytest.mark.parametrize("head", ["mrn", "l2"])
def test_fit_with_another_head(head: str, capsys: Captured):
    words = FIT[: FIT.index("--head.chunks")]
    found = answer(capsys, *words, "--head", head, "--seed", "2")
    assert found["run"] == f"runs/one-way-grid-{head}-s2" and f"the {head} energy is" in found["summary"]
    advice = next(verdict["advice"] for verdict in found["verdicts"] if verdict["name"] == "one_way_auc")
    assert ("use a quasimetric head" in advice) == (head == "l2")


def test_fit_on_files_of_steps_and_of_episodes(capsys: Captured):
    write_steps("steps.npz", points=POINTS, truth=TRUTH)
    found = answer(capsys, "energy", "fit", "steps.npz", *WORDS)
    assert found["run"] == "runs/steps-iqe-s0" and {"spearman", "one_way_auc"} <= names(found)
    sealed = yaml.safe_load(Path(found["run"], "recipe.yaml").read_text())["source"]
    assert Path(sealed["path"]).is_absolute() and len(sealed["sha256"]) == 64
    walk = GRID.walk(30, 10, seed=0)
    assert walk.z is not None
    write("episodes.csv", x=walk.x, episode=walk.episode, cost=walk.cost)
    found = answer(capsys, "energy", "fit", "episodes.csv", *WORDS, "--out", "run")
    assert "spearman" not in names(found) and {"triangle", "step_scale"} <= names(found)


def test_fit_from_a_recipe(run: Path, capsys: Captured):
    assert call("energy", "fit", "--recipe", run / "recipe.yaml", "--out", "again") == 0
    assert same(run, Path("again"))
    assert call("energy", "fit", "--recipe", run / "recipe.yaml", "--seed", "1", "--out", "other") == 0
    assert not same(run, Path("other"))


def test_a_resumed_fit_is_bitwise_equal(run: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch):
    drawn = StepStream.__call__

    def interrupted(self: StepStream, step: int) -> Steps:
        if step == 7:
            signal.raise_signal(signal.SIGINT)
        return drawn(self, step)

    with monkeypatch.context() as patch:
        patch.setattr(StepStream, "__call__", interrupted)
        assert call(*FIT, "--out", "stopped", "--json", "answer.json") == 130
    out = capsys.readouterr().out
    assert "jepatlas energy fit --resume stopped" in out
    assert json.loads(Path("answer.json").read_text())["status"] == "interrupted"
    assert not Path("stopped/energy.safetensors").exists()
    found = answer(capsys, "energy", "fit", "--resume", "stopped")
    assert found["status"] == "finished" and same(run, Path("stopped"))
    assert call("energy", "fit", "--resume", "stopped", "--full") == 0  # it is finished, and is shown again
    assert "median energy / truth" in capsys.readouterr().out


def test_failed_runs_are_reported(capsys: Captured):
    words = [word if word != "20" else "60" for word in FIT]
    assert call(*words, "--lr", "1e30", "--log-every", "1", "--out", "run", "--json", "a.json") == 1
    assert json.loads(Path("a.json").read_text())["status"] == "failed"
    assert not Path("run/energy.safetensors").exists()


FIT_BAD = [
    (["neg.npz"], "neg.npz: cost must not be negative, but 300"),
    (["nan.npz"], "nan.npz: 'x' has 600 NaN"),
    (["gap.npz"], "gap.npz: Episode 0 has a gap"),
    (["truth.npz"], "truth.npz: 'truth' must be (16, 16) for 16 points"),
    (["below.npz"], "True energies must be at least 0"),
    (["points.npz"], "points.npz: 'truth' requires 'points'"),
    (["nowhere.npz"], "'nowhere.npz' is neither a file nor a world. Known: current, gym, one-way-grid"),
    (["one-way-gird"], "Did you mean 'one-way-grid'?"),
    (["--source", "file"], "Give its path"),
    (["one-way-grid", "--width", "18"], "width 18 is not a multiple of chunks 4"),
    (
        [
            "one-way-grid",
            "--source.height",
            "2",
            "--source.width",
            "2",
            "--source.wall",
            "1",
            "--source.obstacles",
            "0",
            "1",
            "1",
            "0",
        ],
        "no edges",
    ),
    (["gym", "--source.env", "Blackjack-v1"], "exact energies need finitely many states"),
    (["one-way-grid", "--recipe", "agent.yaml"], "is a recipe of an agent"),
    (
        ["one-way-grid", "--agent", "jepa", "--objective", "whitening", "--agent.dim", "8", "--batch-size", "4"],
        "A batch of 4 is too small",
    ),
    (["one-way-grid", "--out", "neg.npz"], "neg.npz"),
]


@pytest.mark.parametrize(("words", "message"), FIT_BAD, ids=lambda one: " ".join(one) if isinstance(one, list) else "")
def test_invalid_fits_write_nothing(words: list[str], message: str, capsys: Captured):
    walk = GRID.walk(30, 10, seed=0)
    write_steps("neg.npz", cost=-walk.cost)
    write_steps("nan.npz", x=np.full(walk.x.shape, np.nan))
    write_steps("gap.npz", x_next=walk.x_next + 1)
    write_steps("truth.npz", points=POINTS, truth=np.zeros((3, 3)))
    write_steps("below.npz", points=POINTS, truth=-np.ones((16, 16)))
    write_steps("points.npz", truth=TRUTH)
    Path("agent.yaml").write_text("seed: 3\n")
    given = [*words[:1], *WORDS, *words[1:]] if not words[0].startswith("-") else [*WORDS, *words]
    assert message in refused(capsys, "energy", "fit", *given)


def test_resume_rejects_other_options(run: Path, capsys: Captured):
    message = refused(capsys, "energy", "fit", "--resume", run, "--steps", "9")
    assert "leave out --steps" in message and "jepatlas energy fit --recipe run/recipe.yaml" in message
    assert "leave out gym" in refused(capsys, "energy", "fit", "gym", "--resume", run)
    assert "--resume run" in refused(capsys, *FIT, "--out", run)
    assert "is not a run folder" in refused(capsys, "energy", "fit", "--resume", "nowhere")


def test_a_run_with_a_changed_file_is_not_resumed(capsys: Captured):
    write_steps("steps.npz")
    assert call("energy", "fit", "steps.npz", *WORDS, "--out", "run") == 0
    write_steps("steps.npz", more=np.ones(2))
    capsys.readouterr()
    assert "has changed since this run began" in refused(capsys, "energy", "fit", "--resume", "run")
    assert "has changed since this run began" in refused(capsys, "energy", "audit", "run")


def test_audit_of_a_run(run: Path, capsys: Captured):
    fitted = json.loads((run / "records" / "energy.json").read_text())
    found = answer(capsys, "energy", "audit", run)
    assert found["summary"] == fitted["summary"] and found["verdicts"] == fitted["verdicts"]
    assert call("energy", "audit", run, "--require", "--seed", "-3", "--out", "elsewhere") == 1  # it was hardly trained
    capsys.readouterr()
    assert Path("elsewhere/records/energy.json").exists()
    assert "--repair is for a matrix" in refused(capsys, "energy", "audit", run, "--repair", "r.npy")
    assert "--points is for files" in refused(capsys, "energy", "audit", run, "--points", "p.npy")
    assert "is a recipe of kind 'energy', but" in refused(capsys, "certify", run)


def test_audit_of_a_matrix_and_its_repair(capsys: Captured):
    write("m.npy", h=BROKEN)
    assert call("energy", "audit", "m.npy", "--repair", "new/r.npy") == 0
    out = capsys.readouterr().out
    assert (
        out.startswith("On 3 states this is not a quasimetric (triangle failed). Its closure")
        and "through state 1" in out
    )
    assert "Repaired: new/r.npy" in out
    np.testing.assert_array_equal(read_arrays("new/r.npy")["h"], closure(BROKEN))
    assert call("energy", "audit", "m.npy", "--require") == 1
    assert call("energy", "audit", "m.npy", "--require", "--tolerance", "1") == 0
    assert call("energy", "audit", "new/r.npy", "--require", "--out", "kept") == 0
    assert json.loads(Path("kept/records/audit.json").read_text())["title"] == "Audit of r.npy"
    capsys.readouterr()
    before = files()
    found = answer(capsys, "energy", "audit", "m.npy")
    assert found["subject"] == "m.npy" and files() == before  # where nothing is asked for, nothing is kept


def test_audit_of_a_saved_energy_at_points(run: Path, capsys: Captured):
    write("latents.npz", h=POINTS, ids=np.arange(16))
    write("truth.npz", points=POINTS, truth=TRUTH)
    energy = run / "energy.safetensors"
    found = answer(capsys, "energy", "audit", energy, "--points", "latents.npz")
    assert found["summary"] == "On 16 states this is a quasimetric." and "spearman" not in names(found)
    found = answer(capsys, "energy", "audit", energy, "--points", "truth.npz")
    fitted = json.loads((run / "records" / "energy.json").read_text())
    value = {one["name"]: one["value"] for one in fitted["verdicts"]}
    again = {one["name"]: one["value"] for one in found["verdicts"]}
    assert again["spearman"] == pytest.approx(value["spearman"]) and again["one_way_auc"] == value["one_way_auc"]


AUDIT_BAD = [
    (["rect.npy"], "rect.npy: The matrix of energies must be square"),
    (["nan.npy"], "nan.npy: The matrix of energies has 9 NaN"),
    (["nowhere.npy"], "There is no run folder and no file nowhere.npy"),
    (["."], "is not a run folder"),
    (["m.npy", "--states", "1"], "at least 2 states"),
    (["m.npy", "--tolerance", "-1"], "tolerance must be finite and at least 0, but -1.0"),
    (["m.npy", "--repair", "r.txt"], "files of type '.txt'"),
    (["m.npy", "--points", "rect.npy"], "3 rows of energies and 4 rows of points"),
    (["e.safetensors"], "--points"),
    (["e.safetensors", "--points", "rect.npy"], "the points must be (n, 2) for this energy, but are (4, 3)"),
    (["e.safetensors", "--points", "nowhere.npy"], "There is no file nowhere.npy"),
    (["e.safetensors", "--points", "p.npy", "--repair", "r.npy"], "--repair is for a matrix"),
]


@pytest.mark.parametrize(
    ("words", "message"), AUDIT_BAD, ids=lambda one: " ".join(one) if isinstance(one, list) else ""
)
def test_invalid_audits_are_rejected(words: list[str], message: str, capsys: Captured):
    write("rect.npy", h=np.ones((4, 3)))
    write("nan.npy", h=np.full((3, 3), np.nan))
    write("m.npy", h=BROKEN)
    write("p.npy", h=POINTS)
    save_energy(saved(), Path("e.safetensors"))
    assert message in refused(capsys, "energy", "audit", *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["one-way-grid", "--goal", "3", "8"], "(3, 8) is reachable from"),
        (["gym", "--goal", "3", "11"], "(3, 11) is reachable from 37 states, and 0 states"),
        (["gym", "--goal", "47"], "(3, 11) is reachable from 37 states, and 0 states"),  # by its number
        (["gym", "--world.env", "FrozenLake-v1", "--world.cost", "step"], "steps."),
        (["current", "--current", "constant", "--goal", "-0.5", "0", "--resolution", "41"], "The goal (-0.5, 0) is"),
        (
            [
                "current",
                "--current",
                "constant",
                "--world.current.along",
                "3",
                "--goal",
                "1",
                "0",
                "--resolution",
                "41",
            ],
            "no times are compared",
        ),
    ],
)
def test_exact_energies_of_every_world(words: list[str], said: str, capsys: Captured):
    found = answer(capsys, "energy", "exact", *words)
    assert said in found["summary"] and found["world"] == words[0]
    (folder,) = Path("runs").iterdir()  # named by its current or environment
    which = {"current": "-constant", "gym": f"-{words[2] if '--world.env' in words else 'CliffWalking-v1'}"}
    assert folder.name == f"exact-{words[0]}{which.get(words[0], '')}"
    assert (folder / "energies.png").read_bytes().startswith(b"\x89PNG")
    arrays = read_arrays(folder / "energies.npz")
    assert {"to_goal", "from_goal"} <= set(arrays)
    assert not [verdict for verdict in found["verdicts"] if verdict["passed"] is False]


def test_exact_draws_the_grid_and_names_its_files(capsys: Captured):
    assert (
        call(
            "energy",
            "exact",
            "one-way-grid",
            "--world.height",
            "4",
            "--world.width",
            "4",
            "--world.wall",
            "2",
            "--out",
            "here",
            "--full",
        )
        == 0
    )
    out = capsys.readouterr().out
    assert GRID.draw() in out and "energies.npz, energies.png" in out and "asymmetry" in out
    np.testing.assert_array_equal(read_arrays("here/energies.npz")["energies"], TRUTH)
    assert call("report", "here") == 0


EXACT_BAD = [
    ([], "one-way-grid, gym, current"),
    (["moon"], "there is no world 'moon'"),
    (["one-way-grid", "--goal", "40", "1"], "goal (40, 1) is not a state of this world"),
    (["one-way-grid", "--goal", "1"], "goal (1) is not a state"),
    (["gym", "--goal", "3", "5"], "goal (3, 5) is not a state"),  # the cliff
    (["gym", "--goal", "99"], "(99) is not a state of this world. States are (0, 0) to (3, 11) or (0) to (47)"),
    (["gym", "--world.env", "Taxi-v4", "--goal", "999"], "States are (0) to (499)"),
    (["current", "--goal", "2", "0"], "goal (2, 0) is outside the world"),
    (["current", "--goal", "nan", "0"], "is outside the world"),
    (["current", "--resolution", "3"], "resolution must be at least 11"),
    (["current", "--current", "rapids"], "--current: there is no kind 'rapids'"),
    (
        [
            "one-way-grid",
            "--world.height",
            "2",
            "--world.width",
            "2",
            "--world.wall",
            "1",
            "--world.obstacles",
            "0",
            "1",
            "1",
            "0",
        ],
        "no edges",
    ),
    (["gym", "--world.env", "FrozenLake-v1", "--world.cost", "reward"], "their cost would be negative"),
    (["gym", "--world.env", "CartPole-v1"], "finitely many states"),
]


@pytest.mark.parametrize(
    ("words", "message"), EXACT_BAD, ids=lambda one: " ".join(one) if isinstance(one, list) else ""
)
def test_worlds_without_exact_energies_are_rejected(words: list[str], message: str, capsys: Captured):
    assert message in refused(capsys, "energy", "exact", *words)


def test_help_of_every_command(capsys: Captured):
    for verb, command in (("energy", "fit"), ("energy", "audit"), ("energy", "exact"), ("migrate", "energy")):
        assert call(verb) == 0
        assert command in capsys.readouterr().out
        assert call(verb, command, "--help") == 0
        assert f"jepatlas {verb} {command}" in capsys.readouterr().out


def test_least_action_of_a_world_is_exact_and_needs_no_training(capsys: Captured):
    walks = ["--walk.episodes", "100", "--walk.length", "20"]
    found = answer(capsys, "energy", "fit", "one-way-grid", *GRIDS, *walks, "--kind", "least-action", "--out", "run")
    values = {verdict["name"]: verdict["value"] for verdict in found["verdicts"]}
    assert values["spearman"] == values["reachability_auc"] == 1
    assert not Path("run/checkpoints").exists()
    np.testing.assert_allclose(
        load_energy_file(Path("run/energy.safetensors")).model().all_pairs(torch.as_tensor(POINTS)), TRUTH, rtol=1e-6
    )


def test_least_action_of_a_file_of_steps(capsys: Captured):
    write_steps(Path("steps.npz"))
    found = answer(capsys, "energy", "fit", "steps.npz", "--learning", "least-action", "--out", "run")
    assert {"ways_cheap", "divided_cells"} <= names(found)
