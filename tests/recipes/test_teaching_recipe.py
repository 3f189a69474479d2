"""Teaching recipes: training, bitwise resumption, and agreement of two processes with one."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from processes import run_processes
from training.small import metrics, tensors
from workflows.vision.tiny_scenes import agent, write_scenes

from jepatlas.alignment import LinearProbe
from jepatlas.core.arrays import write_arrays
from jepatlas.core.errors import InputError
from jepatlas.objectives.teaching import DistillationConfig, MigrationConfig, MutualConfig, RunningMapConfig
from jepatlas.recipes import (
    MutualRecipe,
    TaughtRecipe,
    TeacherFile,
    any_recipe,
    read_images,
    recipe_from_plain,
    recipe_id,
    recipe_text,
    teaching_targets,
)
from jepatlas.training.flops import step_flops
from jepatlas.workflows.runs import resume_run, start_run

TEACHER_WIDTH = 5


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scenes(tmp_path_factory.mktemp("scenes"))


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def teacher_file(table: Path, **arrays: np.ndarray) -> TeacherFile:
    """A teacher file with shuffled latents of all states, held-out ones included; they encode the labels."""
    rows = read_images(agent(table, "left")).table
    order = np.random.default_rng(2).permutation(len(rows))
    states, labels = rows.column("state")[order], rows.column("label")[order]
    h = np.random.default_rng(1).normal(3, 2, (len(order), TEACHER_WIDTH)) + 4 * (labels == "lying")[:, None]
    path = table.parent / f"teacher-{'-'.join(arrays) or 'all'}.npz"
    write_arrays(path, {"h": h, "ids": states, "labels": labels} | arrays)
    return TeacherFile(str(path)).sealed()


def recipes(table: Path) -> dict[str, Any]:
    student = agent(table, "right", seed=1)
    taught = TaughtRecipe(teacher_file(table), MigrationConfig(map=RunningMapConfig(memory=2.0)), 8, student)
    mutual = MutualRecipe(agent(table, "left"), agent(table, "right", seed=1, width=24), MutualConfig(memory=2.0), 8)
    return {
        "migration": taught,
        "logits": replace(taught, teaching=DistillationConfig()),
        "latents": replace(taught, teaching=DistillationConfig(tells="latents")),
        "cross": mutual,
        "alternating": replace(mutual, teaching=MutualConfig("alternating", turn=2, memory=2.0)),
    }


KINDS = ["migration", "logits", "latents", "cross", "alternating"]


@pytest.mark.parametrize("kind", KINDS)
def test_resumed_run_takes_the_same_steps(kind: str, scenes: Path, tmp_path: Path):
    recipe = recipes(scenes)[kind]
    assert start_run(recipe, tmp_path / "whole").status == "finished"
    shutil.copytree(tmp_path / "whole", tmp_path / "part")
    shutil.rmtree(tmp_path / "part/checkpoints/step-6")
    assert resume_run(tmp_path / "part").status == "finished"
    one, other = (tensors(tmp_path / name) for name in ("whole", "part"))
    assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("kind", KINDS)
def test_recipes_round_trip_through_files(kind: str, scenes: Path, tmp_path: Path):
    recipe = recipes(scenes)[kind]
    (tmp_path / "recipe.yaml").write_text(recipe_text(recipe))
    assert any_recipe(tmp_path) == recipe == recipe_from_plain(yaml.safe_load(recipe_text(recipe)))


def test_two_identical_agents_are_rejected(scenes: Path):
    with pytest.raises(InputError, match="same recipe"):
        MutualRecipe(agent(scenes, "left"), agent(scenes, "left"))
    assert MutualRecipe(agent(scenes, "left"), agent(scenes, "left", seed=1)).second.seed == 1


def test_recipe_id_ignores_reporting_settings(scenes: Path):
    recipe = recipes(scenes)["cross"]

    def trained(**changes: Any) -> MutualRecipe:
        first, second = (replace(a, training=replace(a.training, **changes)) for a in (recipe.first, recipe.second))
        return replace(recipe, first=first, second=second)

    assert recipe_id(trained(keep=7)) == recipe_id(recipe) != recipe_id(trained(lr=0.1))


def two_runs(table: str, folder: str) -> None:
    for kind in ("migration", "cross"):
        start_run(recipes(Path(table))[kind], Path(folder) / kind)


@pytest.mark.slow
def test_two_processes_match_one_process(scenes: Path, tmp_path: Path):
    run_processes(two_runs, 2, str(scenes), str(tmp_path / "two"))
    two_runs(str(scenes), str(tmp_path / "one"))
    for kind in ("migration", "cross"):
        one, two = (metrics(tmp_path / many / kind) for many in ("one", "two"))
        assert [line["step"] for line in one] == [3, 6] and all(line["loss"] > 0 for line in one)
        for ours, theirs in zip(one, two, strict=True):
            assert theirs == pytest.approx(ours, rel=1e-3)


def known_rows(images: np.ndarray) -> dict[bytes, int]:
    return {np.ascontiguousarray(image).tobytes(): row for row, image in enumerate(images)}


def as_bytes(image: torch.Tensor) -> bytes:
    """Bytes of an image in the layout of the data set."""
    return (image.permute(1, 2, 0) * 255).round().to(torch.uint8).contiguous().numpy().tobytes()


def test_teaching_targets_cover_exactly_the_training_states(scenes: Path):
    recipe = recipes(scenes)["migration"]
    seen = read_images(recipe.student)
    lessons = teaching_targets(recipe, seen)
    assert sorted(lessons.rows.tolist()) == sorted(seen.learnt.tolist())
    stored = np.load(recipe.teacher.path)
    h = np.array([stored["h"][stored["ids"] == state][0] for state in seen.table.column("state")[lessons.rows]])
    np.testing.assert_allclose(lessons.targets, (h - h.mean(0)) / np.sqrt(h.var(0).mean()), rtol=1e-5)
    objective, batches = recipe.build()
    batch = batches(3)
    known, place = known_rows(seen.images), dict(zip(lessons.rows.tolist(), lessons.targets, strict=True))
    for image, target in zip(*batch.shared, strict=True):
        np.testing.assert_array_equal(target, place[known[as_bytes(image)]])  # unaugmented, of a training state
    assert objective.lesson.map.weight.shape == (TEACHER_WIDTH, 16)


def test_logit_targets_come_from_a_probe_of_the_teacher(scenes: Path):
    recipe = recipes(scenes)["logits"]
    seen = read_images(recipe.student)
    lessons = teaching_targets(recipe, seen)
    stored = np.load(recipe.teacher.path)
    rows = [int(np.flatnonzero(stored["ids"] == state)[0]) for state in seen.table.column("state")[lessons.rows]]
    probe = LinearProbe.fit(stored["h"][rows], stored["labels"][rows])
    np.testing.assert_allclose(lessons.targets, probe.logits(stored["h"][rows]), rtol=1e-5)


def test_both_agents_receive_the_same_states(scenes: Path):
    recipe = recipes(scenes)["cross"]
    _, batches = recipe.build()
    batch, found = batches(2), []
    for who, images in zip((recipe.first, recipe.second), batch.shared, strict=True):
        seen = read_images(who)
        known = known_rows(seen.images)
        rows = [known[as_bytes(image)] for image in images]
        assert set(rows) <= set(seen.learnt.tolist())
        found.append(seen.table.column("state")[rows].tolist())
    assert found[0] == found[1] and len(set(found[0])) == 8


def test_counting_operations_does_not_change_the_student(scenes: Path):
    objective, batches = recipes(scenes)["migration"].build()
    alone = step_flops(objective.own, lambda step: batches(step).own[0])
    assert step_flops(objective, batches) > 1.2 * alone and objective.lesson.map.count == 0


def test_errors_name_the_argument(scenes: Path, tmp_path: Path):
    taught, mutual = recipes(scenes)["logits"], recipes(scenes)["cross"]
    other = write_scenes(tmp_path / "other", name="x")

    def refused(recipe: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            recipe.build()

    def teacher(name: str, **arrays: np.ndarray) -> TaughtRecipe:
        write_arrays(tmp_path / name, arrays)
        return replace(taught, teacher=TeacherFile(str(tmp_path / name)).sealed())

    states = read_images(taught.student).table.column("state")
    h = np.random.default_rng(0).normal(size=(len(states), 3))
    refused(replace(taught, student=agent(other, "right")), "share 0 .*x0-0.* 40 ")
    refused(teacher("bare.npz", h=h, ids=states), "labels.*--teaching.tells latents")
    refused(teacher("alone.npz", h=h), "ids")
    refused(teacher("twice.npz", h=h, ids=np.full(len(h), "s")), "39 states")
    refused(teacher("nan.npz", h=h * np.nan, ids=states), "NaN|nan")
    refused(teacher("short.npz", h=h, ids=states[:3]), r"\(40, 3\) and ids \(3,\)")
    refused(replace(taught, pairs=400), "400.* 32")
    refused(replace(mutual, second=agent(other, "right", seed=1)), "share 0")
    refused(replace(mutual, second=replace(mutual.second, split=1)), "held-out states")
    with pytest.raises(InputError, match="differ in lr"):
        replace(mutual, second=agent(scenes, "right", lr=0.5))
    with pytest.raises(InputError, match=r"pairs .* 0 "):
        replace(taught, pairs=0)
    changed = teacher("changing.npz", h=h, ids=states)
    write_arrays(tmp_path / "changing.npz", {"h": h + 1, "ids": states})
    refused(changed, r"changing\.npz")
    averaged = replace(taught.student, training=replace(taught.training, ema=0.9))
    refused(replace(taught, teaching=MigrationConfig(), student=averaged), "ema")
