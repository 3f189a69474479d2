"""`collect`, `train world-model`, `certify`, `plan`, `migrate planner`, one after the other, and what they refuse."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli.calls import Captured, answer, refused
from PIL import Image
from training.small import call
from workflows.plan.small import WORDS

from jepatlas.core.linear_map import LinearMap
from jepatlas.data import EpisodeFile
from jepatlas.recipes import EpisodeSource
from jepatlas.workflows.plan import load_world_model

FROM_FILE = [*WORDS[:6], *WORDS[10:]]  # but for how many episodes are walked, and how long
SHORT = ["--planner.horizon", "3", "--planner.samples", "8", "--planner.iterations", "1", "--steps", "6"]
ONE_WAY = ["--world", "rooms", "--world.one-way", "--world.no-way-back"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with episodes, and runs on a world through two cameras, on a file, and of an encoder alone."""
    place = tmp_path_factory.mktemp("plan")
    runs, episodes = place / "runs", place / "rooms.h5"
    assert call("collect", "rooms", "--episodes", "40", "--length", "8", "--processes", "1", "--out", episodes) == 0
    energy = ["--energy", "energy", "--model.energy.head.chunks", "4"]
    night = ["--source.world.camera.palette", "night", "--source.world.camera.angle", "90"]
    assert call("train", "world-model", "rooms", *WORDS, *energy, "--out", runs / "day") == 0
    assert call("train", "world-model", "rooms", *WORDS, *night, "--seed", "1", "--out", runs / "night") == 0
    assert call("train", "world-model", episodes, *FROM_FILE, "--out", runs / "file") == 0
    shutil.copy(episodes, place / "unknown.h5")
    with h5py.File(place / "unknown.h5", "a") as file:
        del file.attrs["jepatlas"]  # as other people's files are
    assert call("train", "world-model", place / "unknown.h5", *FROM_FILE, "--out", runs / "unknown") == 0
    frames = [*WORDS[:-2], "--model", "frames", "--batch-size", "16", "--out", runs / "frames"]
    assert call("train", "world-model", "maze", *frames) == 0
    linear = [*WORDS[:10], "--encoder", "mlp", "--dynamics", "linear", "--latent-dim", "4", "--out", runs / "lq"]
    assert call("train", "world-model", "linear-quadratic", *linear) == 0
    return place


@pytest.fixture(autouse=True)
def here(made: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.chdir(made)
    capsys.readouterr()


def test_collected_episodes_are_reported_and_can_be_trained_on(capsys: Captured):
    short = ["--episodes", "2", "--length", "5", "--processes", "1", "--out", "maze.h5"]
    found = answer(capsys, "collect", "maze", "--world.cells", "3", *short)
    assert (found["episodes"], found["rows"]) == (2, 12) and found["columns"]["pixels"] == [64, 64, 3]
    assert len(EpisodeFile(Path("maze.h5"))) == 2
    source = load_world_model(Path("runs/file")).recipe.source
    assert isinstance(source, EpisodeSource) and Path(source.path).name == "rooms.h5"


def test_the_default_world_is_named_first(capsys: Captured):
    assert call("train", "world-model", *WORDS, "--out", "default") == 0
    assert "'rooms'" in capsys.readouterr().out.splitlines()[0]
    assert call("train", "world-model", "rooms", *WORDS, "--out", "named") == 0
    assert "default" not in capsys.readouterr().out


def test_a_world_model_is_certified_on_held_out_episodes(capsys: Captured):
    found = answer(capsys, "certify", "runs/file", "--out", "certified")
    assert found["provenance"]["held-out episodes"] == 4 and {"r2"} <= {v["name"] for v in found["verdicts"]}
    assert Path("certified/records/certificate.json").is_file()


def test_an_agent_is_compared_with_random_actions_and_filmed(capsys: Captured):
    words = ["runs/day", *SHORT, "--tasks", "5", "--seed", "3", "--out", "planned"]
    found = answer(capsys, "plan", *words, "--film", "day.gif")
    assert found["report"] == "planned/report.html" and found["provenance"]["tasks"] == 5
    assert [row[0] for row in found["tables"][0]["rows"]] == ["the agent", "random actions"]
    with Image.open("day.gif") as film:
        assert film.size == (5 * 66 * 3, 2 * (14 + 66 * 3)), "a row of what was driven, one of what was imagined"
    assert answer(capsys, "plan", *words)["tables"] == found["tables"], "the same seed drives the same way"
    page = Path("planned/report.html").read_text()
    assert "Driven episodes" in page and "Held-out episodes" in page
    assert call("plan", *words) == 0
    out = capsys.readouterr().out
    assert out.startswith("The agent reached ")
    assert any("agent" in line and "+∞" in line for line in out.splitlines()), "80 columns hold the table"


def test_the_random_actions_of_the_null_are_described(capsys: Captured):
    words = [*SHORT, "--tasks", "2", "--out", "null"]
    for run in ("day", "file"):  # a file that was collected tells it, too
        assert "persistence 0.8" in answer(capsys, "plan", f"runs/{run}", *words)["summary"]
    unknown = answer(capsys, "plan", "runs/unknown", *words, "--world", "rooms")
    assert "independent" in unknown["summary"]


def test_infinite_horizon_lqr_leads_to_a_holdable_latent(capsys: Captured):
    words = ["--planner", "lqr", "--planner.infinite", "--steps", "4", "--tasks", "2", "--out", "for-ever"]
    assert "LQR steers" in answer(capsys, "plan", "runs/lq", *words)["summary"]


def test_a_given_start_and_goal_are_used(capsys: Captured):
    ends = ["--start", "-0.5", "0.2", "--goal", "-0.45", "0.2"]
    found = answer(capsys, "plan", "runs/day", *SHORT, *ends, "--out", "one")
    assert found["tables"][0]["rows"][0][1] == "1 of 1", "it is there already"


def test_a_run_on_a_file_is_driven_in_the_named_world(capsys: Captured):
    words = ["plan", "runs/unknown", *SHORT, "--tasks", "2", "--out", "named"]
    found = answer(capsys, *words, "--world", "rooms")
    assert found["provenance"]["world"] == "rooms" and "does not record its world" in found["summary"]


def test_a_run_on_a_file_uses_the_world_recorded_in_it(capsys: Captured):
    words = ["plan", "runs/file", *SHORT, "--tasks", "2", "--out", "own"]
    for given in ([], ["--world", "rooms"]):
        found = answer(capsys, *words, *given)
        assert found["provenance"]["world"] == "rooms"
        assert "another world" not in found["summary"] and "does not record" not in found["summary"]
    assert "another world: one_way False, not True" in answer(capsys, *words, *ONE_WAY[:3])["summary"]


def test_a_planner_migrates_between_a_world_and_its_file(capsys: Captured):
    words = ["migrate", "planner", "runs/file", "runs/night", *SHORT, "--tasks", "2", "--states", "20", "--out", "both"]
    assert answer(capsys, *words)["tables"][0]["rows"][0][0] == "file's planner"


@pytest.mark.parametrize("run", ["runs/lq", "runs/day"])
def test_lqr_uses_given_or_fitted_matrices(run: str, capsys: Captured):
    found = answer(capsys, "plan", run, "--planner", "lqr", "--tasks", "3", "--steps", "4", "--out", "lqr")
    told = {verdict["name"]: verdict for verdict in found["verdicts"]}
    assert told["linear_system"]["value"] <= 1 and told["linear_system"]["null"] <= 1
    origin = "of its linear dynamics" if run == "runs/lq" else "fitted to its latents"
    assert f"LQR uses A and B {origin}" in found["summary"]


def test_differences_from_the_world_of_the_run_are_reported(capsys: Captured):
    words = ["plan", "runs/day", *SHORT, "--tasks", "2", "--out", "other"]
    assert "another world" not in answer(capsys, *words, "--world", "rooms")["summary"]
    assert "another world: one_way False, not True" in answer(capsys, *words, *ONE_WAY[:3])["summary"]
    assert "another world: 'rooms', not 'maze'" in answer(capsys, *words, "--world", "maze")["summary"]


def test_a_planner_migrates_to_the_other_camera(capsys: Captured):
    words = ["migrate", "planner", "runs/day", "runs/night", *SHORT, "--tasks", "4", "--states", "50", "--out", "port"]
    found = answer(capsys, *words, "--fit", "procrustes")
    assert [row[0] for row in found["tables"][0]["rows"]] == [
        "day's planner",
        "night's own planner",
        "shuffled pairs",
        "random actions",
    ]
    assert found["provenance"]["map"] == "procrustes" and found["provenance"]["shared states"] == 50
    weight = LinearMap.load("port/map.safetensors").weight
    assert np.allclose(weight @ weight.T, np.eye(8), atol=1e-8)
    record = json.loads(Path("port/records/migrate.json").read_text())
    assert {"success", "lost", "map_r2"} <= {verdict["name"] for verdict in record["verdicts"]}
    assert "The planner of day, ported to night" in Path("port/report.html").read_text()
    assert call(*words) == 0
    out = capsys.readouterr().out
    assert "random actions" in out and "R² of the map" in out


BAD = [
    (["plan", "runs/day", *ONE_WAY, "--start", "0.5", "0", "--goal", "-0.5", "0"], "the energy is +∞"),
    (
        ["plan", "runs/day", *ONE_WAY, "--current", "jet", "--start", "0.5", "0", "--goal", "-0.5", "0"],
        "the energy is +∞",
    ),
    (["plan", "runs/lq", "--film", "lq.gif"], "'linear-quadratic'"),
    (["plan", "runs/day", "--world", "reacher"], "'reacher'"),
    (["plan", "runs/lq", "--planner", "lqr", "--cost.discount", "0.9"], "discount is 0.9"),
    (["plan", "runs/day", "--start", "0.5", "0"], "'start' and 'goal' belong together"),
    (["plan", "runs/day", "--start", "0", "0", "--goal", "0.5", "0"], "'start' [0.0, 0.0]"),
    (["plan", "runs/day", "--start", "0.5", "--goal", "0.5", "0"], "give 2 numbers"),
    (["plan", "runs/day", "--tasks", "0"], "tasks is 0"),
    (["plan", "runs/day", "--steps", "0"], "steps is 0"),
    (["plan", "runs/day", "--film", "day.avi"], ".gif or .mp4"),
    (["plan", "runs/day", "--world", "linear-quadratic"], "'linear-quadratic'"),
    (["plan", "runs/day", "--world", "room"], "there is no kind 'room'. Did you mean 'rooms'"),
    (["plan", "runs/frames"], "no dynamics"),
    (["plan", "runs/unknown"], "--world"),
    (["plan", "runs/file", "--world", "reacher"], "'reacher'"),
    (["plan", "runs"], "runs is not a run folder"),
    (["migrate", "planner", "runs/day"], "give the run folders of both models"),
    (["migrate", "planner", "runs/day", "runs/frames"], "'rooms' and 'maze'"),
    (["migrate", "planner", "runs/day", "runs/unknown"], "file that records its world"),
    (["migrate", "planner", "runs/file", "runs/frames"], "'rooms' and 'maze'"),
    (["migrate", "planner", "runs/day", "runs/night", "--states", "1"], "states is 1"),
    (["certify", "runs/day"], "holds out 1 of its episodes"),
    (["collect", "room", "--out", "x.h5"], "gymnasium cannot make 'room'"),
    (["collect", "--out", "x.h5"], "name a world"),
    (["train", "world-model", "roms"], "'roms' is neither a file nor a world. Did you mean 'rooms'"),
    (["train", "world-model", "cut.h5"], "cut.h5"),
    (["train", "world-model", "linear-quadratic", *WORDS], "--encoder"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=lambda one: " ".join(one[:4]) if isinstance(one, list) else "")
def test_invalid_input_is_rejected(words: list[str], message: str, capsys: Captured):
    whole = Path("rooms.h5").read_bytes()
    Path("cut.h5").write_bytes(whole[: len(whole) // 2])
    assert message in refused(capsys, *words)
