"""Probe accuracy and cost of agents during training, and extraction of agents from teaching runs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from workflows.vision.tiny_scenes import agent, write_scenes

from jepatlas.core.errors import InputError
from jepatlas.core.figures import Curves
from jepatlas.objectives.teaching import MutualConfig, RunningMap
from jepatlas.recipes import (
    Augmentation,
    MutualRecipe,
    TaughtRecipe,
    TeacherFile,
    any_recipe,
    build_vision,
    read_images,
)
from jepatlas.training.flops import step_flops
from jepatlas.workflows.runs import start_run
from jepatlas.workflows.vision import (
    VisionAgent,
    cost_of,
    encoding_flops,
    extract_agents,
    judge_latents,
    judge_progress,
    load_agent,
    milestones,
    start_taught,
    steps_to_reach,
    teacher_arrays,
)
from jepatlas.workflows.vision.crop_samples import crops_figure


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs of a single agent, a student taught by it, and two agents that teach each other."""
    place = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(place / "cache"))
        table = write_scenes(place / "scenes")
        left, right = agent(table, "left"), agent(table, "right", seed=1, width=24)
        start_run(left, place / "alone")
        start_taught(TaughtRecipe(pairs=8, student=right), teacher_arrays(place / "alone"), place / "taught")
        start_run(MutualRecipe(left, right, MutualConfig(memory=2.0), 8), place / "both")
        yield place, left, right


def accuracy(who: VisionAgent) -> float:
    """Accuracy of scikit-learn's logistic regression on standardised latents."""
    seen = who.seen
    fit, score = (who.latents(rows).astype(np.float64) for rows in (seen.learnt, seen.held))
    mean, scale = fit.mean(0), fit.std(0)
    labels = seen.table.column("label")
    head = LogisticRegression(max_iter=1000).fit((fit - mean) / scale, labels[seen.learnt])
    return float(head.score((score - mean) / scale, labels[seen.held]))


def test_single_agent_is_probed_initially_and_at_every_checkpoint(runs: Any):
    place, left, _ = runs
    (found,) = milestones(left, place / "alone").values()
    assert [mark.step for mark in found] == [0, 3, 6] and all(len(mark.hits) == 8 for mark in found)
    assert found[0].accuracy == accuracy(
        VisionAgent(left, build_vision(left, read_images(left)).eval(), read_images(left))
    )
    assert found[-1].accuracy == accuracy(load_agent(place / "alone"))


def test_probes_of_taught_agents_match_the_extracted_agents(runs: Any):
    place, left, right = runs
    both = MutualRecipe(left, right, MutualConfig(memory=2.0), 8)
    found = milestones(both, place / "both")
    for name, folder in extract_agents(place / "both").items():
        assert found[name][-1].accuracy == accuracy(load_agent(folder))
    taught = TaughtRecipe(TeacherFile(str(place / "taught/teacher.npz")).sealed(), pairs=8, student=right)
    (student,) = milestones(taught, place / "taught").values()
    assert student[-1].accuracy == accuracy(load_agent(extract_agents(place / "taught")["student"]))


def test_teaching_cost_includes_images_and_map(runs: Any):
    place, left, right = runs
    alone, taught = (
        cost_of(right),
        cost_of(TaughtRecipe(TeacherFile(str(place / "taught/teacher.npz")).sealed(), pairs=8, student=right)),
    )
    once = encoding_flops(build_vision(right, read_images(right)), right.size, 8)
    assert 2.5 * once < taught.training - alone.training < 3.2 * once  # forward, and backward for weights and inputs
    assert alone.map == 0 and taught.map == RunningMap(24, 16).flops(8)
    both = cost_of(MutualRecipe(left, right, MutualConfig(), 8))
    apart = cost_of(left).training + alone.training
    lessons = once + encoding_flops(build_vision(left, read_images(left)), left.size, 8)
    assert 2.5 * lessons < both.training - apart < 3.2 * lessons
    turns = cost_of(MutualRecipe(left, right, MutualConfig("alternating", turn=4), 8))
    assert 1.7 * lessons < turns.training - apart < 2.1 * lessons  # alternating: one agent forward only
    assert turns.step == turns.training + turns.map


def test_encoding_cost_counts_forward_passes(runs: Any):
    _, left, _ = runs
    objective = build_vision(left, read_images(left))
    assert encoding_flops(objective, 16, 20) == 20 * encoding_flops(objective, 16, 1) > 0
    assert step_flops(objective, lambda step: first_crops(left)) > encoding_flops(objective, 16, 8)


def first_crops(recipe: Any) -> Any:
    from jepatlas.recipes import build_crops

    return build_crops(recipe, read_images(recipe))(0)


def test_unreached_accuracy_takes_infinite_steps():
    assert steps_to_reach([(0, 0.1), (5, 0.4)], 0.5) == float("inf") and steps_to_reach([(0, 0.5)], 0.5) == 0


def test_errors_name_the_folder_or_column(runs: Any, tmp_path: Path):
    place, left, right = runs
    with pytest.raises(InputError, match=re.escape(str(place / "alone"))):
        extract_agents(place / "alone")
    with pytest.raises(InputError, match=re.escape(str(tmp_path))):
        milestones(left, tmp_path)
    with pytest.raises(InputError, match=re.escape(str(place / "taught"))):
        start_taught(TaughtRecipe(pairs=8, student=right), teacher_arrays(place / "alone"), place / "taught")
    unlabelled = agent(write_scenes(tmp_path / "bare", labels=False), "left")
    start_run(unlabelled, tmp_path / "run")
    with pytest.raises(InputError, match="label"):
        milestones(unlabelled, tmp_path / "run")


def test_probe_progress_is_compared_with_an_agent_trained_alone(runs: Any):
    place, _, right = runs
    record = judge_progress(place / "taught", [place / "alone"])
    assert record is not None and (place / "taught/records/progress.json").is_file()
    recipe = any_recipe(place / "taught")
    (marks,) = milestones(recipe, place / "taught").values()  # type: ignore[arg-type]
    (figure,) = record.figures
    assert isinstance(figure, Curves)
    epochs, operations = figure.resolved_panels()
    student, other = epochs.series
    assert (student.name, other.name) == ("student", "alone")
    assert student.y == [round(mark.accuracy, 4) for mark in marks]
    assert all(low <= y <= high for low, y, high in zip(student.low, student.y, student.high, strict=True))
    steps = [mark.step for mark in marks]
    assert student.x == pytest.approx([step * 8 / len(read_images(right).learnt) for step in steps])
    assert operations.series[0].x == pytest.approx([step * cost_of(recipe).step for step in steps])  # type: ignore[arg-type]


def test_crops_are_saved_with_the_latents_record(runs: Any):
    place, left, _ = runs
    figure, arrays = crops_figure(left, seen := read_images(left))
    (panel,) = figure.panels
    rows = [seen.table.column("state").tolist().index(caption.split(", ")[-1]) for caption in panel.captions]
    assert set(rows) <= set(seen.learnt.tolist()) and len(rows) == 8
    np.testing.assert_array_equal(arrays["seen"], seen.images[rows])
    same = replace(left, augmentation=Augmentation(("none",)))
    np.testing.assert_array_equal(crops_figure(same, seen)[1]["crop_0"], seen.images[rows])
    record = judge_latents(place / "alone")
    assert record.figures[0] == figure and [row.images for row in panel.rows] == list(arrays)
