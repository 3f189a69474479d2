"""Agents on images, from a table to latents that `align` takes, as a person would do it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from training.small import call

from jepatlas.cli.options import parse_choices
from jepatlas.cli.sweep import SweepVision, directions_summary, make_jobs
from jepatlas.core.files import read_json
from jepatlas.recipes import ImageTable, VisionRecipe, build_vision, load_recipe, read_images
from jepatlas.workflows.vision import latents_of, load_agent, train_and_judge

SMALL = [
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
    "--batch-size",
    "8",
    "--steps",
    "6",
    "--log-every",
    "2",
]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve toys of two kinds in three positions, seen from the left and mirrored."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rng, lines = np.random.default_rng(0), ["path,state,view,label,group"]
    place = tmp_path / "toys"
    place.mkdir()
    for toy in range(12):
        colour = rng.integers(80, 255, 3)
        for turn in range(3):
            image = np.zeros((20, 20, 3), np.uint8)
            image[4 + 3 * turn : 10 + 3 * turn, 3 : 9 if toy % 2 else 16] = colour
            for view, seen in (("left", image), ("right", image[:, ::-1])):
                name = f"{toy}-{turn}-{view}.png"
                Image.fromarray(np.ascontiguousarray(seen)).save(place / name)
                lines.append(f"{name},{toy}-{turn},{view},{'thin' if toy % 2 else 'wide'},toy{toy}")
    (place / "views.csv").write_text("\n".join(lines) + "\n")
    return place


def test_two_agents_from_a_table_to_a_map(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for view in ("left", "right"):
        assert call("train", "vision", table, "--view", view, *SMALL, "--out", tmp_path / view) == 0
        said = capsys.readouterr().out
        assert "30 training images, 6 held out." in said and "6 held-out images" in said
        assert call("encode", tmp_path / view, "--part", "all", "--layers", "--out", tmp_path / f"{view}.npz") == 0
    left, right = (np.load(tmp_path / f"{view}.npz") for view in ("left", "right"))
    assert left["h"].shape == (36, 16) and (left["ids"] == right["ids"]).all()
    np.testing.assert_allclose(left["layer00"], left["h"], atol=1e-5)  # one block: its layer is the latent
    assert set(left["labels"]) == {"thin", "wide"} and len(set(left["groups"])) == 12
    words = ["align", tmp_path / "left.npz", tmp_path / "right.npz", "--out", tmp_path / "align"]
    assert call(*words, "--share", "0.5") == 0
    capsys.readouterr()
    assert call(*words) == 2  # the two toys that neither has learned from
    assert "6 held-out rows in 2 groups are too few" in capsys.readouterr().err


def test_latents_mark_held_out_rows_and_maps_are_scored_on_them(table: Path, tmp_path: Path) -> None:
    for view in ("left", "right"):
        words = ["--view", view, *SMALL, "--held", "0.5", "--out", tmp_path / view]
        assert call("train", "vision", table, *words) == 0
        assert call("encode", tmp_path / view, "--part", "all", "--out", tmp_path / f"{view}.npz") == 0
    marks, agent = np.load(tmp_path / "left.npz")["held"], load_agent(tmp_path / "left")
    np.testing.assert_array_equal(np.flatnonzero(marks), np.sort(agent.seen.held))
    files = [tmp_path / "left.npz", tmp_path / "right.npz"]
    assert call("align", *files, "--out", tmp_path / "align", "--permutations", "19") == 0
    assert call("migrate", "probe", *files, "--out", tmp_path / "probe") in (0, 1)  # of six steps it may carry nothing
    told = read_json(tmp_path / "align" / "records" / "align.json")["provenance"]
    assert told["held out"] == "as the files mark" and told["pairs fitted"] == told["pairs held out"] == 18


def test_agents_that_learned_nothing_are_not_better_than_untrained_networks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One step of no length, on colours behind noise. A random network on the pixels sees the noise, and praises any
    network that takes means."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rng, lines = np.random.default_rng(0), ["path,state,view,group"]
    for state in range(96):
        colour = rng.integers(60, 200, 3)
        for view in ("left", "right"):
            seen = np.clip(colour + 40 * rng.standard_normal((16, 16, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(seen).save(tmp_path / f"{state}-{view}.png")
            lines.append(f"{state}-{view}.png,{state},{view},toy{state // 3}")
    (tmp_path / "views.csv").write_text("\n".join(lines) + "\n")
    idle = [*SMALL, "--objective", "lejepa", "--steps", "1", "--lr", "1e-12", "--held", "0.5"]
    for seed, view in enumerate(("left", "right")):
        words = ["--view", view, *idle, "--seed", str(seed), "--out", tmp_path / view]
        assert call("train", "vision", tmp_path / "views.csv", *words) == 0
        assert call("encode", tmp_path / view, "--part", "all", "--out", tmp_path / f"{view}.npz") == 0
        arrays = dict(np.load(tmp_path / f"{view}.npz"))
        np.testing.assert_allclose(arrays.pop("untrained"), arrays["h"], atol=1e-4)
        np.savez(tmp_path / f"old-{view}.npz", **arrays)
    judged = {}
    for name in ("", "old-"):
        files = [tmp_path / f"{name}{view}.npz" for view in ("left", "right")]
        assert call("align", *files, "--out", tmp_path / "align", "--permutations", "19") == 0
        record = read_json(tmp_path / "align" / "records" / "align.json")
        judged[name] = {one["name"]: one for one in record["verdicts"]}
    assert judged[""]["r2"]["passed"] and judged[""]["r2_beyond_untrained"]["passed"] is False
    assert "the same networks, untrained" in judged[""]["r2_beyond_untrained"]["advice"]
    beyond = judged["old-"]["r2_beyond_untrained"]
    assert beyond["passed"] and "a random network on the raw input" in beyond["advice"]
    assert "untrained" in beyond["advice"]


def test_untrained_latents_are_those_of_the_network_before_its_first_step(table: Path, tmp_path: Path) -> None:
    """Through a pipeline, too, and of the very rows that are encoded."""
    assert call("train", "vision", table, "--view", "left", *SMALL, "--lr", "1e-2", "--out", tmp_path / "run") == 0
    agent = load_agent(tmp_path / "run")
    before = replace(agent, objective=build_vision(agent.recipe, agent.seen).eval())
    for words in ([], ["--pipeline", "A"], ["--part", "all"]):
        assert call("encode", tmp_path / "run", *words, "--out", tmp_path / "h.npz") == 0
        arrays = np.load(tmp_path / "h.npz")
        part = "all" if "--part" in words else "held"
        expected = latents_of(before, part, pipeline="A" if "--pipeline" in words else None)
        np.testing.assert_allclose(arrays["untrained"], expected["h"], atol=1e-6)
        assert arrays["untrained"].shape == arrays["h"].shape and not np.allclose(arrays["untrained"], arrays["h"])


def test_a_moved_image_folder_is_updated_in_the_recipe(table: Path, tmp_path: Path, capsys) -> None:
    run = tmp_path / "run"
    assert call("train", "vision", table, "--view", "left", *SMALL, "--out", run) == 0
    assert call("encode", run, "--out", tmp_path / "before.npz") == 0
    table.rename(tmp_path / "elsewhere")
    capsys.readouterr()
    assert call("encode", run) == 2
    assert "recipe.yaml of the run" in capsys.readouterr().err
    recipe = run / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace(str(table), str(tmp_path / "elsewhere")))
    assert call("encode", run, "--out", tmp_path / "after.npz") == 0
    before, after = (np.load(tmp_path / f"{name}.npz")["h"] for name in ("before", "after"))
    assert (before == after).all()
    assert call("train", "vision", "--resume", run) == 0


def test_a_sweep_trains_and_judges_agents(table: Path, tmp_path: Path) -> None:
    """Jobs of `sweep vision`, as its processes carry them out; what is done is not done again."""
    recipe = parse_choices(SweepVision(), "sweep vision", ["--images", "table", *SMALL]).recipe
    recipe = replace(recipe, images=ImageTable(str(table)).sealed())
    jobs = {job.name: job.recipe for job in make_jobs(recipe, ("view=left,right", "objective=ijepa,mae"))}
    assert set(jobs) == {f"view={view}_objective={kind}" for view in ("left", "right") for kind in ("ijepa", "mae")}
    first, again = (train_and_judge(jobs["view=right_objective=mae"], str(tmp_path / "run")) for _ in range(2))
    assert first == again and first["status"] == "finished"
    assert [verdict["name"] for verdict in first["verdicts"]] == ["directions"]
    assert load_recipe(tmp_path / "run", VisionRecipe).view == "right"


def test_one_image_through_two_pipelines_is_two_views(table: Path, tmp_path: Path, capsys) -> None:
    assert call("train", "vision", table, "--view", "left", *SMALL, "--out", tmp_path / "run") == 0
    files = {}
    for name, words in {
        "as it is": [],
        "A": ["--pipeline", "A"],
        "again": ["--pipeline", "A"],
        "B": ["--pipeline", "B"],
        "other": ["--pipeline", "A", "--seed", "1"],
        "all": ["--pipeline", "A", "--part", "all"],
    }.items():
        assert call("encode", tmp_path / "run", *words, "--out", tmp_path / f"{name}.npz") == 0
        files[name] = np.load(tmp_path / f"{name}.npz")
    assert (files["A"]["h"] == files["again"]["h"]).all()
    same = np.isin(files["all"]["ids"], files["A"]["ids"])  # an image looks the same in whatever part
    np.testing.assert_allclose(files["all"]["h"][same], files["A"]["h"], rtol=0, atol=1e-5)
    for name in ("as it is", "B", "other"):
        assert not np.allclose(files["A"]["h"], files[name]["h"]) and (files["A"]["ids"] == files[name]["ids"]).all()
    capsys.readouterr()
    assert call("encode", tmp_path / "run", "--pipeline", "C") == 2
    assert "There is no augmentation pipeline 'C'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("train", "vision", "--images", "objects", "--objectve", "byol"),
        ("sweep", "vision", "--images", "objects", "--vary", "objectve=byol"),
    ],
)
def test_a_misspelt_choice_gets_a_suggestion(words: tuple[str, ...], capsys) -> None:
    assert call(*words) == 2
    assert "--objective {" in capsys.readouterr().err


def test_all_views_hold_out_the_same_whole_groups(table: Path) -> None:
    seen = {
        view: read_images(VisionRecipe(images=ImageTable(str(table)), view=view, size=16)) for view in ("left", "right")
    }
    states = {view: set(images.table.column("state")[images.held].tolist()) for view, images in seen.items()}
    assert states["left"] == states["right"]
    images = seen["left"]
    groups = images.table.column("group")
    assert not set(groups[images.held].tolist()) & set(groups[images.learnt].tolist())


def test_a_resumed_run_equals_an_uninterrupted_one(table: Path, tmp_path: Path) -> None:
    words = ["train", "vision", table, "--view", "left", *SMALL, "--checkpoint-every", "3"]
    assert call(*words, "--out", tmp_path / "whole") == 0
    assert call(*words, "--out", tmp_path / "cut") == 0
    for name in ("step-6",):  # as if it had been killed after step 3
        for file in (tmp_path / "cut" / "checkpoints" / name).iterdir():
            file.unlink()
        (tmp_path / "cut" / "checkpoints" / name).rmdir()
    assert call("train", "vision", "--resume", tmp_path / "cut") == 0
    rows = np.arange(4)
    assert (load_agent(tmp_path / "cut").latents(rows) == load_agent(tmp_path / "whole").latents(rows)).all()


@pytest.mark.parametrize("left", [0, 1])
def test_a_view_without_held_out_states_is_rejected_before_training(
    table: Path, tmp_path: Path, left: int, capsys
) -> None:
    seen = read_images(VisionRecipe(images=ImageTable(str(table)), view="right", size=16))
    gone = seen.table.column("path")[seen.held][left:].tolist()
    lines = (table / "views.csv").read_text().splitlines()
    (table / "views.csv").write_text("\n".join(line for line in lines if line.split(",")[0] not in gone) + "\n")
    assert call("train", "vision", table, "--view", "right", *SMALL, "--out", tmp_path / "run") == 2
    assert f"{left} held-out images" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_encoding_uses_averaged_weights(table: Path, tmp_path: Path, capsys) -> None:
    words = ["train", "vision", table, "--view", "left", *SMALL]
    for name, more in (("plain", []), ("averaged", ["--ema", "0.5"])):
        assert call(*words, *more, "--out", tmp_path / name) == 0
    plain, averaged = (load_agent(tmp_path / name).latents(np.arange(4)) for name in ("plain", "averaged"))
    assert not np.allclose(plain, averaged)
    capsys.readouterr()
    normed = ["--objective", "byol", "--ema", "0.5", "--out", tmp_path / "normed"]
    assert call(*words, *normed) == 2 and "is a running statistic" in capsys.readouterr().err


def test_a_run_with_a_changed_table_is_not_resumed(table: Path, tmp_path: Path, capsys) -> None:
    assert call("train", "vision", table, "--view", "left", *SMALL, "--out", tmp_path / "run") == 0
    images = load_recipe(tmp_path / "run", VisionRecipe).images
    assert isinstance(images, ImageTable) and images.sha256
    lines = (table / "views.csv").read_text().splitlines()
    (table / "views.csv").write_text("\n".join(lines[:-1]) + "\n")
    capsys.readouterr()
    assert call("encode", tmp_path / "run") == 2
    assert "views.csv has changed" in capsys.readouterr().err
    (table / "views.csv").write_text("\n".join(lines).replace(",wide,", ",broad,") + "\n")  # labels may be corrected
    assert call("encode", tmp_path / "run", "--out", tmp_path / "again.npz") == 0
    assert "broad" in np.load(tmp_path / "again.npz")["labels"]


def test_folders_with_other_images_are_rejected(table: Path, tmp_path: Path, capsys) -> None:
    for path in table.glob("*.png"):
        view = path.stem.rpartition("-")[2]
        (tmp_path / "folders" / view).mkdir(parents=True, exist_ok=True)
        path.rename(tmp_path / "folders" / view / path.name.replace(f"-{view}", ""))
    run = tmp_path / "run"
    assert call("train", "vision", tmp_path / "folders", "--view", "left", *SMALL, "--out", run) == 0
    held = read_images(load_recipe(run, VisionRecipe)).held
    (tmp_path / "folders" / "right" / "0-0.png").write_bytes(b"")  # a broken one is listed as before
    assert (read_images(load_recipe(run, VisionRecipe)).held == held).all()
    (tmp_path / "folders" / "right" / "0-0.png").unlink()
    capsys.readouterr()
    for words in (["encode", run], ["train", "vision", "--resume", run]):
        assert call(*words) == 2
        assert "71 images" in capsys.readouterr().err


def test_images_that_break_later_are_reported(table: Path, tmp_path: Path, capsys) -> None:
    lines = (table / "views.csv").read_text().replace("left,wide,toy0", "left,,toy0")
    (table / "views.csv").write_text(lines)
    run = tmp_path / "run"
    assert call("train", "vision", table, "--view", "left", *SMALL, "--out", run) == 0
    (table / "3-1-left.png").write_bytes(b"")
    capsys.readouterr()
    assert call("train", "vision", "--resume", run) == 0
    assert "1 of 36 images were left out: " in capsys.readouterr().out
    assert call("encode", run, "--part", "all", "--json", tmp_path / "answer.json") == 0
    notes = read_json(tmp_path / "answer.json")["notes"]
    assert "1 of 36 images were left out: " in notes[0]
    assert notes[1:] == ["No labels are written: the column 'label' is empty for some of these states."]
    assert "No labels are written" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--view", "lef"], "No row has the view 'lef'. Did you mean 'left'"),
        ([], "--view left or right"),
        (["--view", "left", "--size", "18"], "18"),
        (["--view", "left", "--batch-size", "64"], "batch_size 64 "),
        (["--view", "left", "--objective", "ijepaa"], "--objective: there is no kind 'ijepaa'. Did you mean 'ijepa'"),
    ],
)
def test_invalid_input_is_rejected_before_anything_is_written(
    words: list[str], message: str, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("train", "vision", table, *SMALL, *words, "--out", tmp_path / "run") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_broken_image_fails_the_run_in_strict_mode_only(table: Path, tmp_path: Path, capsys) -> None:
    (table / "3-1-left.png").write_bytes(b"")
    words = ["train", "vision", table, "--view", "left", *SMALL]
    assert call(*words, "--strict", "--out", tmp_path / "strict") == 2
    assert "3-1-left.png" in capsys.readouterr().err
    assert call(*words, "--out", tmp_path / "run", "--json", tmp_path / "answer.json") == 0
    assert "1 of 36 images were left out: " in capsys.readouterr().out
    assert read_json(tmp_path / "answer.json")["verdicts"][0]["name"] == "directions"


def test_linked_images_and_empty_groups_train_with_a_cold_cache(table: Path, tmp_path: Path, capsys) -> None:
    lines = [line.rpartition(",")[0] for line in (table / "views.csv").read_text().splitlines()[1:]]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "im").symlink_to("../toys")
    text = "\n".join(["path,state,view,label,group", *(f"im/{line}," for line in lines)]) + "\n"
    (tmp_path / "other" / "views.csv").write_text(text)
    words = ["train", "vision", tmp_path / "other", "--view", "left", *SMALL]
    assert call(*words, "--out", tmp_path / "run") == 0
    said = capsys.readouterr().out
    assert "29 training images, 7 held out." in said and "left out" not in said  # a fifth of 36 states, not toys
    assert call("encode", tmp_path / "run", "--out", tmp_path / "latents.npz") == 0
    assert "groups" not in np.load(tmp_path / "latents.npz")
    (tmp_path / "other" / "views.csv").write_text(text.replace("left,wide,", "left,wide,toy", 1))
    capsys.readouterr()
    assert call(*words, "--out", tmp_path / "partly") == 2
    assert "the column 'group' is empty in 71 of 72 rows; the first is row 1, line 3" in capsys.readouterr().err


@pytest.mark.parametrize(("data", "message"), [(b"", "is empty"), (b"\x89PNG\r\n", "UTF-8")])
def test_files_that_are_no_tables_are_rejected(data: bytes, message: str, tmp_path: Path, capsys) -> None:
    (tmp_path / "views.csv").write_bytes(data)
    assert call("train", "vision", tmp_path / "views.csv", *SMALL, "--out", tmp_path / "run") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert message in said and "UTF-8" in said and not (tmp_path / "run").exists()


def test_collapse_advice_names_uniform_assignments(table: Path, tmp_path: Path, capsys) -> None:
    words = [
        "--view",
        "left",
        *SMALL,
        "--held",
        "0.5",
        "--objective",
        "swav",
        "--objective.smoothness",
        "9",
        "--lr",
        "1",
    ]
    assert call("train", "vision", table, *words, "--steps", "12", "--out", tmp_path / "run") == 0
    advice = read_json(tmp_path / "run" / "records" / "latents.json")["verdicts"][0]["advice"]
    assert "ollapsed" in advice and "nearly uniform (entropy 4.16 of ln 64 = 4.16)" in advice


def test_undecided_checks_of_a_sweep_are_not_failures() -> None:
    verdicts = [{"value": 3.0, "passed": passed, "advice": "Why."} for passed in (True, False, None)]
    assert [directions_summary({"directions": one}) for one in verdicts] == [
        "3.0 directions ✓",
        "3.0 directions ✗ Why.",
        "3.0 directions ? Why.",
    ]


def test_collapse_advice_names_the_slow_teacher(table: Path, tmp_path: Path, capsys) -> None:
    words = ["--view", "left", *SMALL, "--held", "0.5", "--objective", "byol", "--lr", "1", "--steps", "12"]
    assert call("train", "vision", table, *words, "--out", tmp_path / "run") == 0
    advice = read_json(tmp_path / "run" / "records" / "latents.json")["verdicts"][0]["advice"]
    assert "ollapsed" in advice and "Before training it was" in advice
    assert "--objective.momentum" in advice
