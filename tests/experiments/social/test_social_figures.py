"""Figures of the social claims: sample images, projections of latents, and races."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from experiments.social.synthetic_agents import agent_result, rotation, side, states

from jepatlas.experiments import Result, Trial
from jepatlas.experiments.engine.rules import as_verdicts
from jepatlas.experiments.social.race_figures import accuracy_figure
from jepatlas.experiments.social.race_runs import Runner, measure_race
from jepatlas.experiments.social.trained_agents import run_agent
from jepatlas.experiments.social.view_samples import MAX_POINTS, sample_figures
from jepatlas.reporting import draw
from jepatlas.workflows.vision import Cost


def test_sample_figures_show_both_views_of_the_same_held_out_states(tmp_path: Path):
    """Missing image files are replaced by the small grey images stored with the latents."""
    rng = np.random.default_rng(0)
    z = states(rng)
    sides = [side(h, rng) for h in (z, z @ rotation(rng))]
    for one in sides:
        one["raw"] = rng.integers(0, 256, (len(z), 6, 6)).astype(np.float32)
    results = [agent_result(tmp_path / str(view), one, view) for view, one in enumerate(sides)]
    (samples, projected), arrays = sample_figures(results)
    (panel,) = samples.panels
    rows = [int(caption.removeprefix("s")) for caption in panel.captions]
    assert sides[0]["held"][rows].all() and set(sides[0]["labels"][rows]) == {"car", "mug"}
    for row, one in zip(panel.rows, sides, strict=True):
        np.testing.assert_array_equal(arrays[row.images][..., 0], one["raw"][rows])
    target, predicted = (arrays[projected.panels[number].x] for number in (1, 2))
    assert len(target) <= MAX_POINTS and np.abs(target - predicted).max() < 0.1 * target.std()
    np.testing.assert_array_equal(target, target.round(3))
    assert [len(draw(figure, arrays).panels) for figure in (samples, projected)] == [1, 3]


def test_race_figures_have_axes_in_epochs_and_operations_with_and_without_prior_cost():
    runners = {
        "scratch": Runner([(0, 0.2), (10, 0.5)], Cost(100.0)),
        "taught": Runner([(0, 0.2), (10, 0.6)], Cost(140.0, 10.0), 3000.0),
    }
    results = []
    for seed, more in enumerate((0.0, 0.1)):
        curves = {name: [(step, y + more) for step, y in one.curve] for name, one in runners.items()}
        record = {"verdicts": as_verdicts(measure_race(runners, 0.5, 5.0), ""), "epoch": 5.0, "curves": curves}
        results.append(Result(Trial({"seed": seed}, run_agent, {}), Path(), "finished", record))
    ways = {"scratch": "from scratch", "taught": "taught", "lost": "lost"}
    panels = accuracy_figure(results, ways, "T").panels
    assert [panel.series[1].x for panel in panels] == [[0, 2], [0, 1500], [3000, 4500]]
    assert [panel.series[0].x for panel in panels] == [[0, 2], [0, 1000], [0, 1000]]
    taught = panels[0].series[1]
    for key, y in (("y", [0.25, 0.65]), ("low", [0.2, 0.6]), ("high", [0.3, 0.7])):
        assert getattr(taught, key) == pytest.approx(y)
