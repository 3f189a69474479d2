"""`jepatlas reproduce` where images of some scenes are not here: the others are told of, and nothing is published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli.calls import Captured, answer, refused
from experiments.halves import half
from training.small import call

from jepatlas.core.errors import InputError
from jepatlas.core.records import Record
from jepatlas.experiments import EXPERIMENTS, Claim, Experiment, Finding, Trial, publish


def of_scenes(name: str, *scenes: str) -> Experiment:
    def trials(scale: str, seed: int) -> list[Trial]:
        return [Trial({"scene": scene, "seed": seed}, half, {"n": n}) for n, scene in enumerate(scenes)]

    def conclude(results: Any, scale: str) -> Finding:
        return Finding("holds", f"In {', '.join(result.at['scene'] for result in results)}.")

    return Experiment(name, "Halves", Claim("Half of it is half.", "nobody"), trials, conclude)


@pytest.fixture(autouse=True)
def two_experiments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JEPATLAS_DATA", raising=False)
    for name in list(EXPERIMENTS):
        monkeypatch.delitem(EXPERIMENTS, name)
    monkeypatch.setitem(EXPERIMENTS, "some", of_scenes("some", "rendered", "driving"))
    monkeypatch.setitem(EXPERIMENTS, "none", of_scenes("none", "driving"))


WORDS = ("--out", "out", "--workers", "1")


def test_available_scenes_run_and_the_record_lists_missing_ones(capsys: Captured):
    assert call("reproduce", "some", *WORDS) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.count("images of driving") == 1 and "JEPATLAS_DATA" in out
    assert "(small, 1 runs)" in out and "In rendered. No images of: driving." in out
    (record,) = answer(capsys, "reproduce", "some", *WORDS)["records"]
    assert record["summary"] == "Holds. In rendered. No images of: driving."
    assert record["about"]["left out"] == ["driving"] and (record["about"]["runs"], record["about"]["failed"]) == (1, 0)


def test_with_all_images_no_scene_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured):
    (tmp_path / "driving").mkdir()
    monkeypatch.setenv("JEPATLAS_DATA", str(tmp_path))
    (record,) = answer(capsys, "reproduce", "some", *WORDS)["records"]
    assert record["summary"] == "Holds. In rendered, driving." and "left out" not in record["about"]


def test_a_record_of_some_scenes_is_not_published(capsys: Captured):
    said = refused(capsys, "reproduce", "some", *WORDS, "--publish", "docs")
    assert "--publish" in said and "driving" in said
    part = Record("Part", "", {}, about={"name": "some", "scale": "small", "left out": ["driving"]})
    with pytest.raises(InputError, match="driving"):
        publish(part, Path("out"), Path("docs"))
    assert not Path("docs").exists()


def test_an_experiment_without_available_scenes_is_rejected(capsys: Captured):
    message = refused(capsys, "reproduce", "none", *WORDS)
    assert "driving" in message and "JEPATLAS_DATA" in message
    assert [record["about"]["name"] for record in answer(capsys, "reproduce", "all", *WORDS)["records"]] == ["some"]
