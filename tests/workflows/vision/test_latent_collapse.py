"""Verdict on collapse of latents, and notes on its causes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from jepatlas.objectives.vision import BYOLConfig, DINOConfig, IBOTConfig, SwAVConfig
from jepatlas.workflows.vision import collapse_verdict
from jepatlas.workflows.vision.collapse_causes import (
    initial_target_note,
    leading_direction,
    shortcut_note,
    uniform_assignments_note,
)


def test_constant_and_one_dimensional_latents_have_collapsed() -> None:
    rng = np.random.default_rng(0)
    flat = np.ones((200, 8)) + 1e-9 * rng.standard_normal((200, 8))
    assert collapse_verdict(flat).value == 0 and collapse_verdict(flat).passed is False
    line = rng.standard_normal((200, 1)) * np.ones((1, 8))
    assert collapse_verdict(line).value == pytest.approx(1) and collapse_verdict(line).passed is False
    advice = collapse_verdict(line).advice
    assert "Collapsed" in advice and "1.0 effective dimensions of 8" in advice
    assert collapse_verdict(rng.standard_normal((2000, 8))).value == pytest.approx(8, abs=0.1)


def test_few_images_fail_with_advice_to_use_more() -> None:
    """Two directions with small others: the value exceeds two, but its interval does not."""
    h = np.random.default_rng(0).standard_normal((20, 8)) * np.array([1, 1, 0.08, 0.08, 0, 0, 0, 0])
    verdict = collapse_verdict(h)
    assert verdict.low < 2 < verdict.value and verdict.passed is False
    assert f"{verdict.value:.1f} [{verdict.low:.1f}, {verdict.high:.1f}]" in verdict.advice
    assert "more held-out images" in verdict.advice


def test_interval_covers_the_value_of_many_images() -> None:
    """Latents along 4.4 directions: the interval contains its value and the value of many images."""
    scales = np.array([3.0, 2.0, 1.5, 1.0, 0.7, *[0.1] * 11])
    rng = np.random.default_rng(0)
    truth = collapse_verdict(rng.standard_normal((20_000, 16)) * scales).value
    found = [collapse_verdict(rng.standard_normal((80, 16)) * scales) for _ in range(60)]
    assert all(verdict.low <= verdict.value <= verdict.high for verdict in found)
    assert np.mean([verdict.low <= truth <= verdict.high for verdict in found]) > 0.85


@pytest.mark.parametrize("groups", [6, 20])
def test_interval_resamples_groups(groups: int) -> None:
    """Rows of one object are nearly copies, so the number of objects determines the interval."""
    scales, rng = np.array([3.0, 2.0, 1.5, 1.0, 0.7, *[0.1] * 11]), np.random.default_rng(0)
    truth = collapse_verdict(rng.standard_normal((20_000, 16)) * scales).value
    number = np.repeat(np.arange(groups), 20)
    drawn = [
        (rng.standard_normal((groups, 16))[number] + 0.2 * rng.standard_normal((len(number), 16))) * scales
        for _ in range(40)
    ]
    found = [collapse_verdict(rows, number) for rows in drawn]
    covered = sum(verdict.low <= truth <= verdict.high for verdict in found)
    assert covered >= {6: 24, 20: 30}[groups]  # few objects vary along fewer directions, which is a bias
    alone = collapse_verdict(drawn[0])
    assert found[0].high - found[0].low > 3 * (alone.high - alone.low)


@pytest.mark.parametrize(("rows", "groups"), [(0, 0), (1, 1), (2, 2), (3, 3), (9, 9), (40, 4)])
def test_too_few_images_are_undecided(rows: int, groups: int) -> None:
    number = np.arange(rows) % max(groups, 1)
    verdict = collapse_verdict(np.random.default_rng(0).standard_normal((rows, 8)), number)
    assert verdict.passed is None and "too few" in verdict.advice


def test_collapse_advice_includes_the_cause() -> None:
    """The published momentum keeps e^−.6 of the initial target after 300 steps, a smaller one nothing."""
    assert f"{np.exp(-0.6):.0%}" in initial_target_note(BYOLConfig(momentum=0.996), 300)
    assert initial_target_note(BYOLConfig(momentum=0.9), 300) == initial_target_note(SwAVConfig(), 300) == ""
    flat = np.random.default_rng(0).standard_normal((40, 1)) * np.ones(8)
    verdict = collapse_verdict(flat, why="Before the first step it was 4.2.")
    assert verdict.advice.startswith("Collapsed") and verdict.advice.endswith("Before the first step it was 4.2.")
    assert verdict.low == verdict.value == pytest.approx(1.0)


def test_shortcut_column_is_named() -> None:
    rng = np.random.default_rng(0)
    light, kind = np.array(["noon", "dusk"])[rng.integers(0, 2, 200)], rng.integers(0, 5, 200).astype(str)
    columns = {"lighting": light, "label": kind, "time": np.arange(200).astype(str), "camera": np.full(200, "one")}
    h = rng.standard_normal((200, 6)) + 20 * (light == "noon")[:, None] * np.eye(6)[2]
    share, along = leading_direction(h)
    variances = np.square(np.linalg.svd(h - h.mean(0), compute_uv=False))
    assert share == pytest.approx(variances[0] / variances.sum()) and abs(np.corrcoef(along, h[:, 2])[0, 1]) > 0.99
    assert shortcut_note(along, columns).startswith("Of that, 99% is explained by the column 'lighting'")
    speed = {"speed": (h[:, 2] + rng.standard_normal(200)).round(6).astype(str)}
    assert shortcut_note(along, speed).startswith("Of that, 99% is explained by the column 'speed'")
    del columns["lighting"]  # the other columns do not explain it, nor does a text that differs for every image
    names = {"name": np.array([f"image {number}" for number in range(200)])}
    assert (
        shortcut_note(along, columns | names)
        == shortcut_note(along, {})
        == shortcut_note(along * 0, {"lighting": light})
        == ""
    )


@pytest.mark.parametrize(
    ("objective", "logged", "ending"),
    [
        (SwAVConfig(64), {"code_entropy": 4.15}, "(entropy 4.15 of ln 64 = 4.16): lower --objective.smoothness."),
        (SwAVConfig(64), {"code_entropy": 1.87}, ""),
        (SwAVConfig(64), {"code_entropy": "nan"}, ""),
        (DINOConfig(), {"teacher_entropy": 6.9}, "of ln 1024 = 6.93): lower --objective.temperature.teacher."),
        (IBOTConfig(), {"teacher_entropy": 6.9}, "of ln 1024 = 6.93): lower --objective.temperature.teacher."),
        (IBOTConfig(), {"teacher_entropy": 3.0}, ""),
        (BYOLConfig(), {"loss": 9.0}, ""),
    ],
)
def test_uniform_assignments_are_reported_with_the_option_to_change(
    objective: object, logged: dict[str, object], ending: str, tmp_path: Path
) -> None:
    assert uniform_assignments_note(objective, tmp_path) == "", "an extracted agent has no metrics"
    lines = [{"step": 1, "code_entropy": 0.0, "teacher_entropy": 0.0}, {"step": 2, **logged}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = uniform_assignments_note(objective, tmp_path)
    assert found.endswith(ending) and bool(found) is bool(ending)
